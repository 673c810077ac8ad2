import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { bundled } from '../../support/bundled.ts'
import type { Setup } from './server.ts'
import type { World } from './world.ts'

/** A server process under attack. */
export interface Target {
  readonly pid: number
  readonly input: Writable
  readonly output: Readable
  /** The URL of its HTTP endpoint. */
  readonly url: URL | undefined
  readonly errors: () => string
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>
  readonly isAlive: () => boolean
  facts(): Facts
  stop(): Promise<void>
}

/** Facts of the system about a process. */
export interface Facts {
  readonly descriptors: number
  /** The targets of its descriptors, such as `socket:[1]` or a path. */
  readonly open: readonly string[]
  readonly children: number
  /** Resident memory, in MiB. */
  readonly resident: number
  /** Peak resident memory, in MiB. */
  readonly peak: number
}

const home = join(import.meta.dirname, '../../..')

/** Starts the fixture server, which is composed from the library. */
export function startFixture(world: World, setup: Omit<Setup, 'root'>): Promise<Target> {
  const argument = JSON.stringify({ root: world.root, ...setup } satisfies Setup)
  return start(world, ['--expose-gc', bundled('tests/server'), argument], setup.transport === 'http')
}

/** Starts the built command line: `hikidashi serve ROOT …`. */
export function startCommand(world: World, ...args: readonly string[]): Promise<Target> {
  return start(
    world,
    [join(home, 'dist/cli/main.js'), 'serve', world.root, '--only', 'files', ...args],
    args.includes('--http'),
  )
}

/**
 * Starts the built command line with a configuration, which is written beside the root: `hikidashi serve --config …`.
 * @param within A command that runs it in another environment, such as its own network namespace.
 */
export function startConfigured(
  world: World,
  transport: Setup['transport'],
  config: Readonly<Record<string, unknown>>,
  within: readonly string[] = [],
): Promise<Target> {
  const file = join(dirname(world.root), `hikidashi-${configs++}.json`)
  writeFileSync(file, JSON.stringify(config))
  const how = transport === 'http' ? ['--http', '127.0.0.1:0'] : ['--stdio']
  // The mounts are opened before the first case, so that the baseline includes them.
  const args = [join(home, 'dist/cli/main.js'), 'serve', '--config', file, '--strict', ...how]
  return start(world, args, transport === 'http', within)
}

let configs = 0

async function start(
  world: World,
  args: readonly string[],
  http: boolean,
  within: readonly string[] = [],
): Promise<Target> {
  const [command = '', ...rest] = [...within, process.execPath, ...args]
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(command, rest, {
    cwd: home,
    env: world.environment,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  let alive = true
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => {
      alive = false
      resolve(code ?? signal ?? 'unknown')
    })
  })
  child.stdin.on('error', () => {})
  child.stdout.on('error', () => {})
  const heard = new Promise<URL | undefined>((resolve, reject) => {
    if (!http) resolve(undefined)
    exited.then((code) => reject(new Error(`the server ended (${code}): ${errors}`)))
    child.stderr.on('data', (chunk: Buffer) => {
      world.canaries.see(chunk, `stderr of ${child.pid}`)
      errors = (errors + chunk.toString('latin1')).slice(-1_000_000)
      const url = /http:\/\/[^\s"']+/.exec(errors)?.[0]
      if (url !== undefined && /\s/.test(errors.slice(errors.indexOf(url) + url.length))) resolve(new URL(url))
    })
  })
  heard.catch(() => {})
  const url = await heard
  const pid = child.pid ?? 0
  return {
    pid,
    input: child.stdin,
    output: child.stdout,
    url,
    errors: () => errors,
    exited,
    isAlive: () => alive,
    facts: () => factsOf(pid),
    stop: async () => {
      if (!alive) return
      child.stdin.end()
      child.stdout.resume()
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 8000)
      await exited
      clearTimeout(timer)
    },
  }
}

function factsOf(pid: number): Facts {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  )
  const open = readdirSync(`/proc/${pid}/fd`)
  return {
    descriptors: open.length,
    open: open.map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)),
    children: children.length,
    resident: mebibytes('VmRSS'),
    peak: mebibytes('VmHWM'),
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return 'closed meanwhile'
  }
}

/** Waits until a condition holds. Returns the last value if it does not in time. */
export async function until<T>(ask: () => T, holds: (seen: T) => boolean, within = 10_000): Promise<T> {
  const end = performance.now() + within
  for (;;) {
    const seen = ask()
    if (holds(seen) || performance.now() > end) return seen
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export async function ended(target: Target, within: number): Promise<number | string | undefined> {
  const timeout = new Promise<undefined>((resolve) => setTimeout(resolve, within, undefined).unref())
  return Promise.race([target.exited, timeout])
}
