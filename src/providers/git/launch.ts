import type { ChildProcess } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { errorCodeOf, isResourceError, type ResourceError, tooLarge, unavailable } from '../../core/errors.ts'
import { type ChildLimits, childLimits } from '../../core/kit/workers.ts'
import type { Log } from '../../core/log.ts'
import { createPool } from '../files/place.ts'
import { spawnLimited } from '../program.ts'

interface Launch {
  readonly args: readonly string[]
  readonly signal: AbortSignal
  /** The git directory to use: one of the provider's own, never the repository's. Default: that of the launcher. */
  readonly gitDir?: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string | Buffer
  /** Exit codes besides 0 that count as success. */
  readonly allows?: readonly number[]
  /** Whether to keep git's error output out of the log, because it may repeat the content of a file. */
  readonly quiet?: boolean
}

interface Output {
  readonly bytes: Buffer
  readonly code: number
  /** Whether the process was ended before the end of its output. */
  readonly cut: boolean
}

interface LauncherOptions {
  readonly git: string
  readonly folder: string
  /** Returns the default git directory. Called at every start. */
  readonly gitDir: () => string
  /** Returns the object directories, in the format of `GIT_ALTERNATE_OBJECT_DIRECTORIES`. Called at every start. */
  readonly objects: () => string
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly log: Log
}

const maxProcesses = 4
const maxComplaint = 2000

/** Running processes, each with whether it has its own process group. */
const running = new Map<ChildProcess, boolean>()
let watchesExit = false

export function createLauncher(options: LauncherOptions) {
  const { git, folder, timeoutMs, log } = options
  const turns = createPool(maxProcesses)
  const own = new Set<ChildProcess>()

  const begin = (
    args: readonly string[],
    grouped: boolean,
    limits: ChildLimits,
    launch: Pick<Launch, 'gitDir' | 'cwd' | 'env'> = {},
  ) => {
    requireOwn(folder)
    const child = spawnLimited(git, ['--no-pager', '--literal-pathspecs', ...args], limits, {
      cwd: launch.cwd ?? folder,
      env: gitEnvironment({ git, folder, objects: options.objects() }, launch.gitDir ?? options.gitDir(), launch.env),
      stdio: ['pipe', 'pipe', 'pipe'],
      // A separate process group, so that the process can be killed together with its children.
      detached: grouped && process.platform !== 'win32',
      windowsHide: true,
    })
    watchExit()
    own.add(child)
    running.set(child, grouped && process.platform !== 'win32')
    const forget = () => {
      own.delete(child)
      running.delete(child)
    }
    child.once('close', forget)
    child.once('error', () => {
      if (child.pid === undefined) forget()
    })
    // Ignore EPIPE; the close event reports the failure.
    child.stdin?.on('error', () => {})
    return child
  }

  const converse = (launch: Launch, take: Take) =>
    conversation(begin(launch.args, true, childLimits.git(timeoutMs), launch), launch, take, { timeoutMs, log })

  /** Runs git and passes its output to `take` in chunks, one after the other, until that returns `false`. */
  const pipe = async (
    launch: Launch,
    take: (chunk: Buffer) => boolean | Promise<boolean>,
  ): Promise<Omit<Output, 'bytes'>> => {
    launch.signal.throwIfAborted()
    return turns.run(() => converse(launch, take), { signal: launch.signal })
  }

  return {
    pipe,
    /**
     * Runs git to its end, or until it has written more than `limit` bytes.
     *
     * @throws ResourceError `unavailable` when git fails or exceeds its time-out, `too-large` when it exceeds its memory limit.
     */
    run: async ({ limit, ...launch }: Launch & { readonly limit: number }): Promise<Output> => {
      const chunks: Buffer[] = []
      let length = 0
      const { code, cut } = await pipe(launch, (chunk) => {
        chunks.push(length + chunk.length > limit ? chunk.subarray(0, limit - length) : chunk)
        length += chunk.length
        return length <= limit
      })
      return { bytes: Buffer.concat(chunks), code, cut }
    },
    /** Starts git for a dialogue over its pipes; the caller ends it. */
    // Not in its own group: a group comes with a session, which Linux schedules separately, so that alternating questions and answers take longer on
    // a busy machine. cat-file starts no processes, and ends with its input.
    start: (args: readonly string[]): ChildProcess => begin(args, false, childLimits.gitObjects(options.maxBytes)),
    close: (): void => {
      for (const child of own) endProcess(child)
    },
  }
}

export type Launcher = ReturnType<typeof createLauncher>

type Take = Parameters<Launcher['pipe']>[1]

