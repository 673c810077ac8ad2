import { afterSubtree, comparePaths, isPath, parentOf } from '../core/path.ts'
import type { Entry, ListQuery } from '../core/provider.ts'
import { metadataFaults, type PromiseId, type Run, sample, show } from './run.ts'

/** Result of the first listing, the reference for all other checks. */
export interface Listed {
  readonly entries: readonly Entry[]
  /** Whether `entries` holds the whole listing; false when the limit cut it. */
  readonly complete: boolean
  /** Every directory that holds an entry, in path order, each with its `/`. */
  readonly directories: readonly string[]
}

/** Walks the listing once, and checks each entry by itself and against the one before it. */
export async function checkEntries(run: Run): Promise<Listed | undefined> {
  const entries: Entry[] = []
  const directories = new Set<string>()
  let previous: string | undefined
  const end = await run.walk('list-ends', {}, (entry) => {
    const { path } = entry
    entries.push(entry)
    if (!isPath(path)) run.fail('list-paths', `it listed ${show(path)}`, path)
    else if (path.endsWith('/')) run.fail('list-files', 'it listed a directory', path)
    else for (let at = parentOf(path); at !== ''; at = parentOf(at)) directories.add(at)
    if (previous !== undefined) {
      const order = comparePaths(previous, path)
      if (order > 0) run.fail('list-order', `it came after ${show(previous)}`, path)
      if (order === 0) run.fail('list-unique', 'it came twice', path)
    }
    for (const fault of metadataFaults(entry)) run.fail('metadata', fault, path)
    previous = path
    return entries.length < run.bounds.limit
  })
  if (end === 'failed') return undefined
  return { entries, complete: end === 'ended', directories: [...directories].sort(comparePaths) }
}

/** Lists again, in parts and from everywhere, and compares with the first listing. */
export async function checkListing(run: Run, listed: Listed): Promise<void> {
  await checkStable(run, listed)
  // A listing that disagrees with itself, or has no order, has no "rest" to compare with.
  if (run.broken('list-ends', 'list-paths', 'list-files', 'list-order', 'list-unique', 'list-stable')) return
  await checkResume(run, listed)
  await checkSeek(run, listed)
  await checkPrefix(run, listed)
  if (!run.broken('list-prefix')) await checkNothing(run, listed)
}

async function checkStable(run: Run, { entries, complete }: Listed): Promise<void> {
  const facts = ({ path, size, modified, version }: Entry) => show({ path, size, modified, version })
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

async function checkResume(run: Run, listed: Listed): Promise<void> {
  const paths = listed.entries.map((entry) => entry.path)
  for (const path of sample(paths, run.bounds.samples)) await compareRest(run, 'list-resume', { after: path }, listed)
}

/** Lists from keys between the paths, before the first one and after the last one. */
async function checkSeek(run: Run, listed: Listed): Promise<void> {
  const paths = new Set(listed.entries.map((entry) => entry.path))
  const few = Math.ceil(run.bounds.samples / 3)
  const keys = new Set(['', '!', '\u{10ffff}'])
  for (const path of sample([...paths], few)) {
    keys.add(`${path}.`).add(`${path}/`).add(`${path}\u{10ffff}`)
    keys.add([...path].slice(0, -1).join(''))
  }
  for (const directory of sample(listed.directories, few))
    keys.add(directory).add(directory.slice(0, -1)).add(afterSubtree(directory))
  for (const after of keys)
    if (isPath(after) && !paths.has(after)) await compareRest(run, 'list-seek', { after }, listed)
}

async function checkPrefix(run: Run, listed: Listed): Promise<void> {
  await compareRest(run, 'list-prefix', { prefix: '' }, listed)
  const resumes = !run.broken('list-resume', 'list-seek')
  for (const prefix of sample(listed.directories, run.bounds.samples)) {
    await compareRest(run, 'list-prefix', { prefix }, listed)
    if (!resumes || run.broken('list-prefix')) continue
    const below = listed.entries.filter((entry) => entry.path.startsWith(prefix)).map((entry) => entry.path)
    const ends = [listed.entries[0]?.path, listed.entries.at(-1)?.path, afterSubtree(prefix), prefix]
    for (const after of new Set([...sample(below, 3), ...ends]))
      if (after !== undefined) await compareRest(run, 'list-prefix', { prefix, after }, listed)
  }
}

async function checkNothing(run: Run, { entries, directories }: Listed): Promise<void> {
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
      run.fail('list-nothing', `it yielded ${show(entry.path)}`, prefix)
      return false
    })
  }
}

/** Compares a listing with the part of the first one that the query asks for. */
async function compareRest(run: Run, promise: PromiseId, query: ListQuery, listed: Listed): Promise<void> {
  const { prefix = '', after } = query
  const rest = listed.entries
    .map((entry) => entry.path)
    .filter((path) => path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0))
  const last = listed.entries.at(-1)?.path ?? ''
  const asked = `after ${show(after)}, below ${show(prefix)}`
  let index = 0
  const end = await run.walk(promise, query, (entry) => {
    const expected = rest[index++]
    if (expected === entry.path) return true
    if (expected !== undefined) run.fail(promise, `${asked}: it yielded ${show(entry.path)}, not this`, expected)
    // Beyond the limit of the first listing there may be more entries, but only below the prefix.
    else if (listed.complete || comparePaths(entry.path, last) <= 0 || !entry.path.startsWith(prefix))
      run.fail(promise, `${asked}: it yielded this too`, entry.path)
    return false
  })
  if (end === 'ended' && index < rest.length) run.fail(promise, `${asked}: it ended before this`, rest[index])
}
