import { setTimeout as sleep } from 'node:timers/promises'
import { isCount } from '../core/kit/object.ts'
import { afterSubtree, comparePaths, isPath, parentOf } from '../core/path.ts'
import type { Completion, Context, Entry, ListQuery, Template } from '../core/provider.ts'
import { compileTemplate } from '../core/template.ts'
import {
  formatValue,
  metadataFaults,
  type PromiseId,
  type ProviderRun,
  sample,
  summarizeError,
  timedOut,
  withTimeout,
} from './run.ts'

/** Result of the first listing, with which the other checks compare. */
export interface ListedEntries {
  readonly entries: readonly Entry[]
  /** Whether `entries` holds the whole listing; false when the limit cut it. */
  readonly complete: boolean
  /** The directories that hold an entry, in path order, each with its `/`. */
  readonly directories: readonly string[]
}

export async function checkEntries(run: ProviderRun): Promise<ListedEntries | undefined> {
  const entries: Entry[] = []
  const directories = new Set<string>()
  let previous: string | undefined
  const end = await run.walk('list-ends', {}, (entry) => {
    const { path } = entry
    entries.push(entry)
    if (!isPath(path)) run.fail('list-paths', `it listed ${formatValue(path)}`, path)
    else if (path.endsWith('/')) run.fail('list-files', 'it listed a directory', path)
    else for (let at = parentOf(path); at !== ''; at = parentOf(at)) directories.add(at)
    if (previous !== undefined) {
      const order = comparePaths(previous, path)
      if (order > 0) run.fail('list-order', `it came after ${formatValue(previous)}`, path)
      if (order === 0) run.fail('list-unique', 'it came twice', path)
    }
    for (const fault of metadataFaults(entry)) run.fail('metadata', fault, path)
    previous = path
    return entries.length < run.bounds.limit
  })
  if (end === 'failed') return undefined
  return { entries, complete: end === 'ended', directories: [...directories].sort(comparePaths) }
}

/**
 * Lists again (everything, after various keys, below various prefixes), and compares the results with the first
 * listing.
 */
export async function checkListing(run: ProviderRun, entries: ListedEntries): Promise<void> {
  await checkStable(run, entries)
  // A listing that disagrees with itself, or has no order, has no "rest" to compare with.
  if (run.broken('list-ends', 'list-paths', 'list-files', 'list-order', 'list-unique', 'list-stable')) return
  await checkResume(run, entries)
  await checkSeek(run, entries)
  await checkPrefix(run, entries)
  if (!run.broken('list-prefix')) await checkNothing(run, entries)
}

async function checkStable(run: ProviderRun, { entries, complete }: ListedEntries): Promise<void> {
  const facts = ({ path, size, modified, version }: Entry) => formatValue({ path, size, modified, version })
  let index = 0
  const end = await run.walk('list-ends', {}, (entry) => {
    const first = entries[index++]
    if (first !== undefined && facts(first) === facts(entry)) return index < entries.length || complete
    if (first === undefined) run.fail('list-stable', 'the second listing has it, the first has not', entry.path)
    else run.fail('list-stable', `first ${facts(first)}, then ${facts(entry)}`, first.path)
    return false
  })
  if (end === 'ended' && index < entries.length)
    run.fail('list-stable', 'the first listing has it, the second has not', entries[index]?.path)
}

async function checkResume(run: ProviderRun, entries: ListedEntries): Promise<void> {
  const paths = entries.entries.map((entry) => entry.path)
  for (const path of sample(paths, run.bounds.samples)) await compareRest(run, 'list-resume', { after: path }, entries)
}

/** Lists from keys between the paths, before the first one and after the last one. */
async function checkSeek(run: ProviderRun, entries: ListedEntries): Promise<void> {
  const paths = new Set(entries.entries.map((entry) => entry.path))
  const few = Math.ceil(run.bounds.samples / 3)
  const keys = new Set(['', '!', '\u{10ffff}'])
  for (const path of sample([...paths], few)) {
    keys.add(`${path}.`).add(`${path}/`).add(`${path}\u{10ffff}`)
    keys.add([...path].slice(0, -1).join(''))
  }
  for (const directory of sample(entries.directories, few))
    keys.add(directory).add(directory.slice(0, -1)).add(afterSubtree(directory))
  for (const after of keys)
    if (isPath(after) && !paths.has(after)) await compareRest(run, 'list-seek', { after }, entries)
}