function conversation(
  child: ChildProcess,
  launch: Launch,
  take: Take,
  { timeoutMs, log }: Pick<LauncherOptions, 'timeoutMs' | 'log'>,
): Promise<Omit<Output, 'bytes'>> {
  return new Promise((resolve, reject) => {
    const { args, signal, allows = [], quiet = false } = launch
    const name = `git ${args[0] ?? ''}`
    let complaint = ''
    let ending: { readonly error?: unknown } | undefined
    const end = (error?: unknown) => {
      ending ??= { error }
      endProcess(child)
    }
    const abort = () => end(signal.reason)
    const timer = setTimeout(() => end(unavailable(`${name} did not end within ${timeoutMs} ms.`)), timeoutMs)
    signal.addEventListener('abort', abort, { once: true })
    let taking: Promise<void> | undefined
    const hand = async (chunk: Buffer) => {
      if (ending === undefined && !(await take(chunk))) end()
    }
    child.stdout?.on('data', (chunk: Buffer) => {
      if (ending !== undefined) return
      const result = taking === undefined ? take(chunk) : taking.then(() => hand(chunk))
      if (result === false) return end()
      if (result === true) return
      // Back-pressure: read no more until the chunk was taken.
      child.stdout?.pause()
      const mine: Promise<void> = Promise.resolve(result)
        .then(
          (more) => (more === false ? end() : undefined),
          (error: unknown) => end(error),
        )
        .then(() => {
          if (taking !== mine) return
          taking = undefined
          child.stdout?.resume()
        })
      taking = mine
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (complaint.length < maxComplaint) complaint += text
    })
    child.once('error', (error) => {
      ending ??= { error: unavailable(`${name} could not be started.`, {}, error) }
      // A process that did not start sends no close event.
      if (child.pid === undefined) child.emit('close', -1, null)
    })
    child.once('close', async (code) => {
      while (taking !== undefined) await taking
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      if (ending !== undefined) {
        if (ending.error === undefined) resolve({ code: 0, cut: true })
        else reject(ending.error)
      } else if (code === 0 || (code !== null && allows.includes(code))) resolve({ code, cut: false })
      else {
        const complaintDetail = quiet ? {} : { said: firstLine(complaint) }
        log('warn', 'git failed', { command: args[0], code, ...complaintDetail })
        reject(gitProcessError(name, code, complaint))
      }
    })
    child.stdin?.end(launch.input ?? '')
  })
}

/** Throws unless this user owns the folder. All users share its parent, so another user can create it again after it was deleted. */
function requireOwn(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  const own = process.geteuid?.()
  if (stats?.isDirectory() !== true || (own !== undefined && stats.uid !== own))
    throw unavailable(
      'The temporary folder of the git provider no longer exists, or belongs to another user. Restart the server.',
    )
}

/** Kills a process that the launcher started and, if it has its own process group, all its children. */
export function endProcess(child: ChildProcess): void {
  if (child.pid === undefined || !running.has(child)) return
  child.stdin?.destroy()
  try {
    process.kill(running.get(child) === true ? -child.pid : child.pid, 'SIGKILL')
  } catch {}
}

function watchExit(): void {
  if (watchesExit) return
  watchesExit = true
  process.on('exit', () => {
    for (const child of running.keys()) endProcess(child)
  })
}

/** Settings that bound git's caches and memory maps, in the form of environment variables (git-config(1), GIT_CONFIG_COUNT). */
const memorySettings = settingsOf({
  'core.deltaBaseCacheLimit': '32m',
  'core.packedGitWindowSize': '32m',
  'core.packedGitLimit': '256m',
  'pack.windowMemory': '32m',
  'pack.threads': '1',
})

function settingsOf(settings: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(settings)
  return {
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(
      entries.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  }
}

/**
 * Returns the environment of a process of git. It starts empty: nothing of this process's environment, and so nothing of a client's, reaches
 * git (git(1), environment variables).
 *
 * @param own The git to run, the provider's own folder to run in, and the object directories to read.
 */
function gitEnvironment(
  own: { readonly git: string; readonly folder: string; readonly objects: string },
  gitDir: string,
  extra: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  return {
    PATH: [dirname(own.git), ...(process.platform === 'win32' ? [] : ['/usr/bin', '/bin'])].join(delimiter),
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: own.folder,
    GIT_DIR: gitDir,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: own.objects,
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    ...memorySettings,
    ...extra,
  }
}

/** Returns the error for a process of git that failed. `complaint` is its error output, which the error does not contain. */
export function gitProcessError(name: string, code: number | null, complaint: string): ResourceError {
  if (complaint.includes('dubious ownership'))
    return unavailable(
      `${name} refuses the repository, since another user owns it. Run this server as its owner, or give the repository to this user (chown -R).`,
    )
  if (isOutOfMemory(complaint)) return memoryError()
  const message = `${name} failed (${code === null ? 'it was killed' : `exit code ${code}`}).`
  return unavailable(message, missingObject.test(complaint) ? { fault: missingObjectFault } : {})
}

export const missingObjectFault = 'missing-object'

const missingObject =
  /\b(?:unable to|cannot|could not) (?:read|fetch) (?:\w+ )?\(?[0-9a-f]{40}|\bbad (?:object|tree|blob)|Failed to traverse parents|not found in the object store/i

/** Whether the error output of git says that it reached its memory limit (`xmalloc` and `xmmap` of git's wrapper.c). */
export function isOutOfMemory(complaint: string): boolean {
  return /out of memory|cannot allocate memory/i.test(complaint)
}

/** Returns the error for an object that git cannot load within its memory limit. A retry does not help. */
export function memoryError(): ResourceError {
  return tooLarge('git exceeded its memory limit. Ask for less.')
}

/** Returns the first line of a text for the log: at most 300 characters, with `?` for control characters. */
export function firstLine(text: string): string {
  return (
    text
      .slice(0, 300)
      .split('\n')[0]
      ?.replace(/\p{Cc}/gu, '?') ?? ''
  )
}

/** Converts an error of the file system into one with a message for clients. Returns any other error unchanged. */
export function fileSystemError(error: unknown): unknown {
  const code = errorCodeOf(error)
  if (isResourceError(error) || code === undefined) return error
  return unavailable(`The file system reports ${code}.`, {}, error)
}
