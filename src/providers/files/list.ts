import type { BigIntStats } from 'node:fs'
import { isResourceError, notFound } from '../../core/errors.ts'
import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { createGroupedIterable } from '../../core/kit/groups.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { indexAfter } from '../../core/kit/sorted.ts'
import { isText, wholeCharacters } from '../../core/kit/utf8.ts'
import { baseName, comparePaths, resumeKeyIn } from '../../core/path.ts'
import type { Context, Entry, ListQuery } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { headingBytes, headingIn } from '../../text/front-matter.ts'
import { type MetadataRules, mimeTypeByName, noFacts, type RuleFacts } from './options.ts'
import {
  isSettled,
  type LeaveOut,
  modeAllowsReading,
  type PermitOptions,
  type Place,
  type Pool,
  type RootAccess,
  servableKind,
  statFiles,
  versionStamp,
} from './place.ts'
import {
  type Allows,
  createFileFactsCache,
  type DirectoryNames,
  type FactsByName,
  type FileFacts,
  type FileFactsCache,
  fileIdentity,
  maxDepth,
  mayRead,
  type NameCache,
  type OpenedEntry,
  type Walker,
} from './walk.ts'

import type { StateOfDirectory } from './watch.ts'

export interface EntryBuilderOptions {
  readonly walk: Walker
  readonly permit: PermitOptions
  readonly rules: MetadataRules | undefined
  readonly headings: Headings
  readonly pool: Pool
  readonly leaveOut: LeaveOut
}

interface ListedDirectory {
  readonly position: OpenedEntry
  readonly names: DirectoryNames
}

/** Facts of a name: `nothing` if it is not served, undefined for a symbolic link and before the stats of the name are read. */
type KnownFacts = FileFacts | 'nothing' | undefined

const unruled: RuleFacts = { facts: noFacts, heading: false }