async function checkPrefix(run: ProviderRun, entries: ListedEntries): Promise<void> {
  await compareRest(run, 'list-prefix', { prefix: '' }, entries)
  const resumes = !run.broken('list-resume', 'list-seek')
  for (const prefix of sample(entries.directories, run.bounds.samples)) {
    await compareRest(run, 'list-prefix', { prefix }, entries)
    if (!resumes || run.broken('list-prefix')) continue
    const below = entries.entries.filter((entry) => entry.path.startsWith(prefix)).map((entry) => entry.path)
    const ends = [entries.entries[0]?.path, entries.entries.at(-1)?.path, afterSubtree(prefix), prefix]
    for (const after of new Set([...sample(below, 3), ...ends]))
      if (after !== undefined) await compareRest(run, 'list-prefix', { prefix, after }, entries)
  }
}

async function checkNothing(run: ProviderRun, { entries, directories }: ListedEntries): Promise<void> {
  const few = Math.ceil(run.bounds.samples / 3)
  const name = 'hikidashi-no-such-directory/'
  const prefixes = [
    name,
    '__proto__/',
    'constructor/',
    ...sample(directories, few).map((directory) => directory + name),
    ...sample(entries, few).map((entry) => `${entry.path}/`),
  ]
  for (const prefix of prefixes) {
    if (entries.some((entry) => entry.path.startsWith(prefix))) continue
    await run.walk('list-nothing', { prefix }, (entry) => {
      run.fail('list-nothing', `it yielded ${formatValue(entry.path)}`, prefix)
      return false
    })
  }
}

async function compareRest(
  run: ProviderRun,
  promise: PromiseId,
  query: ListQuery,
  entries: ListedEntries,
): Promise<void> {
  const { prefix = '', after } = query
  const rest = entries.entries
    .map((entry) => entry.path)
    .filter((path) => path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0))
  const last = entries.entries.at(-1)?.path ?? ''
  const call = `list(${JSON.stringify(query)})`
  let index = 0
  const end = await run.walk(promise, query, (entry) => {
    const expected = rest[index++]
    if (expected === entry.path) return true
    if (expected !== undefined)
      run.fail(promise, `${call} yielded ${formatValue(entry.path)} in place of this path`, expected)
    // Beyond the limit of the first listing there may be more entries, but only below the prefix.
    else if (entries.complete || comparePaths(entry.path, last) <= 0 || !entry.path.startsWith(prefix))
      run.fail(promise, `${call} yielded this path, which is not in that part of the first listing`, entry.path)
    return false
  })
  if (end === 'ended' && index < rest.length) run.fail(promise, `${call} ended before this path`, rest[index])
}

const maxValues = 100
const watchingMs = 20
/** Of buffered entries or changes (a page) that a listing or watch may still yield. */
const maxAfterAbort = 1000

export async function checkTemplates(run: ProviderRun): Promise<void> {
  const { provider } = run
  if (provider.templates === undefined) return
  const outcome = await run.call(undefined, async (context) => (await provider.templates?.(context)) ?? [])
  if (outcome === undefined) return
  if ('error' in outcome) return run.fail('templates', `it threw ${summarizeError(outcome.error)}`)
  if (!Array.isArray(outcome.value)) return run.fail('templates', `it answered ${formatValue(outcome.value)}`)
  for (const template of outcome.value) {
    for (const fault of metadataFaults(template)) run.fail('templates', fault, template.template)
    if (typeof template.name !== 'string' || template.name === '')
      run.fail('templates', `its name is ${formatValue(template.name)}`, template.template)
    for (const variable of variablesOf(run, template)) await checkCompletion(run, template.template, variable)
  }
}

function variablesOf(run: ProviderRun, { template }: Template): readonly string[] {
  try {
    return compileTemplate(template).variables
  } catch (error) {
    run.fail('templates', `it does not compile: ${summarizeError(error)}`, template)
    return []
  }
}

async function checkCompletion(run: ProviderRun, template: string, name: string): Promise<void> {
  const { provider } = run
  if (provider.complete === undefined) return
  const ask = (value: string) => {
    const request = { template, argument: { name, value }, arguments: new Map<string, string>() }
    return run.call(template, async (context) => provider.complete?.(request, context))
  }
  // An empty text, the beginning of no value, and characters that have a meaning in patterns, queries and paths.
  for (const value of ['', 'hikidashi-no-such-value', `%_*?[('"\\../`]) {
    const outcome = await ask(value)
    if (outcome === undefined) continue
    if ('value' in outcome && outcome.value === undefined) continue
    const fault = 'error' in outcome ? `it threw ${summarizeError(outcome.error)}` : completionFault(outcome.value)
    if (fault !== undefined) run.fail('completion', `${name} = ${formatValue(value)}: ${fault}`, template)
    if (fault === undefined && value === '' && 'value' in outcome) await checkAgain(outcome.value?.values ?? [])
  }

  /** A proposed value, typed in full, should be proposed again. */
  async function checkAgain(values: readonly string[]): Promise<void> {
    for (const value of sample(values, 3)) {
      const outcome = await ask(value)
      const again = outcome !== undefined && 'value' in outcome ? outcome.value?.values : []
      if (again?.some((one) => one.startsWith(value)) === false)
        run.fail(
          'completion',
          `${name} = ${formatValue(value)}, which was proposed for an empty text, is not proposed for itself`,
          template,
        )
    }
  }
}

