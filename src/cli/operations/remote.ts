import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { devNull } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCodeOf } from '../../core/errors.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { commandFailure, usageError } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

interface RemoteRepository {
  /** For git. It may hold a password. */
  readonly url: string
  /** A branch, a tag or the whole hash of a commit. `HEAD` is the default branch. */
  readonly ref: string
  /** Name in the addresses of the files, such as `owner/repo`. */
  readonly name: string
}

interface FetchedRepository {
  readonly folder: string
  readonly name: string
}

/** Limits of a repository: time of one git command, total size of its objects and of its files, number of its files. */
const timeoutMs = 10 * 60_000
const maxObjectBytes = 1024 ** 3
const maxFileBytes = 1024 ** 3
const maxFiles = 200_000
const lookIntervalMs = 500

/** Variables that would lead git to another repository (`git rev-parse --local-env-vars`). */
const localVariables =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX|SHALLOW_FILE|GRAFT_FILE|CONFIG|CONFIG_PARAMETERS|CONFIG_COUNT|IMPLICIT_WORK_TREE|NO_REPLACE_OBJECTS|REPLACE_REF_BASE|INTERNAL_SUPER_PREFIX)$/

/** Parses `owner/repo[#ref]` (a repository of GitHub), or a URL of git with `#ref`. */
export function parseRemote(text: string): RemoteRepository {
  const [, place = '', ref = 'HEAD'] = /^([^#]*)(?:#(.*))?$/s.exec(text) ?? []
  if (!isRef(ref))
    throw usageError(`${JSON.stringify(ref)} is not the name of a branch or a tag, or the hash of a commit.`)
  if (/^[\w.-]+\/[\w.-]+$/.test(place))
    return { url: `https://github.com/${place}.git`, ref, name: repositoryName(place) }
  // Other transports, such as ext::, run commands.
  const isUrl =
    /^(?:https?|ssh|git|file):\/\/[^\s\p{Cc}]+$/u.test(place) || /^[\w.-]+@[\w.-]+:[^\s\p{Cc}]+$/u.test(place)
  if (isUrl) return { url: place, ref, name: repositoryName(place) }
  throw usageError(
    'The value of --remote must be owner/repo of GitHub, or a URL of git: https://, ssh://, git://, file:// or git@host:path.',
  )
}

/** Refuses texts with a meaning beyond one ref (git-check-ref-format) or commit. */
function isRef(text: string): boolean {
  return (
    /^[^\s\p{Cc}~^:?*[\\@{-][^\s\p{Cc}~^:?*[\\@{]*$/u.test(text) && !text.includes('..') && !/(?:\/|\.lock)$/.test(text)
  )
}

function repositoryName(place: string): string {
  const segments = place
    .replace(/^\w+:\/\/[^/]*/, '')
    .replace(/^[^/]*@[^/:]*:/, '')
    .replace(/(?:\/|\.git)+$/, '')
    .split('/')
  const plain = segments.map((segment) => segment.replaceAll(/[^\w.-]+/g, '-')).filter((name) => /[^.]/.test(name))
  return plain.slice(-2).join('/') || 'repository'
}

/**
 * Fetches one commit of a repository, without its history, into the cache of the user. No filter, hook or submodule
 * runs, and links become texts. If the fetch fails, an earlier copy is used, and a message says so.
 * @throws CommandError if the fetch fails without an earlier copy, or another process keeps the lock
 */
export async function fetchRemote(text: string, io: Pick<Io, 'say'>): Promise<FetchedRepository> {
  const { url, ref, name } = parseRemote(text)
  const digest = createHash('sha256').update(`${url}\0${ref}`).digest('hex').slice(0, 16)
  // Addresses of some mounts contain the name of the folder.
  const folder = join(cacheFolder(), 'remote', digest, name.split('/').at(-1) ?? name)
  const repository = join(folder, '.git')
  const complete = join(repository, 'hikidashi-complete')
  makeFolder(folder, 0o700)
  const unlock = await lock(join(cacheFolder(), 'remote', digest, 'lock'), io)
  try {
    await removeRemains(repository)
    await git(['init', '--quiet', '--template=', folder], folder)
    // These attributes precede those of the repository.
    await mkdir(join(repository, 'info'), { recursive: true })
    await writeFile(join(repository, 'info', 'attributes'), '* -filter -text -ident -working-tree-encoding\n')
    const fetchedRef = 'refs/hikidashi/fetched'
    const options = ['--depth=1', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--force', '--quiet']
    await withinSize(join(repository, 'objects', 'pack'), (signal) =>
      git(['fetch', ...options, '--', url, `${ref}:${fetchedRef}`], folder, signal),
    )
    requireFewFiles(await git(['ls-tree', '-r', '-l', '-z', '--full-tree', fetchedRef], folder))
    await rm(complete, { force: true })
    await git(['checkout', '--quiet', '--force', '--detach', fetchedRef], folder)
    await writeFile(complete, '')
  } catch (error) {
    if (!existsSync(complete)) throw error
    const { mtime } = await stat(complete)
    io.say(`${error instanceof Error ? error.message : String(error)} The copy of ${mtime.toISOString()} is used.`)
  } finally {
    await unlock()
  }
  return { folder, name }
}

/**
 * Waits for a lock of other processes, and takes it. The lock is a folder with one file, named by the id of the
 * process: the system renames a folder only onto an empty one, and only the file of a dead process is removed.
 * @returns A function that releases the lock.
 * @throws CommandError if the other process does not release it
 */
async function lock(folder: string, io: Pick<Io, 'say'>): Promise<() => Promise<void>> {
  const own = await mkdtemp(`${folder}-`)
  await writeFile(join(own, String(process.pid)), '')
  const release = async (lockFolder: string) => {
    await rm(join(lockFolder, String(process.pid)), { force: true })
    // If another process has taken the lock meanwhile, the folder has its file, and stays.
    await rmdir(lockFolder).catch(() => {})
  }
  let waits = false
  for (const start = Date.now(); ; ) {
    const isTaken = await rename(own, folder).then(
      () => true,
      (error: unknown) => {
        if (['ENOTEMPTY', 'EEXIST', 'EPERM', 'EACCES', 'EBUSY'].includes(errorCodeOf(error) ?? '')) return false
        throw error
      },
    )
    if (isTaken) return () => release(folder)
    const ids = await readdir(folder).catch(() => [])
    const living = ids.filter((id) => isAlive(Number(id)))
    for (const id of ids) if (!living.includes(id)) await rm(join(folder, id), { force: true })
    if (living.length === 0) await rmdir(folder).catch(() => {})
    if (Date.now() - start > timeoutMs) {
      await release(own)
      const holder = living.length === 0 ? folder : `Another process (${living.join(', ')})`
      throw commandFailure(
        `${holder} has kept this repository locked for ${timeoutMs / 60_000} minutes. ${living.length === 0 ? 'Remove' : 'End'} it, or try again later.`,
      )
    }
    if (living.length > 0 && !waits) io.say(`Process ${living.join(', ')} fetches this repository: waiting for it.`)
    waits ||= living.length > 0
    await sleep(lookIntervalMs / 5)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is the process of another user.
    return errorCodeOf(error) === 'EPERM'
  }
}

/** `$XDG_CACHE_HOME/hikidashi`, by default `~/.cache/hikidashi`; on Windows `%LOCALAPPDATA%\hikidashi\cache`. */
function cacheFolder(): string {
  const { XDG_CACHE_HOME: cacheHome, LOCALAPPDATA: local } = process.env
  if (process.platform === 'win32' && local !== undefined && isAbsolute(local)) return join(local, 'hikidashi', 'cache')
  return join(cacheHome !== undefined && isAbsolute(cacheHome) ? cacheHome : join(homeFolder(), '.cache'), 'hikidashi')
}

/** Settings for contents that nobody has trusted. */
const settings = [
  ...['core.symlinks=false', `core.hooksPath=${devNull}`, 'core.fsmonitor=false', 'core.autocrlf=false'],
  ...['protocol.ext.allow=never', 'submodule.recurse=false', 'gc.auto=0', 'advice.detachedHead=false'],
].flatMap((setting) => ['-c', setting])

/** Returns the output of git. @throws CommandError with the last line of its messages, without a password */
async function git(args: readonly string[], folder: string, signal?: AbortSignal): Promise<string> {
  const inherited = Object.entries(process.env).filter(([name]) => !localVariables.test(name))
  const env = { ...Object.fromEntries(inherited), GIT_TERMINAL_PROMPT: '0', GIT_LFS_SKIP_SMUDGE: '1', LC_ALL: 'C' }
  const options = {
    cwd: folder,
    env,
    timeout: timeoutMs,
    maxBuffer: maxListBytes,
    windowsHide: true,
    ...(signal && { signal }),
  }
  return new Promise((resolve, reject) => {
    const child = execFile('git', [...settings, ...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      if (signal?.aborted === true) return reject(signal.reason)
      reject(commandFailure(sentenceOf(error, stderr)))
    })
    // Without input, git cannot wait for an answer.
    child.stdin?.end()
  })
}

const maxListBytes = maxFiles * 512

function sentenceOf(error: Error & { readonly killed?: boolean }, stderr: string): string {
  const code = errorCodeOf(error)
  if (code === 'ENOENT') return 'git is not installed, and --remote needs it. Install git.'
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return tooManyFiles
  if (error.killed === true) return `The repository could not be fetched within ${timeoutMs / 60_000} minutes.`
  const reason =
    stderr
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^fatal: /, '') ?? ''
  const text = reason.replaceAll(/\/\/[^/@\s]*@/g, '//')
  return `The repository cannot be fetched. ${text === '' ? 'git gives no reason.' : `git says: ${text}`}`
}

const tooManyFiles = `The repository has more than ${maxFiles.toLocaleString('en')} files, which is too much to fetch.`

/** @param list The output of `git ls-tree -r -l -z`. */
function requireFewFiles(list: string): void {
  const entries = list.split('\0').slice(0, -1)
  if (entries.length > maxFiles) throw commandFailure(tooManyFiles)
  const bytes = entries.map((entry) => Number(/^\S+ blob \S+ +(\d+)\t/.exec(entry)?.[1] ?? 0))
  const total = bytes.reduce((sum, size) => sum + size, 0)
  if (total > maxFileBytes)
    throw commandFailure('The files of the repository have more than 1 GiB, which is too much to fetch.')
}

async function withinSize<T>(packs: string, fetch: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const look = async () => {
    if ((await sumFileSizes(packs)) > maxObjectBytes)
      controller.abort(commandFailure('The repository has more than 1 GiB, which is too much to fetch.'))
  }
  const timer = setInterval(() => void look(), lookIntervalMs)
  try {
    return await fetch(controller.signal)
  } finally {
    clearInterval(timer)
  }
}

async function sumFileSizes(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => [])
  const sizes = names.map((name) =>
    stat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  )
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/**
 * A killed git leaves locks and unfinished packs behind. Only the process with the lock of the repository may remove
 * them.
 */
async function removeRemains(repository: string): Promise<void> {
  for (const folder of ['', 'refs/hikidashi', 'objects/pack']) {
    const path = join(repository, folder)
    const names = await readdir(path).catch(() => [])
    for (const name of names)
      if (name.endsWith('.lock') || name.startsWith('tmp_')) await rm(join(path, name), { force: true })
  }
}
