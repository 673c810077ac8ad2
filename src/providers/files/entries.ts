import type { BigIntStats } from 'node:fs'
import { isResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { isText, wholeCharacters } from '../../core/kit/utf8.ts'
import { baseName } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { headingBytes, headingIn } from '../../text/front-matter.ts'
import type { LeaveOut, Place, Places, Pool } from './access.ts'
import { mimeTypeOf, noFacts, type RuleFacts, type Rules } from './media.ts'
import type { DirectoryNames, FactsByName, FileFacts } from './names.ts'
import { isSettled, kindOf, lookAtAll, modeAllows, type PermitOptions, stampOf } from './stats.ts'
import { mayRead, type Position, type Walk } from './walk.ts'

export interface EntriesOptions {
  readonly walk: Walk
  readonly permit: PermitOptions
  readonly rules: Rules | undefined
  readonly headings: Headings
  readonly pool: Pool
  readonly leaveOut: LeaveOut
}

interface ListedDirectory {
  readonly position: Position
  readonly names: DirectoryNames
}

/** Facts of a name: `nothing` if it is not served, undefined for a symbolic link and before the stats of the name are read. */
type KnownFacts = FileFacts | 'nothing' | undefined

const unruled: RuleFacts = { facts: noFacts, heading: false }

/** Creates the functions that make entries: `of` for the files of a directory, `describe` for one file. */
export function createEntries({ walk, permit, rules, headings, pool, leaveOut }: EntriesOptions) {
  /** Cache of the facts that rules set for each name of a directory, because globs are slow. It lives as long as the names. */
  const told = new WeakMap<DirectoryNames, (RuleFacts | undefined)[]>()

  const ruledAt = (directory: ListedDirectory, index: number, path: string): RuleFacts => {
    if (rules === undefined) return unruled
    const known = told.get(directory.names) ?? new Array<RuleFacts | undefined>(directory.names.names.length)
    const facts = known[index] ?? rules(path)
    known[index] = facts
    told.set(directory.names, known)
    return facts
  }

  /** Returns the entry of a file, at once if nothing has to be waited for. */
  const entryOf = (
    directory: ListedDirectory,
    index: number,
    seen: KnownFacts,
    signal: AbortSignal,
  ): Entry | undefined | Promise<Entry | undefined> => {
    const { position, names } = directory
    const name = names.names[index]
    if (name === undefined) return undefined
    if (names.links.has(name)) return entryAt(position, name, signal)
    if (seen === undefined || seen === 'nothing') return undefined
    const path = `${position.aliases[0].path}${name}`
    const ruled = ruledAt(directory, index, path)
    const entry = describeFile(path, seen, ruled)
    if (!ruled.heading) return entry
    return headings.title(entry, async () => (await walk.enter(position, name, false, signal)).place, signal)
  }

  /** Returns the facts in the stats of a name. Caches them if every later change of the file raises an event in the directory. */
  const judge = (
    directory: ListedDirectory,
    index: number,
    stats: BigIntStats | undefined,
    looked: FactsByName | undefined,
    signal: AbortSignal,
  ): KnownFacts | Promise<KnownFacts> => {
    const { position, names } = directory
    const name = names.names[index] ?? ''
    if (names.links.has(name)) return undefined
    if (stats === undefined || kindOf(stats, position.device, permit) !== 'file') {
      looked?.note(index, 'nothing')
      return 'nothing'
    }
    const facts = factsOf(stats)
    const isAllowed = modeAllows(stats)
    // A write through another hard link raises its event in another directory.
    looked?.note(index, isAllowed && stats.nlink === 1n ? facts : undefined)
    if (!isAllowed) return mayRead(position.place, stats, name, pool, signal).then((may) => (may ? facts : 'nothing'))
    return facts
  }

  /** Returns the entry of the target of a symbolic link. */
  const entryAt = async (directory: Position, name: string, signal: AbortSignal): Promise<Entry | undefined> => {
    try {
      return await describe(await walk.enter(directory, name, false, signal), signal)
    } catch (error) {
      if (!isResourceError(error, 'not-found')) leaveOut(`${directory.aliases[0].path}${name}`, error)
      return undefined
    }
  }

  /**
   * Returns the served entries of the names of a group.
   *
   * @param group Indices of names that are not directories.
   * @param looked Cached facts, which need not be read from the disk. New ones are added.
   */
  const entriesOf = async (
    directory: ListedDirectory,
    group: readonly number[],
    looked: FactsByName | undefined,
    signal: AbortSignal,
  ): Promise<readonly Entry[]> => {
    const known = looked === undefined || rules !== undefined ? undefined : knownOf(directory, group, looked)
    if (known !== undefined) return known
    const seen = group.map((index) => looked?.at(index))
    const missing = [...seen.keys()].filter((i) => seen[i] === undefined)
    const names = missing.map((i) => directory.names.names[group[i] ?? -1] ?? '')
    const { path } = directory.position.aliases[0]
    const stats = await lookAtAll(directory.position.place, names, pool, signal, (name, error) =>
      leaveOut(`${path}${name}`, error),
    )
    for (const [at, i] of missing.entries()) {
      const judged = judge(directory, group[i] ?? -1, stats[at], looked, signal)
      seen[i] = judged instanceof Promise ? await judged : judged
    }
    const entries: Entry[] = []
    for (let i = 0; i < group.length; i++) {
      const made = entryOf(directory, group[i] ?? -1, seen[i], signal)
      const entry = made instanceof Promise ? await made : made
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  /** Returns the entry of a file, and closes its position. */
  const describe = async ({ place, aliases }: Position, signal: AbortSignal): Promise<Entry> => {
    try {
      const { path } = aliases[0]
      const facts = rules?.(path) ?? unruled
      const entry = describeFile(path, factsOf(place.stats), facts)
      const open = async () => {
        place.keep()
        return place
      }
      return facts.heading ? await headings.title(entry, open, signal) : entry
    } finally {
      place.close()
    }
  }

  return { of: entriesOf, describe }
}

/**
 * Returns the entries of a group of names without rules, if the facts of all are cached; otherwise undefined. It is a fast path,
 * which avoids the arrays of the general case.
 */
function knownOf(
  { position, names: { names, links } }: ListedDirectory,
  group: readonly number[],
  looked: FactsByName,
): readonly Entry[] | undefined {
  const directory = position.aliases[0].path
  const entries: Entry[] = []
  for (const index of group) {
    const name = names[index]
    const seen = looked.at(index)
    if (name === undefined || seen === undefined || (links.size > 0 && links.has(name))) return undefined
    if (seen !== 'nothing') entries.push(describeFile(`${directory}${name}`, seen, unruled))
  }
  return entries
}

function factsOf(stats: BigIntStats): FileFacts {
  return { size: Number(stats.size), modified: Number(stats.mtimeMs), version: stampOf(stats) }
}

/** Returns the entry of a file, without its heading. Opens nothing. */
function describeFile(path: string, { size, modified, version }: FileFacts, { facts }: RuleFacts): Entry {
  const mimeType = facts.mimeType ?? mimeTypeOf(baseName(path))
  // Fast path without rules: it avoids the spread.
  if (facts === noFacts && mimeType !== undefined) return { path, mimeType, size, modified, version }
  if (mimeType === undefined) return { path, ...facts, size, modified, version }
  return { path, ...facts, mimeType, size, modified, version }
}

export function describeDirectory(path: string, stats: BigIntStats): Entry {
  // A creation, deletion or rename in the directory changes its stamp.
  const version = isSettled(stats, Date.now()) ? { version: stampOf(stats) } : {}
  return { path, mimeType: directoryMimeType, modified: Number(stats.mtimeMs), ...version }
}

/** Cache of the titles that files have in their first heading, by version and path. */
export function createHeadings(places: Places, leaveOut: LeaveOut) {
  const titles = createRecent<{ readonly title: string | undefined }>(20_000)

  const read = async (entry: Entry, open: () => Promise<Place>, signal: AbortSignal): Promise<string | undefined> => {
    const place = await open()
    try {
      // The file was replaced meanwhile: the next listing reads its heading.
      if (!place.stats.isFile() || stampOf(place.stats) !== entry.version) return undefined
      return await readHeading(places, place, signal)
    } finally {
      place.close()
    }
  }

  return {
    /** Returns the entry with the first heading of its file as title, if it has one. `open` opens the file; the callee closes it. */
    title: async (entry: Entry, open: () => Promise<Place>, signal: AbortSignal): Promise<Entry> => {
      const key = `${entry.version}/${entry.path}`
      let known = titles.get(key)
      try {
        known ??= { title: await read(entry, open, signal) }
      } catch (error) {
        if (!isResourceError(error, 'not-found')) leaveOut(entry.path, error)
        return entry
      }
      titles.set(key, known)
      return known.title === undefined ? entry : { ...entry, title: known.title }
    },
  }
}

export type Headings = ReturnType<typeof createHeadings>

async function readHeading(places: Places, place: Place, signal: AbortSignal): Promise<string | undefined> {
  const handle = await places.open(place, signal)
  try {
    const buffer = Buffer.alloc(headingBytes)
    const length = await handle.read(buffer, { offset: 0, length: headingBytes, position: 0 }, signal)
    const head = buffer.subarray(0, length)
    const text = head.subarray(0, wholeCharacters(head).to)
    // The title of a file in another encoding is found by the wrapper that decodes it.
    return isText(text) ? headingIn(text.toString()) : undefined
  } finally {
    handle.close()
  }
}
