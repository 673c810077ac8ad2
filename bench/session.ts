import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
/** Number of ticks per second in which Linux counts CPU time. */
const ticksPerSecond = 100

/** A session with the built server over stdio (Linux). */
export interface Session {
  ask(method: string, params?: object): Promise<Record<string, unknown>>
  /** Resident memory of the process now, and its peak, in MiB. */
  memory(): { readonly now: number; readonly most: number }
  /** The CPU time of the process with all of its threads, without its children, in seconds. */
  cpuSeconds(): number
  end(): Promise<void>
  readonly pid: number
}

/** Starts `hikidashi serve … --stdio`, and initializes the session. */
export async function startSession(words: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<Session> {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [main, 'serve', ...words, '--stdio'], {
    cwd,
    env,
  })
  child.stderr.resume()
  const waiting = new Map<number, (result: Record<string, unknown>) => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result } = JSON.parse(line) as { readonly id?: number; readonly result?: Record<string, unknown> }
    if (id === undefined) return
    waiting.get(id)?.(result ?? {})
    waiting.delete(id)
  })
  let last = 0
  const ask: Session['ask'] = (method, params = {}) =>
    new Promise((resolve) => {
      const id = ++last
      waiting.set(id, resolve)
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  await ask('initialize', {
    ...{ protocolVersion: '2025-06-18', capabilities: {} },
    clientInfo: { name: 'bench', version: '1' },
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  return {
    ask,
    pid: child.pid ?? 0,
    memory: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024
      return { now: of('VmRSS'), most: of('VmHWM') }
    },
    cpuSeconds: () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
    },
    end: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    },
  }
}
