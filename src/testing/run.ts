import { isResourceError, type ResourceError } from '../core/errors.ts'
import { defined, isCount } from '../core/kit/object.ts'
import { isPath } from '../core/path.ts'
import type { ContentMetadata, Context, Description, Entry, ListQuery, Principal, Provider } from '../core/provider.ts'

/** A promise of the Provider interface that a provider does not keep. */
export interface Problem {
  readonly promise: PromiseId
  /** The promise, as one sentence. */
  readonly sentence: string
  /** Path that was requested or listed. */
  readonly path?: string
  /** Observed behaviour that breaks the promise. */
  readonly seen: string
  /**
   * Name of the wrapper through which the provider was checked, as in the options; `undefined` for the provider itself.
   */
  readonly through?: string
}

/** As {@link CheckOptions}, with defaults filled in. */
export interface RunBounds {
  readonly limit: number
  readonly samples: number
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly principal: Principal
  readonly signal: AbortSignal
}

/** A value or an error. `undefined` for a call that broke a promise, which is already recorded. */
type CallOutcome<T> = { readonly value: T } | { readonly error: ResourceError } | undefined

/**
 * One provider under test: calls with a time-out, whose errors become results or problems, and the problems found so
 * far.
 */
export type ProviderRun = ReturnType<typeof createRun>

/** Of one promise: the first problems tell most. */
const maxProblems = 5
/** Number of calls without an answer after which the provider is not called again. */
const maxHangs = 3

/** Thrown to end a run early, with the problems found so far. */
export const runEnded = Symbol('given up')

export const timedOut = Symbol('late')

export function createRun(provider: Provider, bounds: RunBounds) {
  const problems: Problem[] = []

  /** Records up to {@link maxProblems} problems for each promise. */
  const fail = (promise: PromiseId, observation: string, path?: string): void => {
    if (problems.filter((problem) => problem.promise === promise).length >= maxProblems) return
    problems.push({ promise, sentence: promises[promise], seen: observation, ...defined({ path }) })
  }

  const hang = (path: string | undefined) => {
    fail('settles', `it did not settle within ${bounds.timeoutMs} ms`, path)
    if (problems.filter(({ promise }) => promise === 'settles').length >= maxHangs) throw runEnded
  }

  const step = async <T>(path: string | undefined, work: () => PromiseLike<T> | T): Promise<CallOutcome<T>> => {
    bounds.signal.throwIfAborted()
    try {
      const value = await withTimeout(bounds, work)
      if (value !== timedOut) return { value }
    } catch (error) {
      bounds.signal.throwIfAborted()
      if (isResourceError(error)) return { error }
      fail('errors', `it threw ${summarizeError(error)}`, path)
      return undefined
    }
    hang(path)
    return undefined
  }

  /** An error other than a ResourceError breaks `errors`; a call that does not settle in time breaks `settles`. */
  const call = async <T>(path: string | undefined, work: (context: Context) => Promise<T>): Promise<CallOutcome<T>> => {
    const endController = new AbortController()
    const signal = AbortSignal.any([endController.signal, bounds.signal])
    try {
      return await step(path, () => work({ principal: bounds.principal, signal }))
    } finally {
      endController.abort()
    }
  }

  /** Walks a listing until it ends or `visit` returns `false`. A ResourceError breaks the promise `blame`. */
  const walk = async (blame: PromiseId, query: ListQuery, visit: (entry: Entry) => boolean) => {
    const endController = new AbortController()
    const context = { principal: bounds.principal, signal: AbortSignal.any([endController.signal, bounds.signal]) }
    const at = query.after ?? query.prefix
    const noteFailure = (outcome: CallOutcome<unknown>) => {
      if (outcome !== undefined && 'error' in outcome) fail(blame, `it threw ${summarizeError(outcome.error)}`, at)
      return 'failed' as const
    }
    try {
      const started = await step(at, () => provider.list(query, context)[Symbol.asyncIterator]())
      if (started === undefined || 'error' in started) return noteFailure(started)
      const entries = started.value
      for (;;) {
        const next = await step(at, () => entries.next())
        if (next === undefined || 'error' in next) return noteFailure(next)
        if (next.value.done === true) return 'ended'
        const entry = next.value.value
        if (typeof entry?.path !== 'string') {
          fail('list-paths', `it listed ${formatValue(entry)}, which is not an entry with a path`, at)
          return 'failed'
        }
        if (visit(entry)) continue
        const outcome = await step(at, () => entries.return?.())
        return outcome === undefined || 'error' in outcome ? noteFailure(outcome) : 'left'
      }
    } finally {
      endController.abort()
    }
  }

  return {
    provider,
    bounds,
    problems: problems as readonly Problem[],
    fail,
    /** Whether one of these promises is known to be broken. Checks that depend on it can then be skipped. */
    broken: (...ids: readonly PromiseId[]) => problems.some((problem) => ids.includes(problem.promise)),
    call,
    walk,
  }
}

/**
 * Returns the result of `work`, or {@link timedOut} when it exceeds the time-out. Rejects when the whole check is
 * aborted.
 */
