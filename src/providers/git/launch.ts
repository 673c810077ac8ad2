import type { ChildProcess } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { type ChildLimits, childLimits } from '../../core/child-limits.ts'
import type { Log } from '../../core/log.ts'
import { createPool } from '../files/pool.ts'
import { spawnLimited } from '../limited-child.ts'
import { gitEnvironment } from './launch-environment.ts'
import { explainFailure, firstLine, unavailable } from './launch-failures.ts'

/** One process of git, from its start to its end. */
export interface Launch {
  /** The arguments behind `git`: the subcommand first. */
  readonly args: readonly string[]
  readonly signal: AbortSignal
  /** The git directory that it runs in: one of our own, never the repository's. */
  readonly gitDir?: string
  /** Where it runs. Default: the folder of our own. */
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string | Buffer
  /** Exit codes that are no failure, beside 0. */
  readonly allows?: readonly number[]
  /** What it writes about a failure may repeat what stands in a file: it is not logged. */
  readonly quiet?: boolean
}

/** What a process wrote. `cut`: there was more than was wanted, and it was ended. */
export interface Output {
  readonly bytes: Buffer
  readonly code: number
  readonly cut: boolean
}

/** Starts git, hardened: from an empty environment, in a git directory of our own, with a bound on everything. */
export interface Launcher {
  /**
   * Runs git to its end, or until it has written more than `limit` bytes.
   *
   * @throws ResourceError `unavailable` where it fails or takes longer than the time it has.
   */
  run(launch: Launch & { readonly limit: number }): Promise<Output>
  /** Runs git and hands its output on piece by piece, one after the other, until `take` answers `false`. */
  pipe(launch: Launch, take: (chunk: Buffer) => boolean | Promise<boolean>): Promise<Omit<Output, 'bytes'>>
  /** Starts git for a conversation; the caller ends it. */
  start(args: readonly string[]): ChildProcess
  /** Resolves once every process that runs now has ended. */
  settled(): Promise<void>
  /** Ends every process. */
  close(): void
}

export interface LauncherOptions {
  readonly git: string
  /** Where git runs: a folder of our own. */
  readonly folder: string
  /** The git directory for what names no other. */
  readonly gitDir: string
  /** Object directories, as `GIT_ALTERNATE_OBJECT_DIRECTORIES` has them. Asked at every start. */
  readonly objects: () => string
  readonly timeoutMs: number
  /** The largest object that is held in memory. */
  readonly maxBytes: number
  readonly log: Log
}

/** So many short processes run at once, beside the long-lived ones. */
const maxProcesses = 4
/** How much of what git writes about a failure is kept, in characters. */
const maxComplaint = 2000

/** Each with whether it has a process group of its own. */
const running = new Map<ChildProcess, boolean>()
let watchesExit = false

export function createLauncher(options: LauncherOptions): Launcher {
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
      env: gitEnvironment({ git, folder, objects: options.objects() }, launch.gitDir ?? options.gitDir, launch.env),
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group of its own, so that it can be ended together with whatever it started.
      detached: grouped,
      windowsHide: true,
    })
    watchExit()
    own.add(child)
    running.set(child, grouped)
    const forget = () => {
      own.delete(child)
      running.delete(child)
    }
    child.once('close', forget)
    child.once('error', () => {
      if (child.pid === undefined) forget()
    })
    // Writing to a process that is gone is no news: its end is.
    child.stdin?.on('error', () => {})
    return child
  }

  const converse = (launch: Launch, take: Parameters<Launcher['pipe']>[1]): Promise<Omit<Output, 'bytes'>> =>
    new Promise((resolve, reject) => {
      const { args, signal, allows = [], quiet = false } = launch
      const name = `git ${args[0] ?? ''}`
      const child = begin(args, true, childLimits.git(timeoutMs), launch)
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
        const taken = taking === undefined ? take(chunk) : taking.then(() => hand(chunk))
        if (taken === false) return end()
        if (taken === true) return
        // Nothing more is read until it was taken.
        child.stdout?.pause()
        const mine: Promise<void> = Promise.resolve(taken)
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
        ending ??= { error: unavailable(`${name} could not be started.`, error) }
        // Without a process there is no end to wait for.
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
          const said = quiet ? {} : { said: firstLine(complaint) }
          log('warn', 'git failed', { command: args[0], code, ...said })
          reject(explainFailure(name, code, complaint))
        }
      })
      child.stdin?.end(launch.input ?? '')
    })

  const pipe: Launcher['pipe'] = async (launch, take) => {
    launch.signal.throwIfAborted()
    return turns.run(() => converse(launch, take), { signal: launch.signal })
  }

  return {
    pipe,
    run: async ({ limit, ...launch }) => {
      const chunks: Buffer[] = []
      let length = 0
      const { code, cut } = await pipe(launch, (chunk) => {
        chunks.push(length + chunk.length > limit ? chunk.subarray(0, limit - length) : chunk)
        length += chunk.length
        return length <= limit
      })
      return { bytes: Buffer.concat(chunks), code, cut }
    },
    // With a group comes a session, which Linux gives processor time of its own: on a busy machine, questions and answers
    // in turn take four times as long then. cat-file starts nothing, and ends with its input.
    start: (args) => begin(args, false, childLimits.gitObjects(options.maxBytes)),
    settled: async () => {
      await Promise.all([...own].map((child) => new Promise<void>((resolve) => child.once('close', () => resolve()))))
    },
    close: () => {
      for (const child of own) endProcess(child)
    },
  }
}

/** The folder for temporary files is everybody's: where ours was cleared away, another user's can stand in its place. */
function requireOwn(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  const own = process.geteuid?.()
  if (stats?.isDirectory() !== true || (own !== undefined && stats.uid !== own))
    throw unavailable('The temporary folder of the git provider is gone.')
}

/** Ends a process and all that it started, at once. */
export function endProcess(child: ChildProcess): void {
  if (child.pid === undefined || !running.has(child)) return
  child.stdin?.destroy()
  try {
    process.kill(running.get(child) === true ? -child.pid : child.pid, 'SIGKILL')
  } catch {
    // It has ended just now.
  }
}

/** No process outlives this one, however it exits. (After a SIGKILL, git sees the end of its input.) */
function watchExit(): void {
  if (watchesExit) return
  watchesExit = true
  process.on('exit', () => {
    for (const child of running.keys()) endProcess(child)
  })
}
