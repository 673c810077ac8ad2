import type { Readable } from 'node:stream'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Log } from '../core/log.ts'

/** An MCP server that is started as a child process and spoken to over its standard input and output. */
export interface CommandTarget {
  readonly command: string
  readonly args?: readonly string[]
  /** Added to a few harmless variables (PATH, HOME, …); nothing else of this process's environment is handed on. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/**
 * The SDK starts a second process to find out which revision a server speaks, but only for its own class exactly; for any
 * other it asks the one process that there is. Servers can be slow to start, and can mind being started twice.
 */
class ChildTransport extends StdioClientTransport {}

/** A child process, not started yet, and the last that it said on its standard error. */
export interface Child {
  readonly transport: StdioClientTransport
  /** Empty where that goes to the standard error of this process. */
  lastWords(): string
}

/** So much of the standard error is kept for an error message, and so long is a line of the log at most. */
const maxWords = 500
const maxLine = 8192

export function childTransport(target: CommandTarget, stderr: 'log' | 'inherit', maxBytes: number, log: Log): Child {
  const { command, args = [], env = {}, cwd } = target
  const transport = new ChildTransport({
    command,
    args: [...args],
    env: { ...env },
    stderr: stderr === 'log' ? 'pipe' : 'inherit',
    maxBufferSize: maxBytes,
    ...(cwd === undefined ? {} : { cwd }),
  })
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
