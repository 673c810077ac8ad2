import { requireKeys } from '../core/kit/object.ts'
import { childLimits } from '../core/kit/workers.ts'
import type { Log } from '../core/log.ts'
import { createRemoteChanges } from './changes.ts'
import { type ConnectionSettings, createServerLink } from './connection.ts'
import { openConnection } from './open.ts'
import type { RemoteView, ServerTarget } from './target.ts'
import { createRemoteView } from './view.ts'

export {
  isConnectionLostError,
  isErrorAnswer,
  isHeaderMismatchError,
  isUnknownMethodError,
  refusalMessage,
} from './failures.ts'
export {
  type CommandTarget,
  outputFault,
  type RemoteServerInfo,
  type RemoteView,
  type ServerTarget,
  type UrlTarget,
} from './target.ts'

export interface ConnectOptions {
  readonly log?: Log
  /** Aborts the opening of the connection. To end an open connection, close the view. */
  readonly signal?: AbortSignal
  /** Time-out of each answer of the server, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  /** Maximum length of an answer, in bytes of JSON. Default 64 MiB over HTTP and 10 MiB from a command. */
  readonly maxBytes?: number
  /**
   * Maximum memory of a command together with the processes that it starts, in bytes. Default 4 GiB. When they exceed it they are killed,
   * and the connection ends. Not enforced on Windows.
   */
  readonly memoryBytes?: number
  /** Destination of a command's standard error: the log at level `debug`, or the standard error of this process. Default `log`. */
  readonly stderr?: 'log' | 'inherit'
}

const mebibyte = 1024 * 1024
/** Maximum number of restarts of a command in a row. */
const maxStarts = 5

/**
 * Connects to an MCP server of any revision and returns a view of its resources. Close the view to end the connection, and with it the
 * command's process: its input is closed; when it does not exit within 2 s it gets a SIGTERM, and 2 s later a SIGKILL. For a server that
 * cannot read directories, the view derives a tree from the whole listing. A lost stream, session or process is opened again with
 * exponential backoff while anything is listened to (a process at most 5 times in a row, and nothing after HTTP 401 or 403); listeners are
 * then notified that everything they listen to has changed.
 *
 * @throws ResourceError as {@link openConnection}, and `invalid` for a target without `url` and `command`.
 */
export async function connect(target: ServerTarget, options: ConnectOptions = {}): Promise<RemoteView> {
  requireTarget(target)
  const log = options.log ?? (() => {})
  const isUrl = 'url' in target
  const limits = (signal: AbortSignal): ConnectionSettings => ({
    timeoutMs: options.timeoutMs ?? 30_000,
    // A line of a command is parsed in one turn of the event loop, an answer over HTTP in several.
    maxBytes: options.maxBytes ?? (isUrl ? 64 : 10) * mebibyte,
    memoryBytes: options.memoryBytes ?? childLimits.remoteCommand().memoryBytes,
    stderr: options.stderr ?? 'log',
    signal,
    log,
  })
  options.signal?.throwIfAborted()
  const open = (signal: AbortSignal) => openConnection(target, limits(signal))
  const link = createServerLink(await open(options.signal ?? new AbortController().signal), open, log)
  return createRemoteView(link, createRemoteChanges(link, isUrl ? Number.POSITIVE_INFINITY : maxStarts))
}

function requireTarget(target: unknown): void {
  const isUrl = typeof target === 'object' && target !== null && 'url' in target
  if (isUrl) requireKeys('connect({ url })', target, { url: 'a string' })
  else requireKeys('connect({ command }) or connect({ url })', target, { command: 'a string' })
}
