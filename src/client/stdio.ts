import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseJSONRPCMessage, SdkError, SdkErrorCode, type Transport } from '@modelcontextprotocol/client'
import {
  getDefaultEnvironment,
  StdioClientTransport,
  type StdioServerParameters,
} from '@modelcontextprotocol/client/stdio'
import { defined } from '../core/kit/object.ts'
import { type MemoryLimit, type ProcessGroup, watchGroup } from '../core/kit/process-group.ts'
import type { ConnectionSettings } from './connection.ts'
import { tooLargeError } from './errors.ts'
import { type FloodLimit, paceLines } from './flood.ts'
import { normalizeMessage } from './messages.ts'
import type { CommandTarget } from './target.ts'

/**
 * The SDK's transport, for Windows: it finds programs as the shell does there (`npx` is `npx.cmd`). The SDK probes the revision of a server
 * with a second process if the transport is exactly of the SDK's class, and servers can be slow to start or fail when started twice; so
 * this is a subclass.
 */
class WindowsTransport extends StdioClientTransport {
  readonly flood: FloodLimit
  readonly maxBytes: number

  constructor(server: StdioServerParameters, flood: FloodLimit, maxBytes: number) {
    super(server)
    this.flood = flood
    this.maxBytes = maxBytes
  }

  override async start(): Promise<void> {
    await super.start()
    // The SDK's reader handles everything that has arrived in one turn of the event loop, and has no option to handle less.
    const { stdout } = (Reflect.get(this, '_process') ?? {}) as Partial<ChildProcess>
    stdout?.removeAllListeners('data')
    if (stdout) hearMessages(stdout, this, this.flood, this.maxBytes)
  }
}

/** Maximum number of characters of the standard error in an error message. */
const maxWords = 500
/** Maximum number of characters of one line in the log. */
const maxLine = 8192

export function childTransport(
  target: CommandTarget,
  { stderr, maxBytes, log }: Pick<ConnectionSettings, 'stderr' | 'maxBytes' | 'log'>,
  flood: FloodLimit,
  memory: MemoryLimit,
) {
  const { command, args = [], env = {}, cwd } = target
  const server: StdioServerParameters = {
    command,
    args: [...args],
    env: { ...env },
    stderr: stderr === 'log' ? 'pipe' : 'inherit',
    ...defined({ cwd }),
  }
  const isWindows = process.platform === 'win32'
  const transport = isWindows
    ? new WindowsTransport(server, flood, maxBytes)
    : commandTransport(server, flood, memory, maxBytes)
  let words = ''
  let line = ''
  // The SDK declares `stderr` as any kind of stream; it is a PassThrough.
  const stream = transport.stderr as Readable | null
  stream?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-maxWords)
    const lines = (line + text).split(/\r?\n/)
    line = (lines.pop() ?? '').slice(0, maxLine)
    for (const errorLine of lines)
      if (errorLine !== '') log('debug', 'the server writes to stderr', { stderr: errorLine.slice(0, maxLine) })
  })
  return {
    transport,
    /** Returns the end of the standard error; empty when that goes to the standard error of this process. */
    lastWords: () => words.trim(),
  }
}

/** A transport over stdio. The SDK recognises such a transport by its members `pid` and `stderr`. */
interface CommandTransport extends Transport {
  readonly pid: number | null
  /** Standard error of the command. `null` when it goes to the standard error of this process. */
  readonly stderr: Readable | null
}

type CommandTransportChild = ChildProcessByStdio<Writable, Readable, Readable | null>

/** How long a command may take to exit after its input has ended, in milliseconds. */
const exitTimeoutMs = 2000

/**
 * Speaks MCP over the standard input and output of a command. The command leads its own session, so it can be ended together with the
 * processes that it has started. Closing ends its input. If it does not exit within two seconds, {@link ProcessGroup.end} stops it. Not for
 * Windows, which has no process groups.
 */
function commandTransport(
  server: StdioServerParameters,
  flood: FloodLimit,
  limit: MemoryLimit,
  maxBytes: number,
): CommandTransport {
  const stderr = server.stderr === 'pipe' ? new PassThrough() : null
  let child: CommandTransportChild | undefined
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
      hearMessages(started.stdout, transport, flood, maxBytes)
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
        // The listener of the stream reports a write error. Here the error only ends the wait.
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

function startCommand({ command, args = [], env, cwd, stderr }: StdioServerParameters): CommandTransportChild {
  const output = stderr === 'pipe' ? 'pipe' : 'inherit'
  const child = spawn(command, args, {
    env: { ...getDefaultEnvironment(), ...env },
    stdio: ['pipe', 'pipe', output],
    detached: true,
    ...defined({ cwd }),
  })
  return child as CommandTransportChild
}

/** Passes the messages in the output of a command to its transport. A line longer than `maxBytes` ends the connection. */
function hearMessages(stdout: Readable, transport: Transport, flood: FloodLimit, maxBytes: number): void {
  const linesIn = createLineReader(maxBytes)
  const report = (error: unknown) => transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
  const hearLine = (line: string): void => {
    try {
      transport.onmessage?.(parseJSONRPCMessage(normalizeMessage(JSON.parse(line))))
    } catch (error) {
      flood.countUnreadable(transport)
      report(error)
    }
  }
  stdout.on('data', (chunk: Buffer) => {
    const lines = linesIn(chunk)
    if (lines !== undefined) return lines.forEach(hearLine)
    report(tooLargeError(maxBytes))
    stdout.removeAllListeners('data').resume()
    transport.close().catch(report)
  })
  paceLines(stdout, flood)
}

const newline = 0x0a

/** Returns a reader of the lines of a stream. It returns the lines that end in a chunk, or undefined when a line is too long. */
function createLineReader(maxBytes: number): (chunk: Buffer) => readonly string[] | undefined {
  let parts: Buffer[] = []
  let length = 0
  return (chunk) => {
    const lines: string[] = []
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(newline, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      length += part.length
      if (length > maxBytes) return undefined
      parts.push(part)
      if (end === -1) return lines
      const line = Buffer.concat(parts).toString('utf8').trim()
      if (line !== '') lines.push(line)
      parts = []
      length = 0
      start = end + 1
    }
    return lines
  }
}

async function exitOf(child: CommandTransportChild, timeoutMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const waiting = new AbortController()
  const { signal } = waiting
  await Promise.race([once(child, 'exit', { signal }), sleep(timeoutMs, undefined, { signal })]).catch(() => {})
  waiting.abort()
}
