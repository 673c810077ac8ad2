import { constants } from 'node:buffer'
import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { invalid, type ResourceError, unavailable } from '../../core/errors.ts'
import { compileGlobs, type PathTest } from '../../core/glob.ts'
import { createSlices } from '../../core/kit/event-loop-yield.ts'
import { defined, requireInteger } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { findProgram, isProgram } from '../program.ts'
import {
  type Folder,
  type FolderKeeper,
  LinkError,
  linkedObjectsError,
  locateRepository,
  type OpenRepositoryFolders,
  openFolder,
  openFolderKeeper,
  openObjectFolders,
  openSubfolder,
  type RepositoryConfig,
  type RepositoryFolders,
  type RepositoryPlace,
  readDirectoryEntries,
  readFolderFile,
  readRepositoryConfig,
  repositoryConfigError,
  statEntry,
  symbolicLinkError,
} from './directory.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { createObjectDatabase, createTreeReader, type ObjectDatabase, type TreeReader } from './objects.ts'
import { createRefs, type Refs, type RefsOptions } from './refs.ts'

export interface GitOptions extends RepositoryPlace {
  /**
   * Globs over full ref names: only these refs, and the commits reachable from them, are served. `HEAD` is served when a glob matches it, or
   * when it is on a served branch. Default `HEAD`, `refs/heads/**` and `refs/tags/**`.
   */
  readonly refs?: readonly string[]
  /** Absolute paths of folders outside the repository that it may borrow objects from (`objects/info/alternates`). */
  readonly alternates?: readonly string[]
  /** Maximum size of a file, or of a range, that is read at once, and of a text page, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** Maximum number of commits of a log, and of a search for the dates of files. Default 10,000. */
  readonly maxCommits?: number
  /** Time-out of one answer of a git process, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number
  /** The git to run: an absolute path, or a name to search on PATH. Default `git`. */
  readonly git?: string
  /** Whether changes are notified. Default true. */
  readonly watch?: boolean
  /**
   * Interval at which refs and the working tree are compared with their last known state, in milliseconds, to find changes that the system does not
   * report. Default 30,000, at least 100, at most a day.
   */
  readonly reconcile?: number
  /** Whether a file is withheld: pages about the history name it, but show nothing of its content. Default: no file. */
  readonly withheld?: PathTest
  readonly log?: Log
}

export interface GitSettings
  extends Required<Omit<GitOptions, 'refs' | 'within'>>,
    Pick<GitOptions, 'within'>,
    Pick<RefsOptions, 'serves' | 'patterns' | 'onEntries'> {}

const defaultRefs = ['HEAD', 'refs/heads/**', 'refs/tags/**']
const mostBytes = Math.min(256 * 1024 * 1024, constants.MAX_STRING_LENGTH)

/** Adds the default values. @throws ResourceError `invalid` for a limit out of range, and for a malformed glob. */
export function completeGitOptions(options: GitOptions): GitSettings {
  const { refs = defaultRefs } = options
  return {
    repository: options.repository,
    ...defined({ within: options.within }),
    alternates: options.alternates ?? [],
    maxBytes: requireInteger('maxBytes', options.maxBytes ?? 16 * 1024 * 1024, 1, mostBytes),
    maxCommits: requireInteger('maxCommits', options.maxCommits ?? 10_000, 1, 1_000_000),
    timeoutMs: requireInteger('timeoutMs', options.timeoutMs ?? 10_000, 1, 600_000),
    git: options.git ?? 'git',
    watch: options.watch ?? true,
    reconcile: requireInteger('reconcile', options.reconcile ?? 30_000, 100, 24 * 3_600_000),
    withheld: options.withheld ?? (() => false),
    log: options.log ?? (() => {}),
    serves: compileGlobs(refs),
    patterns: [...new Set(refs.flatMap(patternsOf))],
  }
}

