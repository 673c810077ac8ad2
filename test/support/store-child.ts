import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { StoreOptions } from '../../src/store/index.ts'

/** A line of JSON that a child printed. */
export type Said = Readonly<Record<string, unknown>>

/** A process that runs the built `store-child.mjs`. */
export interface StoreChild {
  readonly pid: number
  readonly said: readonly Said[]
  /** Waits until its output satisfies a condition. */
  until(holds: (said: readonly Said[]) => boolean): Promise<readonly Said[]>
  /** Lets a waiting task begin. */
  go(): void
  signal(name: NodeJS.Signals): void
  /** Resolves with its output, once it has exited or was killed. */
  readonly ended: Promise<readonly Said[]>
}

const script = join(import.meta.dirname, 'store-child.mjs')
const running = new Set<ChildProcess>()

export function startStoreChild(
  options: StoreOptions,
  task: string,
  ...values: readonly (string | number)[]
): StoreChild {
  return startUnder([], options, task, ...values)
}

/** @param command The command that starts the process, such as `strace` with its options. */
export function startUnder(
  command: readonly string[],
  options: StoreOptions,
  task: string,
  ...values: readonly (string | number)[]
): StoreChild {
  const [program = '', ...rest] = [...command, process.execPath, script, JSON.stringify(options), task]
  const child = spawn(program, [...rest, ...values.map(String)], { stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const said: Said[] = []
  let errors = ''
  let notice = () => {}
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdin.on('error', () => {})
  createInterface({ input: child.stdout }).on('line', (line) => {
    const one = parse(line)
    if (one !== undefined) said.push(one)
    notice()
  })
  let over = false
  const ended = new Promise<readonly Said[]>((resolve) => {
    child.once('close', () => {
      running.delete(child)
      over = true
      notice()
      resolve(said)
    })
  })
  return {
    pid: child.pid ?? 0,
    said,
    until: async (holds) => {
      while (!holds(said)) {
        if (over) throw new Error(`It ended before: ${JSON.stringify(said.slice(-3))} ${errors}`)
        await new Promise<void>((resolve) => {
          notice = resolve
        })
      }
      return said
    },
    go: () => child.stdin.write('go\n'),
    signal: (name) => void child.kill(name),
    ended,
  }
}

/** Ends the processes that a failed test has left. */
export function killStoreChildren(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Returns the value that a child writes under a key the i-th time. */
export function storedValue(key: string, i: number): Buffer {
  return Buffer.alloc(200 + ((i * 7919) % 9000), `${key}#${i};`)
}

/** The last line may be incomplete if the child was killed. */
function parse(line: string): Said | undefined {
  try {
    return JSON.parse(line) as Said
  } catch {
    return undefined
  }
}