export function createEntryBuilder({ walk, permit, rules, headings, pool, leaveOut }: EntryBuilderOptions) {
  /** The facts that rules set, by the index of a name: matching globs is slow. */
  const factsByNames = new WeakMap<DirectoryNames, (RuleFacts | undefined)[]>()

  const ruledAt = (directory: ListedDirectory, index: number, path: string): RuleFacts => {
    if (rules === undefined) return unruled
    const ruleFacts =
      factsByNames.get(directory.names) ?? new Array<RuleFacts | undefined>(directory.names.names.length)
    const facts = ruleFacts[index] ?? rules(path)
    ruleFacts[index] = facts
    factsByNames.set(directory.names, ruleFacts)
    return facts
  }

  const entryOf = (
    directory: ListedDirectory,
    index: number,
    fileFacts: KnownFacts,
    signal: AbortSignal,
  ): Entry | undefined | Promise<Entry | undefined> => {
    const { position, names } = directory
    const name = names.names[index]
    if (name === undefined) return undefined
    if (names.links.has(name)) return entryAt(position, name, signal)
    if (fileFacts === undefined || fileFacts === 'nothing') return undefined
    const path = `${position.aliases[0].path}${name}`
    const ruled = ruledAt(directory, index, path)
    const entry = describeFile(path, fileFacts, ruled)
    if (!ruled.heading) return entry
    return headings.title(entry, async () => (await walk.enter(position, name, false, signal)).place, signal)
  }

  const judge = (
    directory: ListedDirectory,
    index: number,
    stats: BigIntStats | undefined,
    factsByName: FactsByName | undefined,
    signal: AbortSignal,
  ): KnownFacts | Promise<KnownFacts> => {
    const { position, names } = directory
    const name = names.names[index] ?? ''
    if (names.links.has(name)) return undefined
    if (stats === undefined || servableKind(stats, position.device, permit) !== 'file') {
      factsByName?.note(index, 'nothing')
      return 'nothing'
    }
    const facts = toFileFacts(stats)
    const isAllowed = modeAllowsReading(stats)
    // A write through another hard link may raise its event in another directory.
    factsByName?.note(index, isAllowed && stats.nlink === 1n ? facts : undefined)
    if (!isAllowed) return mayRead(position.place, stats, name, pool, signal).then((may) => (may ? facts : 'nothing'))
    return facts
  }

  const entryAt = async (directory: OpenedEntry, name: string, signal: AbortSignal): Promise<Entry | undefined> => {
    try {
      return await describe(await walk.enter(directory, name, false, signal), signal)
    } catch (error) {
      if (!isResourceError(error, 'not-found')) leaveOut(`${directory.aliases[0].path}${name}`, error)
      return undefined
    }
  }

  const entriesOf = async (
    directory: ListedDirectory,
    group: readonly number[],
    factsByName: FactsByName | undefined,
    signal: AbortSignal,
  ): Promise<readonly Entry[]> => {
    const cachedGroup =
      factsByName === undefined || rules !== undefined ? undefined : cachedEntries(directory, group, factsByName)
    if (cachedGroup !== undefined) return cachedGroup
    const facts = group.map((index) => factsByName?.at(index))
    const missing = [...facts.keys()].filter((i) => facts[i] === undefined)
    const names = missing.map((i) => directory.names.names[group[i] ?? -1] ?? '')
    const { path } = directory.position.aliases[0]
    const stats = await statFiles(directory.position.place, names, pool, signal, (name, error) =>
      leaveOut(`${path}${name}`, error),
    )
    for (const [at, i] of missing.entries()) {
      const judged = judge(directory, group[i] ?? -1, stats[at], factsByName, signal)
      facts[i] = judged instanceof Promise ? await judged : judged
    }
    const entries: Entry[] = []
    for (let i = 0; i < group.length; i++) {
      const newEntry = entryOf(directory, group[i] ?? -1, facts[i], signal)
      const entry = newEntry instanceof Promise ? await newEntry : newEntry
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  const describe = async ({ place, aliases }: OpenedEntry, signal: AbortSignal): Promise<Entry> => {
    try {
      const { path } = aliases[0]
      const facts = rules?.(path) ?? unruled
      const entry = describeFile(path, toFileFacts(place.stats), facts)
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

/** Fast path without `rules`; undefined if the facts of a name are not cached, or the name is a symbolic link. */
function cachedEntries(
  { position, names: { names, links } }: ListedDirectory,
  group: readonly number[],
  factsByName: FactsByName,
): readonly Entry[] | undefined {
  const directory = position.aliases[0].path
  const entries: Entry[] = []
  for (const index of group) {
    const name = names[index]
    const fileFacts = factsByName.at(index)
    if (name === undefined || fileFacts === undefined || (links.size > 0 && links.has(name))) return undefined
    if (fileFacts !== 'nothing') entries.push(describeFile(`${directory}${name}`, fileFacts, unruled))
  }
  return entries
}

function toFileFacts(stats: BigIntStats): FileFacts {
  return { size: Number(stats.size), modified: Number(stats.mtimeMs), version: versionStamp(stats) }
}

function describeFile(path: string, { size, modified, version }: FileFacts, { facts }: RuleFacts): Entry {
  const mimeType = facts.mimeType ?? mimeTypeByName(baseName(path))
  if (facts === noFacts && mimeType !== undefined) return { path, mimeType, size, modified, version }
  if (mimeType === undefined) return { path, ...facts, size, modified, version }
  return { path, ...facts, mimeType, size, modified, version }
}

export function describeDirectory(path: string, stats: BigIntStats): Entry {
  // A recent stamp is no version: a further change at the same time leaves it unchanged.
  const version = isSettled(stats, Date.now()) ? { version: versionStamp(stats) } : {}
  return { path, mimeType: directoryMimeType, modified: Number(stats.mtimeMs), ...version }
}

export function createHeadings(places: RootAccess, leaveOut: LeaveOut) {
  const titles = createLruCache<{ readonly title: string | undefined }>(20_000)

  const readTitle = async (
    entry: Entry,
    open: () => Promise<Place>,
    signal: AbortSignal,
  ): Promise<string | undefined> => {
    const place = await open()
    try {
      if (!place.stats.isFile() || versionStamp(place.stats) !== entry.version) return undefined
      return await readHeading(places, place, signal)
    } finally {
      place.close()
    }
  }

  return {
    /** Returns the entry with the first heading of its file as title, if there is one. Closes the place that `open` returns. */
    title: async (entry: Entry, open: () => Promise<Place>, signal: AbortSignal): Promise<Entry> => {
      const key = `${entry.version}/${entry.path}`
      let cachedTitle = titles.get(key)
      try {
        cachedTitle ??= { title: await readTitle(entry, open, signal) }
      } catch (error) {
        if (!isResourceError(error, 'not-found')) leaveOut(entry.path, error)
        return entry
      }
      titles.set(key, cachedTitle)
      return cachedTitle.title === undefined ? entry : { ...entry, title: cachedTitle.title }
    },
  }
}

export type Headings = ReturnType<typeof createHeadings>

async function readHeading(places: RootAccess, place: Place, signal: AbortSignal): Promise<string | undefined> {
  const handle = await places.open(place, signal)
  try {
    const buffer = Buffer.alloc(headingBytes)
    const length = await handle.read(buffer, { offset: 0, length: headingBytes, position: 0 }, signal)
    const head = buffer.subarray(0, length)
    const text = head.subarray(0, wholeCharacters(head).to)
    return isText(text) ? headingIn(text.toString()) : undefined
  } finally {
    handle.close()
  }
}

interface ListerOptions extends EntryBuilderOptions {
  readonly names: NameCache
  /** Asks a running watch for the states of directories. `files` is the number of files to examine without an answer. */
  readonly confirm?: (files: number) => Promise<StateOfDirectory | undefined>
  /** How long confirmed facts are cached, in milliseconds. */
  readonly keptMs: number
  /** Throws when the provider is closed, or the signal has aborted. */
  readonly check: (signal: AbortSignal) => void
}

interface Frame {
  readonly position: OpenedEntry
  readonly names: DirectoryNames
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
  readonly identity: string
}

/** Number of files in a group to examine: at the beginning, and at most. Groups grow, because a caller may want only one file. */
const [firstGroup, lastGroup] = [4, 64]
const maxTried = 1000
/**
 * Number of files that a listing examines before it asks the watch, because asking takes as long as examining about 20 files. The second number is
 * for directories whose facts are cached.
 */
const [unasked, unaskedAgain] = [64, 8]
/** How long an answer of the watch is used, in milliseconds. */
const confirmedMs = 20

export function createFileLister(options: ListerOptions) {
  const { walk, names, confirm, keptMs, check, leaveOut } = options
  const open = async (position: OpenedEntry, after: string, signal: AbortSignal): Promise<Frame> => {
    const directoryNames = await names.of(position, signal)
    const index = after === '' ? 0 : indexAfter(directoryNames.names, after)
    // The directory that contains `after` sorts before it, but may hold names after it, so it is entered once more.
    const inside = directoryNames.names[index - 1]
    const enters = inside?.endsWith('/') === true && after.startsWith(inside)
    return {
      position,
      names: directoryNames,
      index: enters ? index - 1 : index,
      after,
      identity: fileIdentity(position.place),
    }
  }

  const descend = async (frame: Frame, name: string, signal: AbortSignal): Promise<Frame | undefined> => {
    const after = frame.after.startsWith(name) ? frame.after.slice(name.length) : ''
    let position: OpenedEntry | undefined
    try {
      position = await walk.enter(frame.position, name.slice(0, -1), true, signal)
      return await open(position, after, signal)
    } catch (error) {
      position?.place.close()
      if (!isResourceError(error, 'not-found')) leaveOut(childPath(frame, name), error)
      return undefined
    }
  }

  const cache = createFileFactsCache(keptMs)
  const entriesIn = createEntryBuilder(options)

  const stat = async (path: string, context: Context): Promise<Entry> => {
    const position = await walk.to(path, context)
    if (position.place.stats.isFile()) return entriesIn.describe(position, context.signal)
    position.place.close()
    return describeDirectory(position.aliases[0].path, position.place.stats)
  }

  const groups = async function* (
    { prefix = '', after, shallow = false, skim }: ListQuery,
    signal: AbortSignal,
    allows: Allows | undefined,
  ): AsyncGenerator<readonly Entry[], void> {
    /** Whether one entry of each directory is enough. */
    const isSparing = shallow || skim !== undefined
    check(signal)
    const rest = resumeKeyIn(prefix, after)
    if (rest === undefined) return
    const frames: Frame[] = []
    /** Closes the directories below the first, because one entry found in them is enough. */
    const leave = () => {
      for (const { position } of frames.splice(1)) position.place.close()
    }
    let size = firstGroup
    const factsIn = createKnown(confirm, cache)
    try {
      const start = await walk.to(prefix, { signal, allows })
      try {
        // Entries begin with the prefix: a directory that is listed in another spelling has none.
        if (start.aliases[0].path !== prefix) throw notFound('listed in another spelling')
        frames.push(await open(start, rest, signal))
      } catch (error) {
        start.place.close()
        throw error
      }
      for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
        const name = frame.names.names[frame.index]
        if (name === undefined) {
          frames.pop()
          frame.position.place.close()
        } else if (name.endsWith('/')) {
          frame.index++
          const isWanted = frames.length + depthOf(prefix) < maxDepth && (skim?.(childPath(frame, name)) ?? true)
          const child = isWanted ? await descend(frame, name, signal) : undefined
          if (child !== undefined) frames.push(child)
          if (isSparing) size = 1
        } else {
          const group = takeGroup(frame, size, skim)
          size = Math.min(size * 2, lastGroup)
          const facts = await factsIn(frame, group.length)
          const entries = await entriesIn.of(frame, group, facts, signal)
          check(signal)
          const [first] = entries
          if (first !== undefined && isSparing && frames.length > 1) {
            if (shallow) {
              const path = first.path.slice(0, first.path.indexOf('/', prefix.length) + 1)
              if (after === undefined || comparePaths(path, after) > 0) yield [{ path, mimeType: directoryMimeType }]
            } else yield [first]
            leave()
            size = firstGroup
          } else if (first !== undefined) yield entries
          check(signal)
        }
        if (eventLoopYield.due()) await eventLoopYield.take()
      }
    } catch (error) {
      if (!isResourceError(error, 'not-found')) throw error
    } finally {
      for (const { position } of frames) position.place.close()
    }
  }

  return {
    stat,
    list: (query: ListQuery, signal: AbortSignal, allows?: Allows): AsyncIterable<Entry> =>
      createGroupedIterable(() => groups(query, signal, allows), signal),
  }
}

/**
 * Creates a function for one list: it returns the cached facts of a directory if a watch confirms them, else a recorder that forgets facts which
 * differ.
 */
function createKnown(confirm: ListerOptions['confirm'], cache: FileFactsCache) {
  let count = 0
  let confirmed: StateOfDirectory | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  return async ({ identity, names, index }: Frame, more: number): Promise<FactsByName | undefined> => {
    count += more
    if (confirm === undefined) return undefined
    if (count < (cache.knows(names) ? unaskedAgain : unasked)) return cache.comparing(names)
    if (performance.now() - askedAt > confirmedMs) {
      askedAt = performance.now()
      confirmed = await confirm(names.names.length - index)
    }
    const state = confirmed?.(identity)
    return state === undefined ? cache.comparing(names) : cache.of(names, state)
  }
}

function depthOf(prefix: string): number {
  return prefix.split('/').length - 1
}

function childPath({ position }: Frame, name: string): string {
  return `${position.aliases[0].path}${name}`
}

function takeGroup(frame: Frame, size: number, skim: ListQuery['skim']): readonly number[] {
  const { names } = frame.names
  const group: number[] = []
  for (let tried = 0; tried < maxTried && group.length < size; tried++) {
    const name = names[frame.index]
    if (name === undefined || name.endsWith('/')) break
    if (skim?.(childPath(frame, name)) ?? true) group.push(frame.index)
    frame.index++
  }
  return group
}
