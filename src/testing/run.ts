import { isResourceError, type ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Context, Entry, ListQuery, Principal, Provider } from '../core/provider.ts'
import { show } from './metadata.ts'
import { type PromiseId, promises } from './promises.ts'

/** A broken promise. */
export interface Problem {
  readonly promise: PromiseId
  /** The promise, as one sentence. */
  readonly sentence: string
  /** Path that was requested or listed. */
  readonly path?: string
  /** Observed behaviour that breaks the promise. */
  readonly seen: string
  /** The wrapper that the provider was in, by its name in the options; absent for the provider itself. */
  readonly through?: string
}

/** The bounds of a run, with their defaults filled in. */
export interface Bounds {
  readonly limit: number
  readonly samples: number
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly principal: Principal
  readonly signal: AbortSignal
}

/** Result of a call: its value, or the error it threw. `undefined` when it broke a promise, which is already recorded. */
type Outcome<T> = { readonly value: T } | { readonly error: ResourceError } | undefined

/** One provider under examination: calls that cannot hang or throw, and the problems found so far. */
export interface Run {
  readonly provider: Provider
  readonly bounds: Bounds
  readonly problems: readonly Problem[]
  /** Records that a promise is broken, at most 5 times for each promise. */
  fail(promise: PromiseId, seen: string, path?: string): void
  /** Whether any of these promises is known to be broken, so that what rests on them need not be looked at. */
  broken(...ids: readonly PromiseId[]): boolean
  /** Calls the provider. An error other than a ResourceError breaks `errors`; a call that never settles breaks `settles`. */
  call<T>(path: string | undefined, work: (context: Context) => Promise<T>): Promise<Outcome<T>>
  /** Walks a listing until it ends or `visit` says `false`. A ResourceError breaks the promise `blame`. */
  walk(blame: PromiseId, query: ListQuery, visit: (entry: Entry) => boolean): Promise<'ended' | 'left' | 'failed'>
}

/** Maximum number of problems kept for one promise: the first ones tell most. */
const maxProblems = 5
/** Number of calls without an answer after which the provider is not called again. */
const maxHangs = 3

/** Ends a run early, with the problems found so far. */
export const givenUp = Symbol('given up')

/** Result of a call that exceeds its time-out. */
export const late = Symbol('late')

export function createRun(provider: Provider, bounds: Bounds): Run {
  const problems: Problem[] = []

  const fail: Run['fail'] = (promise, seen, path) => {
    if (problems.filter((problem) => problem.promise === promise).length >= maxProblems) return
    problems.push({ promise, sentence: promises[promise], seen, ...defined({ path }) })
  }

  const hang = (path: string | undefined) => {
    fail('settles', `nothing for ${bounds.timeoutMs} ms`, path)
    if (problems.filter(({ promise }) => promise === 'settles').length >= maxHangs) throw givenUp
  }

  /** Waits for one step of a call, at most until its time-out. */
  const step = async <T>(path: string | undefined, work: () => PromiseLike<T> | T): Promise<Outcome<T>> => {
    bounds.signal.throwIfAborted()
    try {
      const value = await within(bounds, work)
      if (value !== late) return { value }
    } catch (error) {
      bounds.signal.throwIfAborted()
      if (isResourceError(error)) return { error }
      fail('errors', `it threw ${nameOf(error)}`, path)
      return undefined
    }
    hang(path)
    return undefined
  }

  const call: Run['call'] = async (path, work) => {
    const ended = new AbortController()
    const signal = AbortSignal.any([ended.signal, bounds.signal])
    try {
      return await step(path, () => work({ principal: bounds.principal, signal }))
    } finally {
      ended.abort()
    }
  }

  const walk: Run['walk'] = async (blame, query, visit) => {
    const ended = new AbortController()
    const context = { principal: bounds.principal, signal: AbortSignal.any([ended.signal, bounds.signal]) }
    const at = query.after ?? query.prefix
    const failed = (outcome: Outcome<unknown>) => {
      if (outcome !== undefined && 'error' in outcome) fail(blame, `it threw ${nameOf(outcome.error)}`, at)
      return 'failed' as const
    }
    try {
      const started = await step(at, () => provider.list(query, context)[Symbol.asyncIterator]())
      if (started === undefined || 'error' in started) return failed(started)
      const entries = started.value
      for (;;) {
        const next = await step(at, () => entries.next())
        if (next === undefined || 'error' in next) return failed(next)
        if (next.value.done === true) return 'ended'
        if (visit(next.value.value)) continue
        const left = await step(at, () => entries.return?.())
        return left === undefined || 'error' in left ? failed(left) : 'left'
      }
    } finally {
      ended.abort()
    }
  }

  return {
    provider,
    bounds,
    problems,
    fail,
    broken: (...ids) => problems.some((problem) => ids.includes(problem.promise)),
    call,
    walk,
  }
}

/**
 * Returns the result of `work`, or {@link late} when it exceeds the time-out. Rejects when the whole check is aborted.
 */
export async function within<T>(
  { timeoutMs, signal }: Pick<Bounds, 'timeoutMs' | 'signal'>,
  work: () => PromiseLike<T> | T,
): Promise<T | typeof late> {
  signal.throwIfAborted()
  let timer: NodeJS.Timeout | undefined
  let abort = () => {}
  const timeout = new Promise<typeof late>((resolve, reject) => {
    timer = setTimeout(resolve, timeoutMs, late)
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
  })
  try {
    const working = Promise.resolve(work())
    // Ignore an error that it throws after its time-out.
    working.catch(() => {})
    return await Promise.race([working, timeout])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** An error as a report names it. */
export function nameOf(error: unknown): string {
  if (isResourceError(error)) return `${error.kind}: ${error.message}`
  return error instanceof Error ? `${error.name}: ${error.message}` : show(error)
}

/** Up to `count` items from across a list, the first and the last among them. */
export function sample<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items
  const step = (items.length - 1) / Math.max(1, count - 1)
  return Array.from({ length: count }, (_, i) => items[Math.round(i * step)]).filter((item) => item !== undefined)
}