/** Returns the ref, or the directory of all refs, that a glob can match: its segments before the first wildcard, or `refs`. Empty for `HEAD`. */
function patternsOf(glob: string): readonly string[] {
  if (glob === 'HEAD') return []
  const segments = glob.replace(/^\//, '').split('/')
  const magic = segments.findIndex((segment) => /[*?[{\\]/.test(segment))
  const literal = magic === -1 ? segments : segments.slice(0, magic)
  return [literal.length > 1 && literal[0] === 'refs' ? literal.join('/').replace(/\/$/, '') : 'refs']
}

/**
 * The mirror: the git directory in which git runs. It is a folder of the provider's own, with a configuration of the provider's own, copies of small
 * files of the repository, and links to its refs and objects. So git reads refs and objects in every format that it knows, and never sees the
 * configuration, hooks, attributes or grafts of the repository. On Linux git does not see its alternates either, and the links lead to
 * directories that this process holds open.
 */
type Mirror = Awaited<ReturnType<typeof createMirror>>

interface Seen {
  /** Names of the refs, and of the directories of refs, that are symbolic links: they are left out. */
  readonly leftOut: readonly string[]
  readonly shallow: readonly string[]
  /** Whether packs or object directories came or went, so that long-lived processes may hold deleted ones open. */
  readonly hasOtherPacks: boolean
}

const isLinux = process.platform === 'linux'
const fans = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
/** Directories in whose place a symbolic link is an error; other links among refs are left out. */
const required = new Set(['refs/heads', 'refs/tags'])
/** A `HEAD` on no branch. git itself writes this name where `HEAD` is kept elsewhere. */
const noHead = 'ref: refs/heads/.invalid'
const maxHeadBytes = 4200
const maxExcludeBytes = 512 * 1024
const maxShallowBytes = 16 * 1024 * 1024
const maxDepth = 64
/** Age below which a directory may change again without a new modification time, in milliseconds. */
const unsettledMs = 50
/** Time after which a directory that was replaced is closed, in milliseconds: processes may still read it. */
const closeAfterMs = 60_000

/** Folders to remove when this process exits without closing their provider. */
const leftovers = new Set<string>()
let watchesExit = false

function watchExit(): void {
  if (watchesExit) return
  watchesExit = true
  process.on('exit', () => {
    for (const folder of leftovers) fs.rmSync(folder, { recursive: true, force: true })
  })
}

/** Creates the mirror, in a folder of the temporary folder of the system, with access only for this user. `create` fills it. */
async function createMirror() {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-git-'))
  const commonDir = join(folder, 'shadow.git')
  const refsDir = join(folder, 'refs.git')
  const links = createLinks(commonDir)
  leftovers.add(folder)
  watchExit()
  let gitDir = commonDir
  let updater = createMirrorUpdater(commonDir, gitDir, links)
  let isRemoved = false
  return {
    folder,
    /** A second git directory, for the refs of one request: it is without the refs and links of the repository. */
    refsDir,
    gitDir: () => gitDir,
    /** Creates both git directories anew. `isLinked`: the repository is a linked working tree, which has a `HEAD` of its own. */
    create: async (config: string, isLinked: boolean): Promise<void> => {
      // Work that still runs after the close must not create a folder that nothing removes.
      if (isRemoved) throw unavailable('The git provider is closed.')
      links.reset()
      await mkdir(folder, { recursive: true, mode: 0o700 })
      for (const path of [commonDir, refsDir]) {
        await rm(path, { recursive: true, force: true })
        for (const name of ['', 'objects', 'refs', 'info']) await mkdir(join(path, name))
        await writeFile(join(path, 'config'), path === commonDir ? config : config.replace(/^\trefStorage.*\n/m, ''))
        await writeFile(join(path, 'HEAD'), `${noHead}\n`)
      }
      gitDir = isLinked ? join(commonDir, ownName) : commonDir
      updater = createMirrorUpdater(commonDir, gitDir, links)
      if (!isLinked) return
      await mkdir(gitDir, { recursive: true })
      await writeFile(join(gitDir, 'commondir'), '../..\n')
      await writeFile(join(gitDir, 'HEAD'), `${noHead}\n`)
    },
    update: (anchors: OpenRepositoryFolders, layout: Wanted): Promise<Seen> => updater.update(anchors, layout),
    /** Links the parts that a split index consists of: gitformat-index(5). */
    linkIndex: async (own: Folder): Promise<void> => {
      const prefix = gitDir === commonDir ? '' : `${ownName}/`
      const names = (await readDirectoryEntries(own))
        .filter((entry) => entry.isFile() && /^sharedindex\.[0-9a-f]{40,64}$/.test(entry.name))
        .map(({ name }) => `${prefix}${name}`)
      for (const name of names) links.toFile(name, `${own.shared}/${name.slice(prefix.length)}`)
      links.keep(`${prefix}sharedindex.`, new Set(names))
    },
    objects: (): string =>
      updater
        .stores()
        .map((path) => (path.includes(delimiter) || path.startsWith('"') ? JSON.stringify(path) : path))
        .join(delimiter),
    /** Whether the mirror still exists, with its refs and objects. The system may have cleared its temporary folder. */
    isWhole: (): boolean =>
      [
        ...['HEAD', 'config', 'objects', 'refs'].flatMap((name) => [join(commonDir, name), join(refsDir, name)]),
        ...updater.stores(),
      ].every((path) => fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined),
    remove: async (): Promise<void> => {
      isRemoved = true
      links.reset()
      leftovers.delete(folder)
      // Work that still runs may create files in it meanwhile.
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
    },
  }
}

interface Wanted {
  readonly roots: readonly string[]
  /** Whether a ref, or a directory of refs, right below `refs` is read. */
  readonly wants: (name: string) => boolean
  readonly idLength: number
}

function createMirrorUpdater(commonDir: string, gitDir: string, links: Links) {
  const findLinks = createLinkFinder()
  /** Names in the mirror of the object directories of the repository, by the identity of these directories. */
  let stores = new Map<string, string>()
  let packs = ''
  const files = new Map<string, string>()

  /** Writes a file of the mirror, or removes it. git never sees a file that is written in part. */
  const putFile = async (path: string, content: string | undefined): Promise<void> => {
    if (files.get(path) === content) return
    if (content === undefined) await rm(path, { force: true })
    else {
      await writeFile(`${path}.new`, content)
      await rename(`${path}.new`, path)
    }
    if (content === undefined) files.delete(path)
    else files.set(path, content)
  }

  const copyFiles = async ({ gitDir: own, commonDir: common }: OpenRepositoryFolders, idLength: number) => {
    const head = (await readEntryText(own, 'HEAD', maxHeadBytes)).trimEnd()
    const isHead = /^(?:ref:\s*refs\/[^\s\p{Cc}]+|[0-9a-f]+)$/u.test(head)
    const lines = (await readEntryText(common, 'shallow', maxShallowBytes)).split('\n')
    const shallow = lines.filter((line) => line.length === idLength && /^[0-9a-f]+$/.test(line))
    await putFile(join(gitDir, 'HEAD'), `${isHead ? head : noHead}\n`)
    await putFile(join(commonDir, 'shallow'), shallow.length === 0 ? undefined : `${shallow.join('\n')}\n`)
    await putFile(join(commonDir, 'info', 'exclude'), await readEntryText(common, 'info/exclude', maxExcludeBytes))
    return shallow
  }

  const linkRefs = async (common: Folder, wants: (name: string) => boolean): Promise<readonly string[]> => {
    const refs = await openSubfolder(common, 'refs').catch(asLinked('refs'))
    if (refs === undefined) throw unavailable('The repository no longer exists: it has no refs.')
    const leftOut: string[] = []
    const names = new Set<string>()
    try {
      for (const entry of await readDirectoryEntries(refs)) {
        const name = `refs/${entry.name}`
        if (!wants(name)) continue
        if (entry.isSymbolicLink() && required.has(name)) throw symbolicLinkError(name)
        if (entry.isFile()) links.toFile(name, `${common.shared}/${name}`)
        const inner = entry.isDirectory()
          ? await links.toDirectory(name, refs, entry.name).catch(asLinked(name))
          : undefined
        if (entry.isFile() || inner !== undefined) names.add(name)
        if (inner !== undefined) for (const link of await findLinks(inner, maxDepth)) leftOut.push(`${name}/${link}`)
      }
    } finally {
      refs.close()
    }
    links.keep('refs/', names)
    const stats = await statEntry(common, 'packed-refs')
    if (stats !== undefined && !stats.isFile()) throw symbolicLinkError('packed-refs')
    links.toFile('packed-refs', `${common.shared}/packed-refs`)
    return leftOut
  }

  /** Links the refs that are kept as reftable: those of the repository, and those of a linked working tree. */
  const linkTables = async ({ gitDir: own, commonDir: common }: OpenRepositoryFolders): Promise<void> => {
    const places =
      own === common ? [['reftable', common] as const] : [['reftable', common] as const, [ownTables, own] as const]
    for (const [name, from] of places) {
      const tables = await links.toDirectory(name, from, 'reftable').catch(asLinked('reftable'))
      if (tables !== undefined && (await findLinks(tables, 0)).length > 0) throw symbolicLinkError('reftable')
    }
  }

  /**
   * Holds the object directories open. On Linux, links the directories in them one by one, without `info/alternates`, which may name any folder.
   * Returns whether packs or object directories came or went.
   */
  const linkObjects = async (common: Folder, roots: readonly string[]): Promise<boolean> => {
    const next = new Map<string, string>()
    for (const from of await openObjectFolders(common, roots)) {
      const name = `objects-${from.identity.replace(':', '-')}`
      next.set(from.identity, name)
      if (stores.has(from.identity)) from.close()
      else links.hold(name, from)
      stores.set(from.identity, name)
    }
    let stamps = ''
    for (const name of next.values()) {
      const objects = links.heldAt(name)
      if (objects === undefined) continue
      if ((await findLinks(objects, 1)).length > 0) throw linkedObjectsError()
      if (isLinux) {
        for (const part of [...fans, 'info/commit-graph', 'info/commit-graphs'])
          links.toFile(`${name}/${part}`, `${objects.shared}/${part}`)
        await links.toDirectory(`${name}/pack`, objects, 'pack').catch((error: unknown) => {
          throw error instanceof LinkError ? linkedObjectsError() : error
        })
      }
      const pack = await statEntry(objects, 'pack')
      stamps += `${objects.identity} ${pack === undefined ? '' : directoryStamp(pack)}\n`
    }
    for (const [identity, name] of stores) if (!next.has(identity)) links.forget(name)
    stores = next
    const hasChanged = stamps !== packs
    packs = stamps
    return hasChanged
  }

  return {
    /** @throws ResourceError `unavailable` for symbolic links, and for objects elsewhere. */
    update: async (anchors: OpenRepositoryFolders, { roots, wants, idLength }: Wanted): Promise<Seen> => {
      const shallow = await copyFiles(anchors, idLength)
      await linkTables(anchors)
      const leftOut = await linkRefs(anchors.commonDir, wants)
      const hasOtherPacks = await linkObjects(anchors.commonDir, roots)
      return { leftOut, shallow, hasOtherPacks }
    },
    stores: (): readonly string[] =>
      [...stores.values()].map((name) => (isLinux ? join(commonDir, name) : (links.heldAt(name)?.path ?? ''))),
  }
}

const ownName = 'worktrees/own'
const ownTables = `${ownName}/reftable`

type Links = ReturnType<typeof createLinks>

/** Whether refs are copied: on Windows only administrators make symbolic links, and a junction leads to no network drive. */
const copies = process.platform === 'win32'

/** Copies the files of a directory to another, and removes other files there. Leaves out symbolic links. */
function copyDirectory(from: string, to: string): void {
  fs.mkdirSync(to, { recursive: true })
  const entries = fs.readdirSync(from, { withFileTypes: true })
  const names = new Set(entries.map(({ name }) => name))
  for (const name of fs.readdirSync(to))
    if (!names.has(name)) fs.rmSync(join(to, name), { recursive: true, force: true })
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) copyDirectory(source, target)
    else if (entry.isFile()) fs.copyFileSync(source, target)
  }
}

function createLinks(root: string) {
  const folders = new Map<string, Folder>()
  const targets = new Map<string, string>()
  const retired = new Set<Folder>()

  const retire = (folder: Folder | undefined) => {
    if (folder === undefined) return
    retired.add(folder)
    setTimeout(() => {
      folder.close()
      retired.delete(folder)
    }, closeAfterMs).unref()
  }

  const link = (name: string, target: string) => {
    const path = join(root, name)
    try {
      fs.mkdirSync(join(path, '..'), { recursive: true })
      if (copies) copyDirectory(target, path)
      else {
        fs.rmSync(path, { force: true })
        fs.symlinkSync(target, path)
      }
    } catch (error) {
      throw unavailable(
        'The temporary folder of the git provider cannot be written. Check its permissions and the free space.',
        {},
        error,
      )
    }
    targets.set(name, target)
  }

  const forget = (name: string) => {
    for (const one of [...targets.keys(), ...folders.keys()]) {
      if (one !== name && !one.startsWith(`${name}/`)) continue
      if (targets.delete(one)) fs.rmSync(join(root, one), { recursive: copies, force: true })
      retire(folders.get(one))
      folders.delete(one)
    }
  }

  return {
    /** Holds a directory open under a name, without a link to it. */
    hold: (name: string, folder: Folder): void => {
      folders.set(name, folder)
    },
    heldAt: (name: string) => folders.get(name),
    /** Links to a file that may come and go; on Windows copies it. */
    toFile: (name: string, target: string): void => {
      if (copies) {
        fs.rmSync(join(root, name), { force: true })
        if (fs.existsSync(target)) fs.copyFileSync(target, join(root, name))
        targets.set(name, target)
      } else if (targets.get(name) !== target) link(name, target)
    },
    /**
     * Links to a directory of a folder, or copies it on Windows, and holds it open. Returns it; undefined when there is none.
     *
     * @throws LinkError for a symbolic link in its place.
     */
    toDirectory: async (name: string, parent: Folder, child: string): Promise<Folder | undefined> => {
      const before = folders.get(name)
      const next = await openSubfolder(parent, child)
      if (next !== undefined && next.identity === before?.identity) {
        next.close()
        if (copies) link(name, before.shared)
        return before
      }
      forget(name)
      if (next === undefined) return undefined
      folders.set(name, next)
      link(name, next.shared)
      return next
    },
    forget,
    keep: (prefix: string, names: ReadonlySet<string>): void => {
      for (const name of [...targets.keys()]) if (name.startsWith(prefix) && !names.has(name)) forget(name)
    },
    reset: (): void => {
      for (const folder of [...folders.values(), ...retired]) folder.close()
      folders.clear()
      targets.clear()
      retired.clear()
    },
  }
}

/**
 * Creates a function that returns the paths of the symbolic links below a directory, down to a depth. It reads again only the directories that
 * have changed since its last call.
 */
function createLinkFinder() {
  const listings = new Map<string, { readonly stamp: string; readonly links: string[]; readonly folders: string[] }>()

  const readFolder = async (folder: Folder, path: string, stats: BigIntStats) => {
    const key = `${folder.identity} ${path}`
    const stamp = directoryStamp(stats)
    const before = listings.get(key)
    if (before?.stamp === stamp) return before
    const entries = await readDirectoryEntries({
      ...folder,
      at: path === '' ? folder.at : `${folder.at}/${path}`,
    }).catch(() => [])
    const paths = (selection: typeof entries) => selection.map(({ name }) => (path === '' ? name : `${path}/${name}`))
    const isSettled = Date.now() - Number(stats.ctimeMs) > unsettledMs
    const listing = {
      stamp: isSettled ? stamp : '',
      links: paths(entries.filter((entry) => entry.isSymbolicLink())),
      folders: paths(entries.filter((entry) => entry.isDirectory())),
    }
    listings.set(key, listing)
    return listing
  }

  return async (folder: Folder, depth: number): Promise<readonly string[]> => {
    const slices = createSlices()
    const links: string[] = []
    let level = ['']
    for (let deep = 0; deep <= depth && level.length > 0; deep++) {
      const next: string[] = []
      for (const path of level) {
        const stats = await statEntry(folder, path === '' ? '.' : path)
        if (stats?.isDirectory() === true) {
          const listing = await readFolder(folder, path, stats)
          links.push(...listing.links)
          next.push(...listing.folders)
        } else listings.delete(`${folder.identity} ${path}`)
        if (slices.due()) await slices.rest()
      }
      level = next
    }
    return links
  }
}

function directoryStamp({ dev, ino, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${mtimeNs}:${ctimeNs}`
}

function asLinked(name: string) {
  return (error: unknown): never => {
    throw error instanceof LinkError ? symbolicLinkError(name) : error
  }
}

/** Reads a regular file as text; empty when it is missing, no regular file, or too large. */
async function readEntryText(folder: Folder, name: string, limit: number): Promise<string> {
  try {
    return (await readFolderFile(folder, name, limit))?.toString('utf8') ?? ''
  } catch {
    return ''
  }
}

export interface Repository {
  readonly settings: GitSettings
  readonly location: RepositoryFolders
  readonly anchors: FolderKeeper
  readonly config: RepositoryConfig
  readonly mirror: Mirror
  readonly launcher: Launcher
  readonly objects: ObjectDatabase
  readonly trees: TreeReader
  readonly refs: Refs
  readonly shallow: () => ReadonlySet<string>
  close(): Promise<void>
}

/**
 * Finds git and the repository, and creates the folder in which git runs.
 *
 * @throws ResourceError `invalid` when there is no git, or no repository that can be served; `unavailable` when git does not run, or the
 * repository borrows objects from a folder that is not allowed.
 *
 * @param maxAgeMs Maximum age of the cached refs.
 */
export async function openRepository(settings: GitSettings, maxAgeMs: number): Promise<Repository> {
  const git = await findGit(settings.git)
  const mirror = await createMirror()
  const launcher = createLauncher({
    ...{ git, folder: mirror.folder, gitDir: mirror.gitDir, objects: mirror.objects },
    ...{ timeoutMs: settings.timeoutMs, maxBytes: settings.maxBytes, log: settings.log },
  })
  const close = async () => {
    launcher.close()
    await mirror.remove()
  }
  try {
    const version = await requireVersion(git, launcher)
    const repository = await openWithMirror(settings, maxAgeMs, mirror, launcher, version)
    return {
      ...repository,
      close: async () => {
        await close()
        repository.anchors.close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function openWithMirror(
  settings: GitSettings,
  maxAgeMs: number,
  mirror: Mirror,
  launcher: Launcher,
  version: Version,
): Promise<Omit<Repository, 'close'>> {
  await mirror.create(configOf({ format: 'sha1', refStorage: 'files', checkout: [] }, settings), false)
  const location = await locateRepository(settings, async (gitDir) => {
    const folder = await openFolder(gitDir)
    try {
      return (await readRepositoryConfig(folder, launcher)).workTree
    } finally {
      folder.close()
    }
  })
  const anchors = await openFolderKeeper(location)
  try {
    const { commonDir } = await anchors.current()
    const config = await readRepositoryConfig(commonDir, launcher)
    requireReader(config, version)
    await warnOfOwner(location, settings)
    return await loadRepository(settings, maxAgeMs, { mirror, launcher, location, anchors, config })
  } catch (error) {
    anchors.close()
    throw error
  }
}

type Connected = Pick<Repository, 'mirror' | 'launcher' | 'location' | 'anchors' | 'config'>

async function loadRepository(
  settings: GitSettings,
  maxAgeMs: number,
  connected: Connected,
): Promise<Omit<Repository, 'close'>> {
  const { mirror, launcher, location, anchors, config } = connected
  const create = () => mirror.create(configOf(config, settings), location.gitDir !== location.commonDir)
  await create()
  const idBytes = config.format === 'sha1' ? 20 : 32
  const objects = createObjectDatabase(launcher, config.format, settings.timeoutMs)
  let shallow: ReadonlySet<string> = new Set()
  const layout = {
    roots: [...location.roots, ...settings.alternates],
    wants: (name: string) =>
      [...settings.patterns, 'refs/heads'].some((one) => isSameOrParent(one, name) || isSameOrParent(name, one)),
    idLength: idBytes * 2,
  }
  const refresh = async () => {
    const current = await anchors.current()
    if (!mirror.isWhole()) await create()
    const state = await mirror.update(current, layout)
    // A long-lived process holds deleted packs open, or searches objects in other directories.
    if (state.hasOtherPacks) objects.restart()
    // Callers compare sets by identity, so the set stays the same as long as nothing changes.
    if (state.shallow.length !== shallow.size || state.shallow.some((id) => !shallow.has(id)))
      shallow = new Set(state.shallow)
    return { leftOut: state.leftOut, shallow }
  }
  const refs = createRefs({ ...settings, launcher, refresh, maxAgeMs, idLength: idBytes * 2 })
  // Errors show at the start instead of at the first request.
  await refs.table()
  const trees = createTreeReader(objects, idBytes, settings.onEntries)
  return { ...connected, settings, objects, trees, refs, shallow: () => shallow }
}

export function isSameOrParent(name: string, other: string): boolean {
  return other === name || other.startsWith(`${name}/`)
}

/** Lower bound of git's setting `core.bigFileThreshold`, in bytes. */
const leastLargeBytes = 1024 * 1024

/** Returns the configuration with which git runs: nothing of it comes from the repository but its formats, and how its files were checked out. */
function configOf(
  { format, refStorage, checkout }: Pick<RepositoryConfig, 'format' | 'refStorage' | 'checkout'>,
  { maxBytes }: GitSettings,
): string {
  const core = [
    'repositoryformatversion = 1',
    'bare = true',
    // Print names as UTF-8 instead of octal escapes; control characters are still escaped.
    'quotePath = false',
    'hooksPath = /dev/null',
    'fsmonitor = false',
    `bigFileThreshold = ${Math.max(maxBytes, leastLargeBytes)}`,
    ...checkout,
  ]
  const extensions = [`objectFormat = ${format}`, ...(refStorage === 'files' ? [] : [`refStorage = ${refStorage}`])]
  const section = (name: string, lines: readonly string[]) =>
    `[${name}]\n${lines.map((line) => `\t${line}\n`).join('')}`
  return section('core', core) + section('extensions', extensions)
}

async function warnOfOwner({ commonDir }: RepositoryFolders, { log }: GitSettings): Promise<void> {
  const { uid } = await stat(commonDir)
  const own = process.geteuid?.()
  if (own !== undefined && uid !== own)
    log('warn', 'a git repository belongs to another user, who can change what is served', { uid })
}

type Version = readonly [major: number, minor: number]

/** The oldest git with the features used here, such as `GIT_CONFIG_GLOBAL` (2.32). */
const oldest: Version = [2, 32]

/** The oldest git that reads each format of refs. */
const storages: ReadonlyMap<string, Version> = new Map([
  ['files', oldest],
  ['reftable', [2, 45]],
])

const advice = `git ${oldest.join('.')} or newer is needed: install it (https://git-scm.com), or name its path in the option "git".`

function isOlder([major, minor]: Version, than: Version): boolean {
  return major < than[0] || (major === than[0] && minor < than[1])
}

/** @throws ResourceError `invalid` (reason `configuration`) for a repository that needs a newer git, with the version. */
function requireReader({ refStorage }: RepositoryConfig, version: Version): void {
  const requiredVersion = storages.get(refStorage)
  if (requiredVersion === undefined)
    throw repositoryConfigError(
      `keeps its refs in the format ${JSON.stringify(refStorage)}, which hikidashi does not know.`,
    )
  if (!isOlder(version, requiredVersion)) return
  throw repositoryConfigError(
    `keeps its refs as ${refStorage}, which git ${requiredVersion.join('.')} or newer reads, and this is git ${version.join('.')}. Install a newer one, or name its path in the option "git".`,
  )
}

/**
 * Returns the absolute path of the git to run. A name is searched on the PATH of this process without its relative folders, so that no program
 * in the working directory runs.
 *
 * @throws ResourceError `invalid` (reason `configuration`) when there is none.
 */
async function findGit(name: string): Promise<string> {
  if (isAbsolute(name)) {
    if (await isProgram(name)) return name
    throw gitProgramError(`The option "git" names ${JSON.stringify(name)}, which is no program that this user can run.`)
  }
  if (/[\\/]/.test(name))
    throw gitProgramError(
      `The option "git" must be the name of a program or an absolute path, and is ${JSON.stringify(name)}.`,
    )
  const program = await findProgram(name)
  if (program !== undefined) return program
  throw gitProgramError(`The program ${JSON.stringify(name)} is not on the PATH.`)
}

/** Returns the version of git. @throws ResourceError `invalid` (reason `configuration`) for one that is too old, or a program that is not git. */
async function requireVersion(path: string, launcher: Launcher): Promise<Version> {
  const { bytes } = await launcher.run({ args: ['--version'], limit: 1000, signal: new AbortController().signal })
  const match = /^git version (\d+)\.(\d+)/.exec(bytes.toString('utf8'))
  if (match === null) throw gitProgramError(`${JSON.stringify(path)} is not git: it does not print its version.`)
  const version: Version = [Number(match[1]), Number(match[2])]
  if (!isOlder(version, oldest)) return version
  throw gitProgramError(`${JSON.stringify(path)} is git ${version.join('.')}, which is too old.`)
}

function gitProgramError(what: string): ResourceError {
  return invalid(`${what} ${advice}`, 'configuration')
}
