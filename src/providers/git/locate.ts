import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { errorCodeOf, invalid, isResourceError, type ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { LeadsOutError, pathWithin } from '../../core/kit/within.ts'
import { checkoutAround } from '../checkout.ts'
import { adviceOn } from '../files/access.ts'
import { type Folder, LinkError, lookAt, openFolder, openIn, readIn, readSmallFile } from './folder.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'
import type { GitOptions } from './options.ts'

/** The directories of a repository: absolute paths without symbolic links. */
export interface Location {
  /** Directory of `HEAD` and the index. */
  readonly gitDir: string
  /** Directory of refs, objects and the configuration; equals `gitDir` except for a linked working tree. */
  readonly commonDir: string
  /** Directory of the checked-out files; undefined for a bare repository, and when the operator named a `.git` directory itself. */
  readonly workTree?: string
  /** The folders that the repository may consist of: nothing outside of them is read. */
  readonly roots: readonly string[]
}

/** Returns the working tree that a repository is configured with (`core.worktree`), if any. */
type WorkTreeOf = (gitDir: string) => Promise<string | undefined>

const maxPointerBytes = 4096 + 'gitdir: \n'.length

/**
 * Finds the directories of a repository, starting only at the path that the operator named: it searches neither above it nor inside it.
 *
 * A `.git` file may lead out of the folder only when its target points back: a linked working tree (`git worktree add`), or a submodule. So a
 * planted `.git` file opens no other repository. Symbolic links inside the repository are not followed.
 *
 * @throws ResourceError `invalid` (reason `repository`); the message says what to do.
 */
export async function locateRepository(
  { repository, within }: Pick<GitOptions, 'repository' | 'within'>,
  workTreeOf: WorkTreeOf,
): Promise<Location> {
  const fault = (what: string) => invalid(`The repository ${JSON.stringify(repository)} ${what}`, 'repository')
  if (repository === '' || repository.includes('\0') || !isAbsolute(repository))
    throw fault(`is not an absolute path. Did you mean ${JSON.stringify(resolve(repository.replaceAll('\0', '')))}?`)
  try {
    const named = within === undefined ? await realpath(repository) : await pathWithin(repository, within)
    const found = await followDotGit(named, workTreeOf, fault)
    const location = await withCommonDir(found, named, fault)
    await requireLayout(location, fault)
    return location
  } catch (error) {
    if (isResourceError(error)) throw error
    if (error instanceof LeadsOutError) throw fault(`is not served: ${error.message}`)
    throw fault(adviceOn(error) ?? `cannot be opened: ${errorCodeOf(error) ?? sentence(error)}.`)
  }
}

type CreateError = (what: string) => ResourceError
type Start = Pick<Location, 'gitDir' | 'workTree'> & { readonly linked: boolean }

async function followDotGit(named: string, workTreeOf: WorkTreeOf, fault: CreateError): Promise<Start> {
  const dotGit = join(named, '.git')
  const stats = await lookAt(dotGit)
  if (stats === undefined) {
    if ((await lookAt(join(named, 'HEAD'))) !== undefined) return { gitDir: named, linked: false }
    const around = await checkoutAround(named)
    const advice =
      around === undefined
        ? 'Name a folder that has a .git, or a bare repository; or run git init there.'
        : `It lies in the working tree ${JSON.stringify(around.top)}: name that.`
    throw fault(`is not a git repository. ${advice}`)
  }
  if (stats.isSymbolicLink()) throw fault('has a .git that is a symbolic link. Name the repository that it leads to.')
  if (stats.isDirectory()) return { gitDir: dotGit, workTree: named, linked: false }

  const target = await readPointer(dotGit, /^gitdir: (.+)$/)
  if (target === undefined) throw fault('has a .git that is neither a directory nor a file that names one.')
  const gitDir = await realTarget(resolve(named, target), 'has a .git file', fault)
  if (isInside(gitDir, [named])) return { gitDir, workTree: named, linked: false }
  const back = await readPointer(join(gitDir, 'gitdir'), /^(.+)$/)
  if (back !== undefined && (await isSame(resolve(gitDir, back), dotGit)))
    return { gitDir, workTree: named, linked: true }
  const workTree = await workTreeOf(gitDir)
  if (workTree !== undefined && (await isSame(resolve(gitDir, workTree), named)))
    return { gitDir, workTree: named, linked: true }
  throw fault(
    'has a .git file that leads to a repository elsewhere, which does not lead back. Name that repository itself, or run git worktree repair in it.',
  )
}

/** Adds the directory of refs and objects. A linked working tree shares it with the repository that contains its git directory. */
async function withCommonDir(start: Start, named: string, fault: CreateError): Promise<Location> {
  const { gitDir, linked, workTree } = start
  const common = await readPointer(join(gitDir, 'commondir'), /^(.+)$/)
  const commonDir =
    common === undefined ? gitDir : await realTarget(resolve(gitDir, common), 'has a commondir file', fault)
  const path = join(commonDir, 'worktrees', basename(gitDir))
  if (commonDir !== gitDir && gitDir !== path && !isInside(commonDir, [named]))
    throw fault('has a commondir file that leads to a repository elsewhere. Name that repository itself.')
  return {
    gitDir,
    commonDir,
    ...defined({ workTree }),
    roots: [named, ...(linked ? [gitDir] : []), commonDir],
  }
}

/** Returns the real path of the git directory that a file leads to. */
async function realTarget(target: string, file: string, fault: CreateError): Promise<string> {
  try {
    return await realpath(target)
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT' && errorCodeOf(error) !== 'ENOTDIR') throw error
    const advice = 'Put that git directory back, or run git worktree repair in the repository that it belongs to.'
    throw fault(`${file} that leads to the git directory ${JSON.stringify(target)}, which does not exist. ${advice}`)
  }
}

async function requireLayout({ gitDir, commonDir }: Location, fault: CreateError): Promise<void> {
  if ((await lookAt(join(gitDir, 'HEAD'))) === undefined) throw fault('has no HEAD: it is not a git repository.')
  for (const name of ['objects', 'refs']) {
    const stats = await lookAt(join(commonDir, name))
    if (stats?.isSymbolicLink() === true)
      throw fault(`has a symbolic link in place of its ${name}. Name the repository that it leads to.`)
    if (stats?.isDirectory() !== true) throw fault(`has no ${name}: it is not a git repository.`)
  }
}

async function readPointer(path: string, form: RegExp): Promise<string | undefined> {
  const text = (await readSmallFile(path, maxPointerBytes))?.toString('utf8').replace(/[\r\n]+$/, '')
  return text === undefined ? undefined : form.exec(text)?.[1]
}

async function isSame(path: string, real: string): Promise<boolean> {
  try {
    return join(await realpath(dirname(path)), basename(path)) === real || (await realpath(path)) === real
  } catch {
    return false
  }
}

/** Whether a path is one of the folders, or lies in one. */
function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
}

