import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport, type StdioServerParameters } from '@modelcontextprotocol/client/stdio'
import type { MemoryLimit } from '../core/process-group.ts'
import { commandTransport } from './command-transport.ts'
import type { Limits } from './connection.ts'
import { type Flood, paceLines } from './flood.ts'
import type { CommandTarget } from './target.ts'

/**
 * The transport of the SDK, for Windows: it finds programs there as its shell does (`npx` is `npx.cmd`).
 *
 * The SDK starts a second process to find out which revision a server speaks, but only for its own class exactly; for any
 * other it asks the one process that there is. Servers can be slow to start, and can mind being started twice.
 */
class WindowsTransport extends StdioClientTransport {
  readonly flood: Flood

  constructor(server: StdioServerParameters, flood: Flood) {
    super(server)
    this.flood = flood
  }

  override async start(): Promise<void> {
    await super.start()
    // The SDK reads all that has come in one turn of the event loop, and has no option for less.
    const { stdout } = (Reflect.get(this, '_process') ?? {}) as Partial<ChildProcess>
    if (stdout) paceLines(stdout, this.flood)
  }
}

/** A child process, not started yet, and the last that it said on its standard error. */
export interface Child {
  readonly transport: Transport
  /** Empty where that goes to the standard error of this process. */
  lastWords(): string
}

/** So much of the standard error is kept for an error message, and so long is a line of the log at most. */
const maxWords = 500
const maxLine = 8192

export function childTransport(
  target: CommandTarget,
  { stderr, maxBytes, log }: Pick<Limits, 'stderr' | 'maxBytes' | 'log'>,
  flood: Flood,
  memory: MemoryLimit,
): Child {
  const { command, args = [], env = {}, cwd } = target
  const server: StdioServerParameters = {
    command,
    args: [...args],
    env: { ...env },
    stderr: stderr === 'log' ? 'pipe' : 'inherit',
    maxBufferSize: maxBytes,
    ...(cwd === undefined ? {} : { cwd }),
  }
  const isWindows = process.platform === 'win32'
  const transport = isWindows ? new WindowsTransport(server, flood) : commandTransport(server, flood, memory)
  let words = ''
  let line = ''
  // The SDK types it as a stream of any kind; it is a PassThrough.
  const stream = transport.stderr as Readable | null
  stream?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-maxWords)
    const lines = (line + text).split(/\r?\n/)
    line = (lines.pop() ?? '').slice(0, maxLine)
    for (const said of lines) if (said !== '') log('debug', 'the server says', { stderr: said.slice(0, maxLine) })
  })
  return { transport, lastWords: () => words.trim() }
}
