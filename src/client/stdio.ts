import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport, type StdioServerParameters } from '@modelcontextprotocol/client/stdio'
import { defined } from '../core/kit/defined.ts'
import type { MemoryLimit } from '../core/kit/process-group.ts'
import { commandTransport } from './command-transport.ts'
import type { Limits } from './connection.ts'
import { type Flood, paceLines } from './flood.ts'
import type { CommandTarget } from './target.ts'

/**
 * The SDK's transport, for Windows: it finds programs as the shell does there (`npx` is `npx.cmd`).
 *
 * The SDK starts a second process to find out which revision a server speaks, but only for exactly its own class; for any other
 * class it asks the one process that runs. Servers can be slow to start, and can fail when started twice.
 */
class WindowsTransport extends StdioClientTransport {
  readonly flood: Flood

  constructor(server: StdioServerParameters, flood: Flood) {
    super(server)
    this.flood = flood
  }

  override async start(): Promise<void> {
    await super.start()
    // The SDK handles everything that has arrived in one turn of the event loop, and has no option to handle less.
    const { stdout } = (Reflect.get(this, '_process') ?? {}) as Partial<ChildProcess>
    if (stdout) paceLines(stdout, this.flood)
  }
}

/** A child process that is not started yet, and the end of its standard error. */
export interface Child {
  readonly transport: Transport
  /** Returns the end of the standard error; empty when that goes to the standard error of this process. */
  lastWords(): string
}

/** Maximum number of characters of the standard error in an error message, and of one line in the log. */
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
    ...defined({ cwd }),
  }
  const isWindows = process.platform === 'win32'
  const transport = isWindows ? new WindowsTransport(server, flood) : commandTransport(server, flood, memory)
  let words = ''
  let line = ''
  // The SDK declares it as any kind of stream; it is a PassThrough.
  const stream = transport.stderr as Readable | null
  stream?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-maxWords)
    const lines = (line + text).split(/\r?\n/)
    line = (lines.pop() ?? '').slice(0, maxLine)
    for (const said of lines) if (said !== '') log('debug', 'the server says', { stderr: said.slice(0, maxLine) })
  })
  return { transport, lastWords: () => words.trim() }
}
