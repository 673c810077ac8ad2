import type { Log } from '../core/log.ts'
import type { View } from '../core/view.ts'
import { type Limits, openCommand, openUrl } from './connection.ts'
import type { UrlTarget } from './http.ts'
import type { CommandTarget } from './stdio.ts'
import { createRemoteView } from './view.ts'

/** Where a server is: behind a URL, or a command that starts it. */
export type Target = UrlTarget | CommandTarget

export type { CommandTarget, UrlTarget }

export interface ConnectOptions {
  readonly log?: Log
  /** Ends the opening of the connection. To end the connection, close the view. */
  readonly signal?: AbortSignal
  /** How long the server may take for each answer, in milliseconds: 30,000 unless told. */
  readonly timeoutMs?: number
  /** The longest answer that is taken, in bytes of JSON: 64 MiB over HTTP and 10 MiB from a command, unless told. */
  readonly maxBytes?: number
  /** Where the standard error of a command goes: to the log at level `debug`, or to that of this process. */
  readonly stderr?: 'log' | 'inherit'
}

const mebibyte = 1024 * 1024

/**
 * Connects to an MCP server of any revision, as a view of what it has. Close the view to end the connection, and with it
 * the command's process: its input is closed; when it does not exit within 2 s it gets a SIGTERM, and 2 s later a SIGKILL.
 *
 * A server without resources has an empty listing. One that shows no tree gets one made of its listing, which is then read
 * as a whole.
 *
 * @throws ResourceError `unavailable` when no connection comes about, `invalid` for a URL that is not http or https.
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<View> {
  const limits = (maxBytes: number): Limits => ({
    timeoutMs: options.timeoutMs ?? 30_000,
    maxBytes: options.maxBytes ?? maxBytes,
    stderr: options.stderr ?? 'log',
    signal: options.signal ?? new AbortController().signal,
    log: options.log ?? (() => {}),
  })
  limits(0).signal.throwIfAborted()
  const connection =
    'url' in target
      ? await openUrl(target, limits(64 * mebibyte))
      : // What the SDK buffers from a process takes time in proportion to the square of its length.
        await openCommand(target, limits(10 * mebibyte))
  return createRemoteView(connection)
}
