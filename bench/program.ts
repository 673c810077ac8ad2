import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A process that answers lines of JSON-RPC over stdio. */
export interface Program {
  ask(method: string, params: object): Promise<string>
  readonly child: ChildProcess
  close(): Promise<void>
}

export function startProgram(args: readonly string[], env: NodeJS.ProcessEnv): Program {
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'ignore'] })
  const waiting = new Map<number, (line: string) => void>()
  let pieces: Buffer[] = []
  let lastId = 0
  child.stdout.on('data', (chunk: Buffer) => {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...pieces, chunk.subarray(from, end)]).toString()
      pieces = []
      from = end + 1
      const id = Number(/"id":(\d+)/.exec(line.slice(0, 100) + line.slice(-100))?.[1])
      waiting.get(id)?.(line)
      waiting.delete(id)
    }
    pieces.push(chunk.subarray(from))
  })
  return {
    child,
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill()
      await ended
    },
    ask: (method, params) => {
      const id = ++lastId
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
      return new Promise((told) => waiting.set(id, told))
    },
  }
}

/** CPU time of a process and its threads, in milliseconds. */
export function cpuMs({ child }: Program): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Peak resident memory of a process so far, in MiB. */
export function peakMib({ child }: Program): number {
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'latin1'))?.[1]) / 1024
}

/** The `_meta` of a request of 2026-07-28. */
export const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
