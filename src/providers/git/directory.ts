import * as fs from 'node:fs'
import { type BigIntStats, constants, type Dirent, type Stats } from 'node:fs'
import { lstat, open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { errorCodeOf, invalid, isResourceError, type ResourceError, unavailable } from '../../core/errors.ts'
import { isLocalFileSystem } from '../../core/kit/local-disk.ts'
import { defined } from '../../core/kit/object.ts'
import { type FolderBounds, LeadsOutError, pathWithin, tryRealPath } from '../../core/kit/within.ts'
import { checkoutAround } from '../checkout.ts'
import { pathErrorAdvice } from '../files/place.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'

/**
 * A directory of a repository, held open, so that paths through it stay in the same directory when its name changes. On Linux it is a
 * descriptor, and paths go through /proc; elsewhere it is a path, which was checked when it was opened and can be replaced later.
 */
export interface Folder {
  /** Path prefix of the directory's entries, for this process. */
  readonly at: string
  /** Path prefix of the directory's entries, for a child process. */
  readonly shared: string
  /** Real path of the directory when it was opened. */
  readonly path: string
  /** Device and inode of the directory. */
  readonly identity: string
  /** Whether the directory is on a local disk, so that calls on it answer at once. */
  readonly local: boolean
  close(): void
}

/** Refers to a file without opening it, see open(2). Not in `fs.constants`. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = fs.constants
const isLinux = process.platform === 'linux'

/** Thrown for a symbolic link in place of a directory or a file. */
export class LinkError extends Error {}

/**
 * Opens a directory by its real path.
 *
 * @throws LinkError when a part of the path has become a symbolic link; errors of the file system.
 */
export async function openFolder(path: string): Promise<Folder> {
  if (!isLinux) return portable(path, path)
  const fd = await openDescriptor(path)
  try {
    if (fs.readlinkSync(`/proc/self/fd/${fd}`) !== path) throw new LinkError(path)
    return described(fd, path)
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}

/** Opens a subdirectory. Returns undefined when no directory has the name. @throws LinkError for a symbolic link. */
export async function openSubfolder(folder: Folder, name: string): Promise<Folder | undefined> {
  try {
    if (!isLinux) return await portable(`${folder.at}/${name}`, join(folder.path, name))
    const fd = await openDescriptor(`${folder.at}/${name}`)
    return described(fd, join(folder.path, name), folder.local)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined
    if ((await statEntry(folder, name))?.isSymbolicLink() === true) throw new LinkError(name)
    if (errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

/**
 * Opens the subdirectories along a path, one in the other, calls `use` with the last, and closes them. Resolves to undefined when one is missing.
 *
 * @throws LinkError for a symbolic link.
 */
export async function withFolder<T>(
  folder: Folder,
  segments: readonly string[],
  use: (inner: Folder) => Promise<T>,
): Promise<T | undefined> {
  const folders: Folder[] = []
  try {
    let inner = folder
    for (const segment of segments) {
      const next = await openSubfolder(inner, segment)
      if (next === undefined) return undefined
      folders.push(next)
      inner = next
    }
    return await use(inner)
  } finally {
    for (const one of folders) one.close()
  }
}

function openDescriptor(path: string): Promise<number> {
  return openAs(path, O_PATH | O_DIRECTORY | O_NOFOLLOW)
}

function described(fd: number, path: string, local?: boolean): Folder {
  const at = `/proc/self/fd/${fd}`
  const { dev, ino } = fs.fstatSync(fd, { bigint: true })
  let open = true
  return {
    at,
    shared: `/proc/${process.pid}/fd/${fd}`,
    path,
    identity: `${dev}:${ino}`,
    local: local ?? isLocalFileSystem(fs.statfsSync(at).type),
    close: () => {
      if (open) fs.closeSync(fd)
      open = false
    },
  }
}

async function portable(at: string, path: string): Promise<Folder> {
  const stats = await fs.promises.lstat(at, { bigint: true })
  if (stats.isSymbolicLink() || (await fs.promises.realpath(at)) !== path) throw new LinkError(path)
  if (!stats.isDirectory()) throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
  return { at, shared: at, path, identity: `${stats.dev}:${stats.ino}`, local: false, close: () => {} }
}

/** Returns the stats of an entry of a directory, without following links; undefined when it does not exist. */
export async function statEntry(folder: Folder, name: string): Promise<BigIntStats | undefined> {
  const path = `${folder.at}/${name}`
  try {
    if (folder.local) return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return await fs.promises.lstat(path, { bigint: true })
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export async function readDirectoryEntries(folder: Folder): Promise<readonly Dirent[]> {
  const entries: Dirent[] = []
  // Read in chunks: creating all entries of a huge directory at once would block the event loop.
  for await (const entry of await fs.promises.opendir(folder.at, { bufferSize: 1024 })) entries.push(entry)
  return entries
}

export function readFolderFile(folder: Folder, name: string, limit: number): Promise<Buffer | undefined> {
  return readSmallFile(`${folder.at}/${name}`, limit)
}

function openAs(path: string, flags: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, (error, fd) => (error === null ? resolve(fd) : reject(error)))
  })
}

/**
 * Reads the bytes of a regular file of at most `limit` bytes; undefined when none exists at the path. Does not follow a symbolic link as the
 * last part of the path, and does not wait for a FIFO or a device.
 *
 * @throws Error for anything but a regular file, and for one that is too large.
 */
async function readSmallFile(path: string, limit: number): Promise<Buffer | undefined> {
  let handle: Awaited<ReturnType<typeof open>>
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw errorCodeOf(error) === 'ELOOP' ? new Error('it is a symbolic link') : error
  }
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > limit) throw new Error(`it has more than ${limit} bytes`)
    const bytes = Buffer.alloc(stats.size)
    let length = 0
    for (let count = 1; count > 0 && length < bytes.length; length += count)
      count = (await handle.read(bytes, length, bytes.length - length, length)).bytesRead
    return bytes.subarray(0, length)
  } finally {
    await handle.close()
  }
}

/** Returns the stats at a path, without following a link; undefined when nothing exists. */
export async function statPath(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export interface OpenRepositoryFolders {
  readonly gitDir: Folder
  readonly commonDir: Folder
  readonly workTree?: Folder
}

/**
 * Holds the directories of a repository open, and opens others that have taken their place.
 *
 * @throws ResourceError `unavailable`, as `current` does.
 */
export async function openFolderKeeper(location: RepositoryFolders) {
  let anchors = await openAnchors(location)
  let closed = false

  return {
    /**
     * Returns the directories to which the paths of the repository lead now.
     *
     * @throws ResourceError `unavailable` when one is gone, or a part of its path has become a symbolic link.
     */
    current: async (): Promise<OpenRepositoryFolders> => {
      const next = await openAnchors(location)
      if (closed || anchorsIdentity(next) === anchorsIdentity(anchors)) {
        closeAnchors(next)
        return anchors
      }
      const before = anchors
      anchors = next
      // Calls may still read through the old directories.
      setTimeout(() => closeAnchors(before), 60_000).unref()
      return anchors
    },
    /** Whether the paths still lead to the directories that {@link current} last returned. */
    isSame: async (): Promise<boolean> => {
      try {
        const now = await openAnchors(location)
        closeAnchors(now)
        return anchorsIdentity(now) === anchorsIdentity(anchors)
      } catch {
        return false
      }
    },
    close: (): void => {
      closed = true
      closeAnchors(anchors)
    },
  }
}

export type FolderKeeper = Awaited<ReturnType<typeof openFolderKeeper>>

async function openAnchors({ gitDir, commonDir, workTree }: RepositoryFolders): Promise<OpenRepositoryFolders> {
  const folders: Folder[] = []
  try {
    const at = async (path: string) => {
      const folder = await openFolder(path)
      folders.push(folder)
      return folder
    }
    const common = await at(commonDir)
    const anchors = {
      commonDir: common,
      gitDir: gitDir === commonDir ? common : await at(gitDir),
      ...(workTree === undefined ? {} : { workTree: await at(workTree) }),
    }
    for (const name of ['objects', 'refs']) {
      const stats = await statEntry(common, name)
      if (stats === undefined) throw gone()
      if (!stats.isDirectory()) throw symbolicLinkError(name)
    }
    return anchors
  } catch (error) {
    for (const folder of folders) folder.close()
    if (error instanceof LinkError) throw symbolicLinkError('folder')
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR' || errorCodeOf(error) === 'ELOOP')
      throw gone()
    throw error
  }
}

function closeAnchors({ gitDir, commonDir, workTree }: OpenRepositoryFolders): void {
  for (const folder of new Set([gitDir, commonDir, workTree])) folder?.close()
}

function anchorsIdentity({ gitDir, commonDir, workTree }: OpenRepositoryFolders): string {
  return `${gitDir.identity} ${commonDir.identity} ${workTree?.identity ?? ''}`
}

function gone(): ResourceError {
  return unavailable('The repository no longer exists: it has no objects or no refs.')
}

export function symbolicLinkError(name: string): ResourceError {
  return unavailable(`The repository has a symbolic link, or a file of the wrong kind, in place of its ${name}.`)
}

/** The directories of a repository: absolute paths without symbolic links. */
export interface RepositoryFolders {
  /** Directory of `HEAD` and the index. */
  readonly gitDir: string
  /** Directory of refs, objects and the configuration; equals `gitDir` except for a linked working tree. */
  readonly commonDir: string
  /** Directory of the checked-out files; undefined for a bare repository, and when the operator named a `.git` directory itself. */
  readonly workTree?: string
  /** The folders that the repository may consist of. */
  readonly roots: readonly string[]
}

/** Returns the working tree that a repository is configured with (`core.worktree`), if any. */
type WorkTreeOf = (gitDir: string) => Promise<string | undefined>

const maxPointerBytes = 4096 + 'gitdir: \n'.length

export interface RepositoryPlace {
  /** The absolute path of a working tree, of a bare repository, or of a `.git` directory. There is no search for a repository. */
  readonly repository: string
  /** Limits of the path of the repository. By default its symbolic links are followed. */
  readonly within?: FolderBounds
}

/**
 * Finds the directories of a repository, starting only at the path that the operator named: it searches neither above it nor inside it.
 *
 * A `.git` file may lead out of the folder only when its target points back: a linked working tree (`git worktree add`), or a submodule. So a
 * planted `.git` file opens no other repository. Symbolic links inside the repository are not followed.
 *
 * @throws ResourceError `invalid` (reason `configuration`); the message says what to do.
 */
export async function locateRepository(
  { repository, within }: RepositoryPlace,
  workTreeOf: WorkTreeOf,
): Promise<RepositoryFolders> {
  const fault = (what: string) => invalid(`The repository ${JSON.stringify(repository)} ${what}`, 'configuration')
  if (repository === '' || repository.includes('\0') || !isAbsolute(repository))
    throw fault(
      `is not a valid absolute path. Did you mean ${JSON.stringify(resolve(repository.replaceAll('\0', '')))}?`,
    )
  try {
    const repositoryPath = within === undefined ? await realpath(repository) : await pathWithin(repository, within)
    const start = await followDotGit(repositoryPath, workTreeOf, fault)
    const location = await withCommonDir(start, repositoryPath, fault)
    await requireLayout(location, fault)
    return location
  } catch (error) {
    if (isResourceError(error)) throw error
    if (error instanceof LeadsOutError) throw fault(`is not served: ${error.message}`)
    throw fault(pathErrorAdvice(error) ?? `cannot be opened: ${errorCodeOf(error) ?? sentence(error)}.`)
  }
}

type CreateError = (what: string) => ResourceError
type Start = Pick<RepositoryFolders, 'gitDir' | 'workTree'> & { readonly linked: boolean }

async function followDotGit(targetPath: string, workTreeOf: WorkTreeOf, fault: CreateError): Promise<Start> {
  const dotGit = join(targetPath, '.git')
  const stats = await statPath(dotGit)
  if (stats === undefined) {
    if ((await statPath(join(targetPath, 'HEAD'))) !== undefined) return { gitDir: targetPath, linked: false }
    const around = await checkoutAround(targetPath)
    const advice =
      around === undefined
        ? 'Name a folder that has a .git, or a bare repository; or run git init there.'
        : `It lies in the working tree ${JSON.stringify(around.top)}. Name that instead.`
    throw fault(`is not a git repository. ${advice}`)
  }
  if (stats.isSymbolicLink()) throw fault('has a .git that is a symbolic link. Name the repository that it leads to.')
  if (stats.isDirectory()) return { gitDir: dotGit, workTree: targetPath, linked: false }

  const target = await readPointer(dotGit, /^gitdir: (.+)$/)
  if (target === undefined) throw fault('has a .git that is neither a directory nor a file that names one.')
  const gitDir = await realTarget(resolve(targetPath, target), 'has a .git file', fault)
  if (isInside(gitDir, [targetPath])) return { gitDir, workTree: targetPath, linked: false }
  const back = await readPointer(join(gitDir, 'gitdir'), /^(.+)$/)
  if (back !== undefined && (await isSameRealPath(resolve(gitDir, back), dotGit)))
    return { gitDir, workTree: targetPath, linked: true }
  const workTree = await workTreeOf(gitDir)
  if (workTree !== undefined && (await isSameRealPath(resolve(gitDir, workTree), targetPath)))
    return { gitDir, workTree: targetPath, linked: true }
  throw fault(
    'has a .git file that leads to a repository elsewhere, which does not lead back. Name that repository itself, or run git worktree repair in it.',
  )
}

/** Adds the directory of refs and objects. A linked working tree shares it with the repository that contains its git directory. */
async function withCommonDir(start: Start, target: string, fault: CreateError): Promise<RepositoryFolders> {
  const { gitDir, linked, workTree } = start
  const common = await readPointer(join(gitDir, 'commondir'), /^(.+)$/)
  const commonDir =
    common === undefined ? gitDir : await realTarget(resolve(gitDir, common), 'has a commondir file', fault)
  const path = join(commonDir, 'worktrees', basename(gitDir))
  if (commonDir !== gitDir && gitDir !== path && !isInside(commonDir, [target]))
    throw fault('has a commondir file that leads to a repository elsewhere. Name that repository itself.')
  return {
    gitDir,
    commonDir,
    ...defined({ workTree }),
    roots: [target, ...(linked ? [gitDir] : []), commonDir],
  }
}

async function realTarget(target: string, file: string, fault: CreateError): Promise<string> {
  try {
    return await realpath(target)
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT' && errorCodeOf(error) !== 'ENOTDIR') throw error
    const advice = 'Put that git directory back, or run git worktree repair in the repository that it belongs to.'
    throw fault(`${file} that leads to the git directory ${JSON.stringify(target)}, which does not exist. ${advice}`)
  }
}

async function requireLayout({ gitDir, commonDir }: RepositoryFolders, fault: CreateError): Promise<void> {
  if ((await statPath(join(gitDir, 'HEAD'))) === undefined) throw fault('has no HEAD: it is not a git repository.')
  for (const name of ['objects', 'refs']) {
    const stats = await statPath(join(commonDir, name))
    if (stats?.isSymbolicLink() === true)
      throw fault(`has a symbolic link in place of its ${name}. Name the repository that it leads to.`)
    if (stats?.isDirectory() !== true) throw fault(`has no ${name}: it is not a git repository.`)
  }
}

async function readPointer(path: string, form: RegExp): Promise<string | undefined> {
  const text = (await readSmallFile(path, maxPointerBytes))?.toString('utf8').replace(/[\r\n]+$/, '')
  return text === undefined ? undefined : form.exec(text)?.[1]
}

async function isSameRealPath(path: string, real: string): Promise<boolean> {
  try {
    return join(await realpath(dirname(path)), basename(path)) === real || (await realpath(path)) === real
  } catch {
    return false
  }
}

function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
}

const maxStores = 32
/** Maximum depth of the object directories that are borrowed from, the same as git's. */
const maxDepth = 5
const maxAlternatesBytes = 64 * 1024

/**
 * Opens the object directories of a repository: its own, and those that it borrows from, all of which must lie inside `roots`. The caller
 * closes them.
 *
 * @throws ResourceError `unavailable` for one that lies elsewhere or is a symbolic link, for too many, and for unusable `alternates`.
 */
export async function openObjectFolders(commonDir: Folder, roots: readonly string[]): Promise<readonly Folder[]> {
  const folders: Folder[] = []
  const visit = async (directory: Folder, depth: number): Promise<void> => {
    if (folders.some(({ identity }) => identity === directory.identity)) return directory.close()
    folders.push(directory)
    if (depth > maxDepth || folders.length > maxStores)
      throw repositoryError(
        'borrows objects from too many other repositories. Run git repack -a -d there, and delete objects/info/alternates.',
      )
    for (const line of await alternatesOf(directory)) {
      const real = await tryRealPath(resolve(directory.path, line))
      // A missing alternate is ignored, as git does.
      if (real === undefined) continue
      if (!isInside(real, roots))
        throw repositoryError(
          'borrows objects from another one (objects/info/alternates), outside of it. Name that folder in "alternates", or run git repack -a -d and delete the file.',
        )
      await visit(await openFolder(real), depth + 1)
    }
  }
  try {
    const objects = await openSubfolder(commonDir, 'objects')
    if (objects === undefined) throw repositoryError('no longer exists: it has no objects.')
    await visit(objects, 0)
    return folders
  } catch (error) {
    for (const folder of folders) folder.close()
    throw error instanceof LinkError ? linkedObjectsError() : error
  }
}

async function alternatesOf(directory: Folder): Promise<readonly string[]> {
  const info = await openSubfolder(directory, 'info')
  if (info === undefined) return []
  try {
    const text = (await readFolderFile(info, 'alternates', maxAlternatesBytes))?.toString('utf8') ?? ''
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    if (lines.some((line) => line.startsWith('"'))) throw new Error('a path in it is quoted')
    return lines
  } catch (error) {
    throw repositoryError(`has an objects/info/alternates that cannot be used: ${sentence(error)}.`)
  } finally {
    info.close()
  }
}

export function linkedObjectsError(): ResourceError {
  return repositoryError('has symbolic links among its objects. Name the repository that they lead to.')
}

/** Returns the error for a repository whose objects cannot be used. `what` continues "The repository". */
export function repositoryError(what: string): ResourceError {
  return unavailable(`The repository ${what}`, { reason: 'unavailable' })
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown'
}

/** Names of the check-out settings that are taken over. `plain` has their accepted values. */
const checkout = /^core\.(?:autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|checkstat|trustctime)$/

export interface RepositoryConfig {
  readonly format: ObjectFormat
  /** The format of the refs (`extensions.refStorage`), such as `files` or `reftable`. */
  readonly refStorage: string
  /** Whether objects may be missing, as in a partial clone. */
  readonly partial: boolean
  /** `core.worktree`, as written. */
  readonly workTree?: string
  /** Check-out settings, as lines for the provider's own configuration. */
  readonly checkout: readonly string[]
}

const maxConfigBytes = 1024 * 1024

const plain = /^(?:true|false|input|lf|crlf|native|minimal|default)$/

/**
 * Reads the configuration of a git directory as data: git parses the text, without includes, and applies nothing of it.
 *
 * @throws ResourceError `invalid` (reason `configuration`) for a file that cannot be read or parsed, and for an unknown repository format.
 */
export async function readRepositoryConfig(gitDir: Folder, launcher: Launcher): Promise<RepositoryConfig> {
  const values = await parseGitConfig(await readConfigFile(gitDir), launcher)
  const format = values.get('extensions.objectformat') ?? 'sha1'
  if (format !== 'sha1' && format !== 'sha256')
    throw repositoryConfigError(`uses the object format ${JSON.stringify(format)}, which hikidashi does not know.`)
  const workTree = values.get('core.worktree')
  return {
    format,
    refStorage: values.get('extensions.refstorage') ?? 'files',
    partial: [...values].some(([key, value]) => key === 'extensions.partialclone' || isPromisor(key, value)),
    ...defined({ workTree }),
    checkout: [...values].flatMap(([key, value]) =>
      checkout.test(key) && plain.test(value) ? [`${key.slice('core.'.length)} = ${value}`] : [],
    ),
  }
}

function isPromisor(key: string, value: string): boolean {
  return /^remote\..*\.promisor$/s.test(key) && value !== 'false'
}

async function readConfigFile(gitDir: Folder): Promise<Buffer> {
  try {
    return (await readFolderFile(gitDir, 'config', maxConfigBytes)) ?? Buffer.alloc(0)
  } catch (error) {
    throw repositoryConfigError(
      `has a config that cannot be read: ${error instanceof Error ? error.message : 'unknown'}.`,
    )
  }
}

/** Returns the last value of every key, with the letter case that git prints. */
async function parseGitConfig(text: Buffer, launcher: Launcher): Promise<ReadonlyMap<string, string>> {
  const { bytes, code } = await launcher.run({
    args: ['config', '--file', '-', '--no-includes', '--null', '--list'],
    input: text,
    limit: 2 * maxConfigBytes,
    signal: new AbortController().signal,
    allows: [1, 128],
    // Error messages of git would repeat the content of the file.
    quiet: true,
  })
  if (code !== 0)
    throw repositoryConfigError('has a config that git cannot parse. Run git config --list there to see why.')
  const records = bytes.toString('utf8').split('\0')
  return new Map(
    records
      .filter((record) => record !== '')
      .map((record) => {
        const end = record.indexOf('\n')
        // A key without a value means true.
        return end === -1 ? [record, 'true'] : [record.slice(0, end), record.slice(end + 1)]
      }),
  )
}

export function repositoryConfigError(what: string) {
  return invalid(`The repository ${what}`, 'configuration')
}