function completionFault(completion: Completion | undefined): string | undefined {
  if (!Array.isArray(completion?.values)) return `it answered ${formatValue(completion)}`
  const { values, total, hasMore } = completion
  if (values.length > maxValues) return `it answered ${values.length} values`
  const odd = values.find((value) => typeof value !== 'string' || !value.isWellFormed())
  if (odd !== undefined) return `one value is ${formatValue(odd)}`
  if (total !== undefined && (!isCount(total) || total < values.length)) return `its total is ${formatValue(total)}`
  if (hasMore === false && total !== undefined && total > values.length) return 'it has more, and says that it has not'
  if (hasMore === true && total === values.length) return 'it has no more, and says that it has'
  return undefined
}

/** Watches briefly, and checks that the watch ends when its signal aborts. */
export async function checkWatch(run: ProviderRun): Promise<void> {
  const { provider } = run
  if (provider.watch === undefined) return
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, run.bounds.signal])
  const armed = await settled(run, async () => provider.watch?.(signal))
  if (armed === 'late') return run.fail('watch-ends', `it was not ready after ${run.bounds.timeoutMs} ms`)
  // A source that cannot be watched now may throw an error.
  const changes = armed?.value?.[Symbol.asyncIterator]()
  if (changes === undefined) return abort.abort()
  const pending = changes.next()
  await Promise.race([pending.catch(() => {}), sleep(watchingMs)])
  abort.abort()
  let next = pending
  for (let count = 0; count <= maxAfterAbort; count++) {
    const current = next
    const outcome = await settled(run, () => current)
    if (outcome === 'late')
      return run.fail('watch-ends', `it was still waiting ${run.bounds.timeoutMs} ms after the abort`)
    if (outcome === undefined || outcome.value.done === true) return
    const { path } = outcome.value.value
    if (path !== undefined && !isPath(path)) run.fail('watch-ends', `it yielded the path ${formatValue(path)}`, path)
    next = changes.next()
  }
  run.fail('watch-ends', `it yielded more than ${maxAfterAbort} changes after the abort`)
}

export async function checkAborts(run: ProviderRun, entries: ListedEntries): Promise<void> {
  const { provider } = run
  const path = entries.entries[0]?.path
  if (path === undefined || run.broken('list-ends')) return
  const calls: readonly (readonly [string, (context: Context) => PromiseLike<unknown>])[] = [
    ['list', (context) => provider.list({}, context)[Symbol.asyncIterator]().next()],
    ['read', (context) => provider.read({ path, params: new Map() }, context)],
    ...(provider.stat === undefined
      ? []
      : [['stat', async (context: Context) => provider.stat?.(path, context)] as const]),
  ]
  for (const [name, call] of calls) {
    const outcome = await settled(run, () => call(contextOf(run, AbortSignal.abort())))
    if (outcome === 'late') run.fail('abort-before', `${name} did not settle within ${run.bounds.timeoutMs} ms`, path)
    else if (outcome !== undefined && (outcome.value as { done?: boolean } | undefined)?.done !== true)
      run.fail('abort-before', `${name} answered ${formatValue(outcome.value)}`, path)
  }
  await checkAbortDuring(run, path)
}

async function checkAbortDuring(run: ProviderRun, path: string): Promise<void> {
  const abort = new AbortController()
  const entries = run.provider.list({}, contextOf(run, abort.signal))[Symbol.asyncIterator]()
  await settled(run, () => entries.next())
  abort.abort()
  for (let count = 0; ; count++) {
    const outcome = await settled(run, () => entries.next())
    if (outcome === 'late')
      return run.fail('abort-during', `it was still waiting after ${run.bounds.timeoutMs} ms`, path)
    // After an abort, the listing may end in any way.
    if (outcome === undefined || outcome.value.done === true) return
    if (count < maxAfterAbort) continue
    await settled(run, async () => entries.return?.())
    return run.fail('abort-during', `it yielded more than ${maxAfterAbort} entries after the abort`, path)
  }
}

function contextOf(run: ProviderRun, signal: AbortSignal): Context {
  return { principal: run.bounds.principal, signal: AbortSignal.any([signal, run.bounds.signal]) }
}

/** Returns `undefined` when the call throws, or `late` when it does not settle before the time-out. */
async function settled<T>(
  { bounds }: ProviderRun,
  work: () => PromiseLike<T>,
): Promise<{ readonly value: T } | 'late' | undefined> {
  try {
    const value = await withTimeout(bounds, work)
    return value === timedOut ? 'late' : { value }
  } catch {
    bounds.signal.throwIfAborted()
    return undefined
  }
}
