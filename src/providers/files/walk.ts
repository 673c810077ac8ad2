import * as fs from 'node:fs'
import { isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import { compileGlobs, compileReach } from '../../core/glob.ts'
import { eventLoopYield, sortInSlices } from '../../core/kit/event-loop-yield.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { indexAfter } from '../../core/kit/sorted.ts'
import { baseName, canonicalPath, comparePaths, mayHaveOtherSpellings, segmentFault } from '../../core/path.ts'
import type { Context } from '../../core/provider.ts'
import type { IgnoreFiles } from './ignore-files.ts'
import { foldName, type Ignores, isDotenv, isExcludedByDefault, isIgnored } from './ignores.ts'
import type { DefaultExcludes } from './options.ts'
import {
  createDirectoryFacts,
  isSettled,
  modeAllowsReading,
  type PermitOptions,
  type Place,
  type Pool,
  type RootAccess,
  servableKind,
  statFile,
  toFileError,
  untilAbort,
  versionStamp,
} from './place.ts'
import { isFileName } from './root.ts'

export interface VisibilityOptions {
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  readonly defaultExcludes: DefaultExcludes
  readonly dotenv?: boolean
  readonly hidden: boolean
  readonly platform?: NodeJS.Platform
}

/** Whether a path may be served, judged by its name, provided that its parent directory may be served. A directory's path ends in `/`. */
export type Visibility = (path: string, ignores: Ignores | undefined) => boolean

export type NameRule = 'name' | 'hidden' | 'default' | 'exclude' | 'include' | 'gitignore'

/** Maximum length of a path that is served, in UTF-16 code units: about the limit of system calls (`PATH_MAX`). */
const maxPath = 4096

/** @throws ResourceError `invalid` for a malformed glob. */
export function createVisibility(options: VisibilityOptions): Visibility {
  const judge = createNameJudge(options)
  return (path, ignores) => judge(path, ignores) === undefined
}

/** @throws ResourceError `invalid` for a malformed glob. */
export function createNameJudge(options: VisibilityOptions) {
  const excluded = createExclusion(options.exclude ?? [])
  const included = createInclusion(options.include)
  const excludedByDefault = createDefaultExclusion(options.defaultExcludes)
  const { platform = process.platform } = options
  /** Like {@link Visibility}, but returns the rule that leaves a path out; undefined when it may be served. */
  return (path: string, ignores: Ignores | undefined): NameRule | undefined => {
    const name = baseName(path)
    if (path.length > maxPath || segmentFault(name) !== undefined || !isFileName(name, platform)) return 'name'
    if (!options.hidden && name.startsWith('.')) return 'hidden'
    const isWanted = options.dotenv && isDotenv(path)
    if (!isWanted && excludedByDefault(path)) return 'default'
    if (excluded(path)) return 'exclude'
    if (!included(path)) return 'include'
    return !isWanted && isIgnored(path, ignores) ? 'gitignore' : undefined
  }
}

type PathTest = (path: string) => boolean

export function ignoreFileOptions(options: {
  readonly gitignore: boolean
  readonly worktrees: boolean
  readonly defaultExcludes: DefaultExcludes
}) {
  const { gitignore, worktrees, defaultExcludes } = options
  const excepted = typeof defaultExcludes === 'object' ? compileGlobs(defaultExcludes.except) : () => !defaultExcludes
  return { gitignore, worktrees, servesPrivate: excepted }
}

function createDefaultExclusion(excludes: DefaultExcludes): PathTest {
  if (excludes === false) return () => false
  if (excludes === true || excludes.except.length === 0) return isExcludedByDefault
  const excepted = compileGlobs(excludes.except)
  return (path) => isExcludedByDefault(path) && !excepted(path)
}

/** Returns a test whether a path matches a glob, in any letter case. Spellings that some file systems treat as one name match alike. */
export function createExclusion(patterns: readonly string[]): PathTest {
  if (patterns.length === 0) return () => false
  const matches = compileGlobs(patterns, { ignoreCase: true })
  return (path) => {
    if (matches(path)) return true
    const folded = path.split('/').map(foldName).join('/')
    return folded !== path && matches(folded)
  }
}

/** Returns a test of paths: a file is included when it or a parent directory matches; a directory, also when it may contain such a file. */
function createInclusion(patterns: readonly string[] | undefined): PathTest {
  if (patterns === undefined) return () => true
  const matches = compileGlobs(patterns)
  const reach = compileReach(patterns)
  const within: PathTest = remembered((directory) => {
    if (directory === '') return false
    return matches(directory) || within(directory.slice(0, directory.lastIndexOf('/', directory.length - 2) + 1))
  })
  return (path) => {
    if (path.endsWith('/')) return within(path) || reach(path) !== 'none'
    return within(path.slice(0, path.lastIndexOf('/') + 1)) || matches(path)
  }
}

function remembered(test: PathTest): PathTest {
  const verdicts = new Map<string, boolean>()
  return (path) => {
    const verdict = verdicts.get(path)
    if (verdict !== undefined) return verdict
    if (verdicts.size >= 1000) verdicts.clear()
    const value = test(path)
    verdicts.set(path, value)
    return value
  }
}

/** A path by which a place was reached, and the ignore rules that apply to it (for a directory: inside it). */
interface Alias {
  readonly path: string
  readonly ignores: Ignores | undefined
}

/** A file or directory that may be served, held open. The receiver must close its place. */
export interface OpenedEntry {
  readonly place: Place
  /** The requested name, as the directories list it, comes before those of symbolic links on the way. The place must be visible under each. */
  readonly aliases: readonly [Alias, ...Alias[]]
  /** Device number of the root. */
  readonly device: bigint
  /** Aliases other than the requested one must pass this test. */
  readonly allows: Allows
  /** Stats of the directories from the root to here. */
  readonly trail: readonly fs.BigIntStats[]
  /** Number of symbolic links that were followed from the root to here. */
  readonly links: number
}

export type Allows = (path: string) => boolean

/** Opens files and directories that may be served. Every method throws `not-found` for one that may not, whatever the reason. */
export interface Walker {
  root(signal: AbortSignal, allows?: Allows): Promise<OpenedEntry>
  /** Opens a child of a directory. The parent stays open. */
  enter(parent: OpenedEntry, name: string, directory: boolean, signal: AbortSignal): Promise<OpenedEntry>
  /** Opens a path: a directory when it ends in `/`. */
  to(path: string, caller: Caller): Promise<OpenedEntry>
}

type Caller = Pick<Context, 'signal' | 'allows'>

interface WalkOptions {
  readonly places: RootAccess
  readonly pool: Pool
  readonly visible: Visibility
  readonly permit: PermitOptions
  readonly names: ListedNames
  readonly look?: StatEntry
  readonly symlinks: 'deny' | 'beneath'
  readonly ignoreFiles: IgnoreFiles
}

/** Maximum depth of served directories. A listing holds a descriptor for each level. */
export const maxDepth = 256
/** Maximum number of symbolic links in one path. Otherwise directories that link to each other could be reached by very many paths. */
const maxLinksInPath = 4

export function createWalk(options: WalkOptions): Walker {
  const { places, pool, visible, permit, symlinks, ignoreFiles, names } = options
  const { look = (place, name, signal) => statFile(place, name, pool, signal) } = options
  const spelling = createSpelling(names, look)

  const root = async (signal: AbortSignal, allows: Allows = () => true): Promise<OpenedEntry> => {
    const place = await places.root(signal)
    try {
      const alias: Alias = { path: '', ignores: await ignoreFiles.inside(place, '', undefined, signal) }
      return { place, aliases: [alias], device: place.stats.dev, allows, trail: [place.stats], links: 0 }
    } catch (error) {
      place.close()
      throw toFileError(error)
    }
  }

  /** Opens the target of a link by a walk that follows no links, so that only a target that is served by its own path is found. */
  const follow = async (
    parent: OpenedEntry,
    name: string,
    directory: boolean,
    signal: AbortSignal,
  ): Promise<OpenedEntry> => {
    const target = await places.child(parent.place, name, { directory, follow: true }, signal)
    let real: string | undefined
    try {
      real = await places.where(target, signal)
    } finally {
      target.close()
    }
    if (real === undefined) throw notFound('a symbolic link leads out of the root')
    const entry = await to(directory && real !== '' ? `${real}/` : real, { signal }, false)
    if (fileIdentity(entry.place) === fileIdentity(target)) return entry
    entry.place.close()
    throw notFound('a symbolic link was changed while it was followed')
  }

  const followed = symlinks === 'beneath'

  /** Opens a child by its listed name, or by a canonically equivalent one. */
  const find = async (
    parent: OpenedEntry,
    name: string,
    directory: boolean,
    signal: AbortSignal,
    follows = followed,
  ): Promise<OpenedEntry> => {
    try {
      const step = directory ? `${name}/` : name
      const { device, allows, trail } = parent
      const aliases: [Alias, ...Alias[]] = [...parent.aliases]
      for (const [at, { path, ignores }] of aliases.entries()) {
        if (!visible(`${path}${step}`, ignores)) throw notFound('not visible')
        aliases[at] = { path: `${path}${step}`, ignores }
      }
      let place = await places.child(parent.place, name, { directory, only: !follows }, signal)
      let links = parent.links
      /** The paths of the target of a link, with the ignore rules there. Empty if the place is not a link. */
      let real: readonly Alias[] = []
      try {
        if (!(await spelling.isListed(parent, name, signal))) throw notFound('listed in another spelling')
        if (place.stats.isSymbolicLink()) {
          if (!follows) throw notFound('a symbolic link')
          if (links >= maxLinksInPath) throw notFound('behind too many links')
          const target = await follow(parent, name, directory, signal)
          place.close()
          place = target.place
          real = target.aliases
          links++
        }
        if (![...aliases.slice(1), ...real].every(({ path }) => allows(path))) throw notFound('denied by another name')
        if (servableKind(place.stats, device, permit) !== (directory ? 'directory' : 'file'))
          throw notFound('a directory where a file is expected, or a file where a directory is')
        if (!modeAllowsReading(place.stats) && !(await mayRead(place, place.stats, '', pool, signal)))
          throw notFound('no right to read')
        if (!directory) return { place, aliases: [...aliases, ...real], device, allows, trail, links }
        const { stats } = place
        if (trail.some(({ dev, ino }) => dev === stats.dev && ino === stats.ino))
          throw notFound('a link leads in a loop')
        for (const [at, { path, ignores }] of aliases.entries())
          aliases[at] = { path, ignores: await ignoreFiles.inside(place, path, ignores, signal) }
        return { place, aliases: [...aliases, ...real], device, allows, trail: [...trail, stats], links }
      } catch (error) {
        place.close()
        throw toFileError(error)
      }
    } catch (error) {
      if (!isResourceError(error, 'not-found')) throw error
      const usualName = await spelling.listedFor(parent, name, signal)
      if (usualName === undefined || usualName === name) throw error
      return find(parent, usualName, directory, signal, follows)
    }
  }

  const to = async (path: string, { signal, allows }: Caller, follows = followed): Promise<OpenedEntry> => {
    let position = await root(signal, allows)
    if (path === '') return position
    const directory = path.endsWith('/')
    const segments = (directory ? path.slice(0, -1) : path).split('/')
    for (const [index, segment] of segments.entries()) {
      const parent = position
      try {
        if (index > maxDepth) throw notFound('too deep')
        position = await find(parent, segment, directory || index < segments.length - 1, signal, follows)
      } finally {
        parent.place.close()
      }
    }
    return position
  }

  return { root, enter: find, to }
}

const maxVerdicts = 10_000

/** Caches the verdicts on names, because judging a name takes a notable part of a small read. */
export function cacheVerdicts(visible: Visibility): Visibility {
  const verdicts = new Map<string, { readonly ignores: Ignores | undefined; readonly shown: boolean }>()
  return (path, ignores) => {
    const verdict = verdicts.get(path)
    // Rules are immutable: other rules are another object.
    if (verdict !== undefined && verdict.ignores === ignores) return verdict.shown
    const isVisible = visible(path, ignores)
    if (verdicts.size >= maxVerdicts) verdicts.clear()
    verdicts.set(path, { ignores, shown: isVisible })
    return isVisible
  }
}

export function fileIdentity({ stats }: Pick<Place, 'stats'>): string {
  return `${stats.dev}:${stats.ino}`
}

/** Whether this process may read the file or directory at a name below a place (or the place itself, for an empty name). */
export async function mayRead(place: Place, stats: fs.BigIntStats, name: string, pool: Pool, signal: AbortSignal) {
  if (modeAllowsReading(stats)) return true
  const { R_OK, X_OK } = fs.constants
  const path = name === '' ? place.at : `${place.at}/${name}`
  const mode = stats.isDirectory() ? R_OK | X_OK : R_OK
  const allowed = () =>
    fs.promises.access(path, mode).then(
      () => true,
      () => false,
    )
  return pool.run(allowed, { signal, hold: place })
}

export interface DirectoryNames {
  /** The names that are visible by name, in path order. That of a directory ends in `/`. */
  readonly names: readonly string[]
  /** Names of symbolic links. `names` may have each as a file and as a directory, because the target may be either. */
  readonly links: ReadonlySet<string>
}

interface ListedNames {
  of(directory: OpenedEntry, signal: AbortSignal): Promise<DirectoryNames>
}

/** Returns the stats of one child of a directory, without following links; undefined when it is missing or inaccessible. */
export type StatEntry = (place: Place, name: string, signal: AbortSignal) => Promise<fs.BigIntStats | undefined>

/**
 * Compares names with those that directories list. A file system may accept several spellings of one name: in another case, composed or decomposed,
 * with ignored characters, or a short one (`SECRET~1.TXT`, FAT and NTFS). Rules judge the listed name.
 */
function createSpelling(names: ListedNames, look: StatEntry) {
  const facts = createDirectoryFacts()
  const composed = new WeakMap<DirectoryNames, ReadonlyMap<string, readonly string[]>>()

  return {
    /** Whether a directory lists a name in this spelling. */
    isListed: async (parent: OpenedEntry, name: string, signal: AbortSignal): Promise<boolean> => {
      if (facts.of(parent.place)?.has(`exactly ${name}`)) return true
      if (!(await mayBeSpelledOtherwise(parent.place, name, signal))) {
        facts.note(parent.place, `exactly ${name}`)
        return true
      }
      const { names: allNames } = await names.of(parent, signal)
      return [name, `${name}/`].some((one) => allNames[indexAfter(allNames, one) - 1] === one)
    },
    /** Returns the only listed name that is canonically equivalent to a name and differs from it; undefined if there is none, or several. */
    listedFor: async (parent: OpenedEntry, name: string, signal: AbortSignal): Promise<string | undefined> => {
      if (!mayHaveOtherSpellings(name)) return undefined
      const directoryNames = await names.of(parent, signal)
      const byForm = composed.get(directoryNames) ?? byCanonicalForm(directoryNames.names)
      composed.set(directoryNames, byForm)
      const [only, ...others] = byForm.get(canonicalPath(name)) ?? []
      return others.length === 0 && only !== name ? only : undefined
    },
  }

  /**
   * Whether the directory may accept other spellings of the name: the name looks like a short one, or a variant of it leads to a file. The
   * identity of that file proves nothing, because some file systems in user space (FUSE) number each spelling anew.
   */
  async function mayBeSpelledOtherwise(directory: Place, name: string, signal: AbortSignal) {
    if (/~\d/.test(name)) return true
    for (const variant of variantsOf(name)) if ((await look(directory, variant, signal)) !== undefined) return true
    return false
  }
}

/** Returns the names that may have other spellings, by canonical form and without a final `/`. */
function byCanonicalForm(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const namesByForm = new Map<string, string[]>()
  for (const usualName of names) {
    if (!mayHaveOtherSpellings(usualName)) continue
    const name = usualName.endsWith('/') ? usualName.slice(0, -1) : usualName
    const form = canonicalPath(name)
    const alike = namesByForm.get(form) ?? []
    // A symbolic link is listed as a file and as a directory.
    if (!alike.includes(name)) namesByForm.set(form, [...alike, name])
  }
  return namesByForm
}

function variantsOf(name: string): readonly string[] {
  const turned = Array.from(name, (character) => {
    const lower = character.toLowerCase()
    return lower === character ? character.toUpperCase() : lower
  }).join('')
  // Some file systems ignore a soft hyphen.
  const first = turned === name ? `${name}\u00ad` : turned
  return [...new Set([first, name.normalize('NFC'), name.normalize('NFD')])].filter((variant) => variant !== name)
}

const namesPerLook = 256

/** Sorts names in path order and removes duplicates. Yields to the event loop on the way. */
export async function sortNames(names: readonly string[]): Promise<readonly string[]> {
  let count = 0
  const slices = { due: () => ++count % namesPerLook === 0 && eventLoopYield.due(), rest: eventLoopYield.take }
  const unique: string[] = []
  for (const name of await sortInSlices(names, comparePaths, slices, sortRun)) {
    if (name !== unique.at(-1)) unique.push(name)
    if (slices.due()) await slices.rest()
  }
  return unique
}

function sortRun(names: string[]): string[] {
  // Up to U+D7FF, JavaScript's own order of UTF-16 units is that of UTF-8 bytes, and sorting by it is faster.
  const plain = names.every((name) => !/[\ud800-\uffff]/.test(name))
  return names.sort(plain ? undefined : comparePaths)
}

interface NamesSnapshot {
  readonly stamp: string
  readonly position: Pick<OpenedEntry, 'aliases'>
  /** Time after which the snapshot is stale, in milliseconds, as `performance.now()` returns it. */
  readonly until: number
  readonly names: DirectoryNames
}

const maxNames = 500_000
/** How long a snapshot is used, in milliseconds, on a file system that may not update the times of its directories. */
const maxForeignAgeMs = 1000

const never = new AbortController().signal
const noLinks: ReadonlySet<string> = new Set()

/**
 * Creates a cache of the names in directories, which reads them again when a directory has changed.
 *
 * @param links Whether the names of symbolic links are included.
 * @param mine Whether this thread has no other work, and so may block on a local file system.
 */
export function createNameCache(visible: Visibility, links: boolean, pool: Pool, mine = false) {
  const snapshots = createLruCache<NamesSnapshot>(maxNames, ({ names }) => names.names.length + 8)
  const reading = new Map<string, { readonly position: OpenedEntry; readonly snapshot: Promise<NamesSnapshot> }>()

  const shows = ({ aliases }: Pick<OpenedEntry, 'aliases'>, name: string): boolean =>
    aliases.every(({ path, ignores }) => visible(`${path}${name}`, ignores))

  const takeNames = async (position: OpenedEntry): Promise<NamesSnapshot> => {
    const { place } = position
    const time = Date.now()
    const inPool = () => readNames(place, pool)
    const currentNames = mine && place.local ? readNamesNow(place) : await (place.steady?.(inPool, never) ?? inPool())
    const names = await selectNames(currentNames, position)
    // A change during the read changes the stamp, unless another change came so shortly before that both have the same time.
    const settled = isSettled(place.stats, time)
    const until = settled ? (place.local ? Number.POSITIVE_INFINITY : performance.now() + maxForeignAgeMs) : 0
    return { stamp: versionStamp(place.stats), position: { aliases: position.aliases }, until, names }
  }

  const selectNames = async ({ names, linked }: FoundNames, position: OpenedEntry): Promise<DirectoryNames> => {
    const selected: string[] = []
    const isShown = (name: string) => shows(position, name)
    for (const name of names) {
      // Bytes that are not UTF-8 also become U+FFFD. Such a name leads to nothing, or to another file.
      const real = name.includes('\ufffd') ? await spelling(position.place, name) : name
      if (real !== undefined && isShown(real)) selected.push(real)
      if (eventLoopYield.due()) await eventLoopYield.take()
    }
    if (links) for (const name of linked) selected.push(...[name, `${name}/`].filter(isShown))
    const sortedNames = await sortNames(selected)
    return { names: sortedNames, links: links && linked.length > 0 ? new Set(linked) : noLinks }
  }

  const spelling = async (place: Place, name: string): Promise<string | undefined> => {
    const bare = name.endsWith('/') ? name.slice(0, -1) : name
    const stats = await statFile(place, bare, pool, never)
    return stats?.isDirectory() === true ? `${bare}/` : stats?.isFile() === true ? bare : undefined
  }

  return {
    of: async (position: OpenedEntry, signal: AbortSignal): Promise<DirectoryNames> => {
      signal.throwIfAborted()
      const { path } = position.aliases[0]
      const stamp = versionStamp(position.place.stats)
      const namesSnapshot = snapshots.get(path)
      if (
        namesSnapshot?.stamp === stamp &&
        performance.now() < namesSnapshot.until &&
        sameAliases(namesSnapshot.position, position)
      )
        return namesSnapshot.names

      const other = reading.get(path)
      if (
        other !== undefined &&
        versionStamp(other.position.place.stats) === stamp &&
        sameAliases(other.position, position)
      )
        return (await untilAbort(other.snapshot, signal)).names

      // The read runs to its end even if this caller aborts: others may wait for it.
      position.place.keep()
      const snapshot = takeNames(position).finally(() => {
        position.place.close()
        if (reading.get(path) === mine) reading.delete(path)
      })
      const mine = { position, snapshot }
      reading.set(path, mine)
      snapshot.then(
        (value) => snapshots.set(path, value),
        () => {},
      )
      return (await untilAbort(snapshot, signal)).names
    },
    shows,
    clear: (): void => snapshots.clear(),
  }
}

export type NameCache = ReturnType<typeof createNameCache>

export function sameAliases(a: Pick<OpenedEntry, 'aliases'>, b: Pick<OpenedEntry, 'aliases'>): boolean {
  return (
    a.aliases.length === b.aliases.length &&
    a.aliases.every(({ path, ignores }, i) => path === b.aliases[i]?.path && ignores === b.aliases[i]?.ignores)
  )
}

interface FoundNames {
  /** The names of files, and those of directories with a final `/`. */
  readonly names: string[]
  readonly linked: string[]
}

/** Maximum size of a directory whose names are read with one call, in bytes, according to its stats. */
const smallBytes = 16 * 1024

/**
 * Reads the names in a directory, those of a large one in chunks.
 *
 * @throws ResourceError `not-found` when it cannot be opened, `unavailable` when reading fails midway.
 */
async function readNames(place: Place, pool: Pool): Promise<FoundNames> {
  const names: FoundNames = { names: [], linked: [] }
  if (place.local && place.stats.size <= smallBytes) return readNamesNow(place)
  const readAll = async () => {
    const directory = await fs.promises.opendir(place.at, { bufferSize: 1024 })
    try {
      for (;;) {
        const entry = await directory.read()
        if (entry === null) return
        addEntryName(entry, names)
      }
    } catch (error) {
      throw new ResourceError(
        'unavailable',
        'A directory could not be read to its end. Try again later.',
        {},
        { cause: error },
      )
    } finally {
      await directory.close()
    }
  }
  try {
    await pool.run(readAll, { signal: never, hold: place })
    return names
  } catch (error) {
    throw toFileError(error)
  }
}

function readNamesNow(place: Place): FoundNames {
  const names: FoundNames = { names: [], linked: [] }
  try {
    for (const entry of fs.readdirSync(place.at, { withFileTypes: true })) addEntryName(entry, names)
    return names
  } catch (error) {
    throw toFileError(error)
  }
}

function addEntryName(entry: fs.Dirent, { names, linked }: FoundNames): void {
  if (entry.isFile()) names.push(entry.name)
  else if (entry.isDirectory()) names.push(`${entry.name}/`)
  else if (entry.isSymbolicLink()) linked.push(entry.name)
}

export interface FileFacts {
  readonly size: number
  /** Time of the last modification, in milliseconds since 1970. */
  readonly modified: number
  readonly version: string
}

/** Facts of the files of one directory, by the indices of their names. */
export interface FactsByName {
  /** Returns the facts of a file, `nothing` for a name that is not served, undefined for one that was not examined. */
  at(index: number): FileFacts | 'nothing' | undefined
  /** Records the facts of a file. Undefined removes them, for facts that may change without an event in the directory. */
  note(index: number, facts: FileFacts | 'nothing' | undefined): void
}

/**
 * Cache of the facts of examined files, for each directory. The facts are dropped with the names of the directory.
 *
 * @param keptMs How long facts are cached, in milliseconds. A change without an event is shown after that: a write through a memory map or
 * another hard link.
 */
export function createFileFactsCache(keptMs: number) {
  const factsCache = new WeakMap<
    DirectoryNames,
    { readonly state: number; readonly until: number; readonly looked: FactsByName }
  >()
  return {
    /** Whether facts of the directory are cached, even if they are out of date. */
    knows: (names: DirectoryNames): boolean => factsCache.has(names),
    /** Returns a recorder that only forgets cached facts which differ from those of a new examination; undefined when none are cached. */
    comparing: (names: DirectoryNames): FactsByName | undefined => {
      const facts = factsCache.get(names)?.looked
      return facts === undefined ? undefined : createComparing(facts)
    },
    /** @param state State of the directory, which differs after any change in it. Facts of another state are dropped. */
    of: (names: DirectoryNames, state: number): FactsByName => {
      const last = factsCache.get(names)
      const now = performance.now()
      if (last?.state === state && now < last.until) return last.looked
      const facts = createFactsByName(names.names.length)
      factsCache.set(names, { state, until: now + keptMs, looked: facts })
      return facts
    },
  }
}

export type FileFactsCache = ReturnType<typeof createFileFactsCache>

function createComparing(earlierFacts: FactsByName): FactsByName {
  return {
    at: () => undefined,
    note: (index, facts) => {
      const last = earlierFacts.at(index)
      if (last !== undefined && factsVersion(last) !== factsVersion(facts)) earlierFacts.note(index, undefined)
    },
  }
}

const factsVersion = (facts: FileFacts | 'nothing' | undefined) => (typeof facts === 'object' ? facts.version : facts)

function createFactsByName(length: number): FactsByName {
  const sizes = new Float64Array(length)
  const times = new Float64Array(length)
  /** The versions of the files. Undefined: not examined. Empty: not served. */
  const versions = new Array<string | undefined>(length)
  return {
    at: (index) => {
      const version = versions[index]
      if (version === undefined) return undefined
      return version === '' ? 'nothing' : { size: sizes[index] ?? 0, modified: times[index] ?? 0, version }
    },
    note: (index, facts) => {
      versions[index] = facts === 'nothing' ? '' : facts?.version
      if (facts === 'nothing' || facts === undefined) return
      sizes[index] = facts.size
      times[index] = facts.modified
    },
  }
}
