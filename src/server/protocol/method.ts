import type { ToolProgress } from '../../core/provided-tool.ts'
import type { View } from '../../core/view.ts'
import type { Pass } from '../admission/gate.ts'
import type { LinkFor } from '../http/content/link.ts'
import type { Sending } from '../http/content/sending.ts'
import type { ClientName } from './clients.ts'
import type { LogLevel } from './keys.ts'
import type { Notification } from './messages.ts'
import type { Params } from './params.ts'
import type { Revision } from './revisions.ts'

/** The result of a method: the member `result` of a JSON-RPC response. */
export type Result = Record<string, unknown>

/** One request, as a method sees it. */
export interface Call {
  /** The params as they were sent, with their `_meta`. An empty object when there are none. */
  readonly params: Params
  /** The negotiated revision; before `initialize`, the assumed one (2025-06-18, basic/transports). */
  readonly revision: Revision
  /** Aborts when the client cancels, when the request times out, and when the channel closes. */
  readonly signal: AbortSignal
  readonly pass: Pass
  /** Whether the transport writes JSON that is written already (`JsonText`). */
  readonly raw: boolean
  /** How the transport sends a content that is read meanwhile. Undefined when it sends whole answers only. */
  readonly sending?: Sending | undefined
  /** Creates a link to a content that is too large for an answer. Undefined when the transport serves none. */
  readonly linkFor?: LinkFor | undefined
  /** The name that the client declares. */
  readonly client: ClientName | undefined
  /** The view for this client. */
  readonly view: View
  /** Sends a notification on the stream of this request. It does nothing after the request has ended. */
  readonly notify: (notification: Notification) => void
  /** Sends the progress of the method's own work, if the request has a progress token. Undefined when nobody listens. */
  readonly report?: ((progress: ToolProgress) => void) | undefined
  /** Sends a log message on that stream, if the request wants messages of its level (`_meta`, 2026-07-28). */
  readonly log: (level: LogLevel, data: unknown) => void
}

/** Handles one request. Throws a `ResourceError` or a `ProtocolError`; any other error becomes an internal error. */
export type Method = (call: Call) => Promise<Result>

/** A method of an embedding program, besides those of resources. */
export type ExtraMethod = (params: Params, call: Call) => Promise<Result>
