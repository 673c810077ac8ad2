import { childLimits } from '../core/child-limits.ts'
import type { Log } from '../core/log.ts'
import { requireKeys } from '../core/required.ts'
import { createRemoteChanges } from './changes.ts'
import type { Limits } from './connection.ts'
import { createLink } from './link.ts'
import { openConnection } from './open.ts'
import type { RemoteView, Target } from './target.ts'
import { createRemoteView } from './view.ts'

export { isAnswer, isLost, isUnknownMethod } from './failures.ts'
export type { About, CommandTarget, RemoteView, Target, UrlTarget } from './target.ts'

export interface ConnectOptions {
  readonly log?: Log
  /** Ends the opening of the connection. To end the connection, close the view. */
  readonly signal?: AbortSignal
  /** How long the server may take for each answer, in milliseconds: 30,000 unless told. */
  readonly timeoutMs?: number
  /** The longest answer that is taken, in bytes of JSON: 64 MiB over HTTP and 10 MiB from a command, unless told. */
  readonly maxBytes?: number
  /**
   * How much memory a command and all that it starts may hold together, in bytes: 4 GiB unless told. Beyond it they are killed, and
   * the connection has ended. It holds on Linux only.
   */
  readonly memoryBytes?: number
  /** Where the standard error of a command goes: to the log at level `debug`, or to that of this process. */
  readonly stderr?: 'log' | 'inherit'
}

const mebibyte = 1024 * 1024
/** A command is started anew so many times in a row: one that always ends is not worth more. */
const maxStarts = 5

/**
 * Connects to an MCP server of any revision, as a view of what it has. Close the view to end the connection, and with it
 * the command's process: its input is closed; when it does not exit within 2 s it gets a SIGTERM, and 2 s later a SIGKILL. The
 * processes that it has started and leaves get the same signals, but on Windows.
 *
 * A server without resources has an empty listing. One that shows no tree gets one made of its listing, which is then read
 * as a whole.
 *
 * Where the server tells of changes, the view does. What it tells by (a stream, a session, a process) is opened anew when it
 * is lost, with longer and longer pauses, for as long as something is listened to; everything that is listened to is then
 * told as changed.
 *
 * @throws ResourceError `unavailable` when no connection comes about, `invalid` for a URL that is not http or https.
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<RemoteView> {
  requireTarget(target)
  const log = options.log ?? (() => {})
  const isUrl = 'url' in target
  const limits = (signal: AbortSignal): Limits => ({
    timeoutMs: options.timeoutMs ?? 30_000,
    // What the SDK buffers from a process takes time in proportion to the square of its length.
    maxBytes: options.maxBytes ?? (isUrl ? 64 : 10) * mebibyte,
    memoryBytes: options.memoryBytes ?? childLimits.remoteCommand().memoryBytes,
    stderr: options.stderr ?? 'log',
    signal,
    log,
  })
  options.signal?.throwIfAborted()
  const open = (signal: AbortSignal) => openConnection(target, limits(signal))
  const link = createLink(await open(options.signal ?? new AbortController().signal), open, log)
  return createRemoteView(link, createRemoteChanges(link, isUrl ? Number.POSITIVE_INFINITY : maxStarts))
}

function requireTarget(target: unknown): void {
  const isUrl = typeof target === 'object' && target !== null && 'url' in target
  if (isUrl) requireKeys('connect({ url })', target, { url: 'a text' })
  else requireKeys('connect({ command }) or connect({ url })', target, { command: 'a text' })
}
