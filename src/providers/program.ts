import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { join, posix, win32 } from 'node:path'
import { type ChildLimits, limitedCommand } from '../core/kit/workers.ts'

/**
 * Returns the absolute path of a program on the PATH of `env`; `undefined` if there is none. Relative folders in the PATH
 * are skipped, so that no program in the working directory runs.
 */
export async function findProgram(
  name: string,
  env: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): Promise<string | undefined> {
  const { delimiter, isAbsolute } = platform === 'win32' ? win32 : posix
  for (const folder of (env.PATH ?? '').split(delimiter).filter(isAbsolute))
    for (const file of programFiles(name, env, platform)) {
      const path = join(folder, file)
      if (await isProgram(path)) return path
    }
  return undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the names that the file of a program may have. On Windows these have the endings of PATHEXT, unless `name` has one already. */
export function programFiles(
  name: string,
  env: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): readonly string[] {
  if (platform !== 'win32') return [name]
  const endings = (env.PATHEXT || '.COM;.EXE;.BAT;.CMD').split(';').filter((ending) => ending !== '')
  const hasEnding = endings.some((ending) => name.toLowerCase().endsWith(ending.toLowerCase()))
  return hasEnding ? [name] : endings.map((ending) => name + ending.toLowerCase())
}

export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(await realpath(path))).isFile()
  } catch {
    return false
  }
}

const shellPath = '/bin/sh'
let hasShell: boolean | undefined

/** Returns the path of a POSIX shell; `undefined` on Windows, and where there is no `/bin/sh`. */
export function findShell(): string | undefined {
  hasShell ??= canRunShell()
  return hasShell ? shellPath : undefined
}

/**
 * Starts a program with limits. On Windows, and where there is no `/bin/sh`, it starts without them.
 *
 * @param program An absolute path.
 */
export function spawnLimited(
  program: string,
  args: readonly string[],
  limits: ChildLimits,
  options: SpawnOptions,
): ChildProcess {
  const shell = findShell()
  if (shell === undefined) return spawn(program, [...args], options)
  const command = limitedCommand(shell, program, args, limits)
  return spawn(command.program, [...command.args], options)
}

interface OutputOptions {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Bytes for the standard input. By default it is empty. */
  readonly input?: Uint8Array
  readonly timeoutMs: number
  /** Maximum length of the standard output, in bytes. */
  readonly maxBytes: number
  readonly signal: AbortSignal
  readonly onStart?: (child: ChildProcess) => void
  readonly errors: {
    late(): Error
    tooMuch(): Error
    notStarted(cause: unknown): Error
    /** @param code The exit code. `null`: a signal ended the program. */
    failed(code: number | null): Error
  }
}

/**
 * Runs a program with limits, and returns its standard output. The program is killed when its time is over, its output is too long, the
 * signal aborts, or this process exits; except on Windows, its process group is killed with it. Rejects with one of `errors`, or the
 * reason of the signal.
 *
 * @param program An absolute path.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  limits: ChildLimits,
  { cwd, env, input, timeoutMs, maxBytes, signal, onStart, errors }: OutputOptions,
): Promise<Buffer> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const child = spawnLimited(program, args, limits, {
      env,
      cwd,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'ignore'],
      windowsHide: true,
      detached: process.platform !== 'win32',
    })
    onStart?.(child)
    const chunks: Buffer[] = []
    let length = 0
    let failure: unknown
    const end = (error: unknown) => {
      failure ??= error
      endGroup(child)
    }
    const abort = () => end(signal.reason)
    const endWithUs = () => endGroup(child)
    const timer = setTimeout(() => end(errors.late()), timeoutMs)
    signal.addEventListener('abort', abort, { once: true })
    process.once('exit', endWithUs)
    child.stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > maxBytes) end(errors.tooMuch())
      else chunks.push(chunk)
    })
    const settle = (code: number | null) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      process.removeListener('exit', endWithUs)
      if (failure !== undefined) reject(failure)
      else if (code === 0) resolve(Buffer.concat(chunks))
      else reject(errors.failed(code))
    }
    child.once('error', (cause) => {
      failure ??= errors.notStarted(cause)
      // A process that did not start emits no `close`.
      if (child.pid === undefined) settle(null)
    })
    child.once('close', settle)
    // Ignore EPIPE: the event `close` tells how the program ended.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid === undefined || process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The process has just ended.
  }
}

function canRunShell(): boolean {
  if (process.platform === 'win32') return false
  try {
    accessSync(shellPath, constants.X_OK)
    return true
  } catch {
    return false
  }
}
