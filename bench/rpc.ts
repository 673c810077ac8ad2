import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

interface Answer {
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** A connection to a server over stdio without a client library, so that only the server is measured. */
export interface Peer {
  call(
    method: string,
    params?: Record<string, unknown>,
  ): Promise<{ result: Record<string, unknown>; bytes: number; ms: number }>
  /** The longest pause of the server's event loop since the last probe, in milliseconds, and its memory, in bytes. */
  probe(): Promise<{ pause: number; rss: number; heapUsed: number }>
  close(): Promise<void>
}

export function startPeer(script: string, args: readonly string[]): Peer {
  const child: ChildProcess = spawn(
    process.execPath,
    ['--expose-gc', '--import', 'tsx', '--import', join(import.meta.dirname, 'probe.mjs'), script, ...args],
    { cwd: join(import.meta.dirname, '..'), stdio: ['pipe', 'pipe', 'pipe'] },
  )
  const waiting = new Map<number, (answer: { text: string; bytes: number }) => void>()
  const probes: ((text: string) => void)[] = []
  let chunks: Buffer[] = []
  let next = 1
  child.stdout?.on('data', (chunk: Buffer) => {
    let start = 0
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...chunks, chunk.subarray(start, at)])
      chunks = []
      start = at + 1
      const text = line.toString()
      const id = Number(/"id":(\d+)/.exec(text.slice(0, 200) + text.slice(-200))?.[1])
      waiting.get(id)?.({ text, bytes: line.length })
      waiting.delete(id)
    }
    chunks.push(chunk.subarray(start))
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n')) {
      if (line.startsWith('probe ')) probes.shift()?.(line.slice(6))
      else if (line !== '') process.stderr.write(`${line}\n`)
    }
  })
  const call: Peer['call'] = async (method, params = {}) => {
    const id = next++
    const start = performance.now()
    const answered = new Promise<{ text: string; bytes: number }>((resolve) => waiting.set(id, resolve))
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    const { text, bytes } = await answered
    const ms = performance.now() - start
    const { result, error } = JSON.parse(text) as Answer
    if (result === undefined) throw new Error(error?.message)
    return { result, bytes, ms }
  }
  return {
    call,
    probe: async () => {
      const told = new Promise<string>((resolve) => probes.push(resolve))
      child.kill('SIGUSR2')
      return JSON.parse(await told) as { pause: number; rss: number; heapUsed: number }
    },
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.stdin?.end()
      await ended
    },
  }
}

export const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
}
