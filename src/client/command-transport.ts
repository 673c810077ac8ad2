import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReadBuffer, SdkError, SdkErrorCode, type Transport } from '@modelcontextprotocol/client'
import { getDefaultEnvironment, type StdioServerParameters } from '@modelcontextprotocol/client/stdio'
import { defined } from '../core/kit/defined.ts'
import { type MemoryLimit, type ProcessGroup, watchGroup } from '../core/kit/process-group.ts'
import { type Flood, paceLines } from './flood.ts'

/** A transport over stdio. The SDK recognises one by its members `pid` and `stderr`. */
export interface CommandTransport extends Transport {
  readonly pid: number | null
  /** Standard error of the command. `null` when it goes to the standard error of this process. */
  readonly stderr: Readable | null
}

type Child = ChildProcessByStdio<Writable, Readable, Readable | null>

/** How long a command may take to exit after its input has ended, in milliseconds. */
const exitTimeoutMs = 2000

/**
 * Speaks MCP over the standard input and output of a command. The command leads its own session, so it ends together with every
 * process that it has started. Closing ends its input. If it does not exit within two seconds, {@link ProcessGroup.end} stops it;
 * the same holds for every process that it leaves behind. Not for Windows, which has no process groups.
 */
export function commandTransport(server: StdioServerParameters, flood: Flood, limit: MemoryLimit): CommandTransport {
  const stderr = server.stderr === 'pipe' ? new PassThrough() : null
  const buffer = new ReadBuffer(server.maxBufferSize === undefined ? {} : { maxBufferSize: server.maxBufferSize })
  let child: Child | undefined
  let group: ProcessGroup | undefined
  let hasEnded = false
  let closing: Promise<void> | undefined

  const report = (error: unknown) => transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
  const close = async (): Promise<void> => {
    if (child?.pid === undefined) return
    child.stdin.end()
    if (!hasEnded) await exitOf(child, exitTimeoutMs)
    await group?.end()
    // A process that left the session may hold the other ends of these streams.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
    buffer.clear()
  }
  const hear = (chunk: Buffer): void => {
    try {
      buffer.append(chunk)
    } catch (error) {
      report(error)
      transport.close().catch(report)
      return
    }
    for (;;) {
      try {
        const message = buffer.readMessage()
        if (message === null) return
        transport.onmessage?.(message)
      } catch (error) {
        report(error)
      }
    }
  }

  const transport: CommandTransport = {
    get pid() {
      return child?.pid ?? null
    },
    stderr,
    start: async () => {
      if (child !== undefined) throw new Error('The command was started already.')
      const started = startCommand(server)
      child = started
      started.on('error', report)
      for (const stream of [started.stdin, started.stdout]) stream.on('error', report)
      started.stdout.on('data', hear)
      paceLines(started.stdout, flood)
      if (stderr !== null) started.stderr?.pipe(stderr)
      started.once('close', () => {
        hasEnded = true
        group?.end().catch(report)
        transport.onclose?.()
      })
      if (started.pid !== undefined) group = watchGroup(started.pid, limit)
      await once(started, 'spawn')
    },
    send: (message) =>
      new Promise((resolve, reject) => {
        if (child === undefined || hasEnded || closing !== undefined)
          return reject(new SdkError(SdkErrorCode.NotConnected, 'Not connected'))
        // The stream reports an error by itself; an error also ends the wait.
        const hasRoom = child.stdin.write(`${JSON.stringify(message)}\n`, () => resolve())
        if (hasRoom) resolve()
      }),
    close: () => {
      closing ??= close()
      return closing
    },
  }
  return transport
}

function startCommand({ command, args = [], env, cwd, stderr }: StdioServerParameters): Child {
  const output = stderr === 'pipe' ? 'pipe' : 'inherit'
  const child = spawn(command, args, {
    env: { ...getDefaultEnvironment(), ...env },
    stdio: ['pipe', 'pipe', output],
    detached: true,
    ...defined({ cwd }),
  })
  return child as Child
}

/** Waits until a process exits, at most `timeoutMs` milliseconds. */
async function exitOf(child: Child, timeoutMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const waiting = new AbortController()
  const { signal } = waiting
  await Promise.race([once(child, 'exit', { signal }), sleep(timeoutMs, undefined, { signal })]).catch(() => {})
  waiting.abort()
}