/** Maximum number and depth of object directories, the same depth as git's. */
const maxStores = 32
const maxDepth = 5
const maxAlternatesBytes = 64 * 1024

/**
 * Opens the object directories of a repository: its own, and those that it borrows from, all of which must lie inside `roots`. The caller
 * closes them.
 *
 * @throws ResourceError `unavailable` for one that lies elsewhere, or is a symbolic link.
 */
export async function openStores(commonDir: Folder, roots: readonly string[]): Promise<readonly Folder[]> {
  const found: Folder[] = []
  const visit = async (directory: Folder, depth: number): Promise<void> => {
    if (found.some(({ identity }) => identity === directory.identity)) return directory.close()
    found.push(directory)
    if (depth > maxDepth || found.length > maxStores) throw fault('borrows objects over too many repositories.')
    for (const line of await alternatesOf(directory)) {
      const real = await realPath(resolve(directory.path, line))
      // A missing alternate is ignored, as git does.
      if (real === undefined) continue
      if (!isInside(real, roots))
        throw fault(
          'borrows objects from another one (objects/info/alternates), outside of it. Name that folder in "alternates", or run git repack -a -d and delete the file.',
        )
      await visit(await openFolder(real), depth + 1)
    }
  }
  try {
    const objects = await openIn(commonDir, 'objects')
    if (objects === undefined) throw fault('is gone: it has no objects.')
    await visit(objects, 0)
    return found
  } catch (error) {
    for (const folder of found) folder.close()
    throw error instanceof LinkError ? linkedObjects() : error
  }
}