export async function withTimeout<T>(
  { timeoutMs, signal }: Pick<RunBounds, 'timeoutMs' | 'signal'>,
  work: () => PromiseLike<T> | T,
): Promise<T | typeof timedOut> {
  signal.throwIfAborted()
  let timer: NodeJS.Timeout | undefined
  let abort = () => {}
  const timeout = new Promise<typeof timedOut>((resolve, reject) => {
    timer = setTimeout(resolve, timeoutMs, timedOut)
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
  })
  try {
    const working = Promise.resolve(work())
    // An error after the time-out is ignored.
    working.catch(() => {})
    return await Promise.race([working, timeout])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

export function summarizeError(error: unknown): string {
  if (isResourceError(error)) return `${error.kind}: ${error.message}`
  return error instanceof Error ? `${error.name}: ${error.message}` : formatValue(error)
}

/** Returns up to `count` items, spread evenly across a list. */
export function sample<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items
  const step = (items.length - 1) / Math.max(1, count - 1)
  return Array.from({ length: count }, (_, i) => items[Math.round(i * step)]).filter((item) => item !== undefined)
}

/** A MIME type (RFC 6838, section 4.2): restricted names of up to 127 characters; then parameters as in RFC 9110. */
const mimeType =
  /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}(?:[ \t]*;[ \t]*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[^"]*"))*$/

const lastTimeMs = 8.64e15

type Facts = Description & Pick<Entry, 'size' | 'modified' | 'version'>

/** Returns one phrase for each fault in the metadata of an entry or a template. */
export function metadataFaults(facts: Facts): readonly string[] {
  const faults: string[] = []
  const check = (name: keyof Facts, valid: boolean) => {
    if (facts[name] !== undefined && !valid) faults.push(`${name} is ${formatValue(facts[name])}`)
  }
  check('size', isCount(facts.size))
  check('modified', typeof facts.modified === 'number' && Math.abs(facts.modified) <= lastTimeMs)
  check('version', isText(facts.version))
  check('priority', typeof facts.priority === 'number' && facts.priority >= 0 && facts.priority <= 1)
  check('audience', isAudience(facts.audience))
  check('mimeType', typeof facts.mimeType === 'string' && mimeType.test(facts.mimeType))
  check('title', isText(facts.title))
  check('description', typeof facts.description === 'string' && facts.description.isWellFormed())
  check('icons', Array.isArray(facts.icons) && facts.icons.every((icon) => /^(https|data):/.test(icon.src)))
  return faults
}

export function contentFaults(facts: ContentMetadata): readonly string[] {
  const { size, version, mimeType, title } = facts
  const faults = [...metadataFaults(defined({ size, version, mimeType, title }))]
  if (facts.path !== undefined && !isPath(facts.path)) faults.push(`path is ${formatValue(facts.path)}`)
  return faults
}

/** As JSON if possible, cut to 120 characters. */
export function formatValue(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (tryStringify(value) ?? String(value))
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}

/** Returns `undefined` if the value has no JSON, such as a BigInt or an object that contains itself. */
function tryStringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

function isAudience(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((name) => name === 'user' || name === 'assistant') &&
    new Set(value).size === value.length
  )
}

/**
 * The promises of the Provider interface that the suite checks: a stable name, and the sentence that documentation,
 * tests and reports print for it.
 */
export const promises = {
  'list-ends': 'A listing comes to its end without an error.',
  'list-paths': 'Every listed path is a valid path. The empty one is the mount itself.',
  'list-files': 'A listing holds no directories: no path ends in `/`.',
  'list-order': 'Entries come in path order, which is the order of their UTF-8 bytes.',
  'list-unique': 'No path is listed twice.',
  'list-stable': 'Two listings of an unchanged source agree.',
  'list-resume': 'A listing resumed after any listed path yields exactly the rest.',
  'list-seek': 'A listing resumed after a path that does not exist yields exactly what sorts after it.',
  'list-prefix': 'A prefix yields exactly the entries below it, also together with `after`.',
  'list-nothing': 'A prefix without entries yields nothing, without an error.',
  'list-stop': 'A listing that is stopped at any entry leaves nothing open.',
  metadata: 'Metadata is valid: size, modified, version, priority, audience, MIME type, icons, titles.',
  'stat-same': '`stat` of a listed path returns the same facts as the listing.',
  'stat-missing': '`stat` throws `not-found` for a path without an entry.',
  'read-content': 'Every listed path can be read, and answers at least one content.',
  'read-version': 'A content has the version that is listed.',
  'read-size': 'A content has the size that it states and the size that is listed, unless it says that it was decoded.',
  'read-text': 'Text is well-formed Unicode.',
  'read-range': 'A range is always honoured exactly, with its part named, or always ignored.',
  'read-missing': '`read` throws `not-found` for a path without an entry, and never answers an empty list.',
  spelling: 'A path is found by its own spelling only: not in another case or Unicode normalization.',
  'abort-before': 'A call whose signal has been aborted rejects, or lists nothing, at once.',
  'abort-during': 'A listing ends soon after its signal is aborted.',
  errors: 'Only ResourceError is thrown.',
  settles: 'Every call settles in time.',
  templates: 'Every template compiles (RFC 6570), and has a name and valid metadata.',
  completion:
    'A completion has at most 100 values with matching counts, and a proposed value that is typed in full is proposed again.',
  'watch-ends': 'A watch ends soon after its signal is aborted, and yields valid paths.',
  expected: 'The listed entries and their contents are the expected ones.',
} as const

export type PromiseId = keyof typeof promises

/** The ids of {@link promises}, in the order in which they are printed. */
export const promiseIds = Object.keys(promises) as readonly PromiseId[]