async function alternatesOf(directory: Folder): Promise<readonly string[]> {
  const info = await openIn(directory, 'info')
  if (info === undefined) return []
  try {
    const text = (await readIn(info, 'alternates', maxAlternatesBytes))?.toString('utf8') ?? ''
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    if (lines.some((line) => line.startsWith('"'))) throw new Error('a path in it is quoted')
    return lines
  } catch (error) {
    throw fault(`has an objects/info/alternates that cannot be used: ${sentence(error)}.`)
  } finally {
    info.close()
  }
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined
  }
}

/** Returns the error for symbolic links in place of packs or object directories, which would lead to objects elsewhere. */
export function linkedObjects(): ResourceError {
  return fault('has symbolic links among its objects. Name the repository that they lead to.')
}

/** Returns the error for invalid objects of the repository. `what` continues "The repository". */
export function fault(what: string): ResourceError {
  return unavailable(`The repository ${what}`, { reason: 'repository' })
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown'
}

/** Names of the check-out settings that are taken over. `plain` has their accepted values. */
const checkout = /^core\.(?:autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|checkstat|trustctime)$/

/** The settings taken from the configuration of a repository. git never sees any other setting of it. */
export interface RepositoryConfig {
  readonly format: ObjectFormat
  /** The format of the refs: `files` or `reftable`. */
  readonly refStorage: string
  /** Whether objects may be missing, for a later fetch (which never happens here). */
  readonly partial: boolean
  /** `core.worktree`, as written. */
  readonly workTree?: string
  /** Check-out settings, as lines for the provider's own configuration: needed to compare the files. */
  readonly checkout: readonly string[]
}

const maxConfigBytes = 1024 * 1024

const plain = /^(?:true|false|input|lf|crlf|native|minimal|default)$/

/**
 * Reads the configuration of a git directory as data: git parses the text, without includes, and applies nothing of it.
 *
 * @throws ResourceError `invalid` (reason `repository`) for a file that cannot be read or parsed, and for an unknown repository format.
 */
export async function readConfig(gitDir: Folder, launcher: Launcher): Promise<RepositoryConfig> {
  const values = await parse(await load(gitDir), launcher)
  const format = values.get('extensions.objectformat') ?? 'sha1'
  if (format !== 'sha1' && format !== 'sha256')
    throw configFault(`uses object ids of a kind that is not known: ${JSON.stringify(format)}.`)
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

async function load(gitDir: Folder): Promise<Buffer> {
  try {
    return (await readIn(gitDir, 'config', maxConfigBytes)) ?? Buffer.alloc(0)
  } catch (error) {
    throw configFault(`has a config that cannot be read: ${error instanceof Error ? error.message : 'unknown'}.`)
  }
}

/** Returns the last value of every key, with the letter case that git prints. */
async function parse(text: Buffer, launcher: Launcher): Promise<ReadonlyMap<string, string>> {
  const { bytes, code } = await launcher.run({
    args: ['config', '--file', '-', '--no-includes', '--null', '--list'],
    input: text,
    limit: 2 * maxConfigBytes,
    signal: new AbortController().signal,
    allows: [1, 128],
    // Error messages of git would repeat the content of the file.
    quiet: true,
  })
  if (code !== 0) throw configFault('has a config that git cannot parse. See git config --list there.')
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

export function configFault(what: string) {
  return invalid(`The repository ${what}`, 'repository')
}
