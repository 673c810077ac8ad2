import type { Principal } from '../../core/provider.ts'
import type { JsonObject, Tool, ToolApp, ToolProgress } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import type { TaskHandle } from '../admission/gate.ts'
import type { Caller } from '../auth/caller.ts'
import type { LinkFor, LogLevel, Revision } from '../messages/messages.ts'
import { isObject, type Notification, type Params, type WireError } from '../messages/messages.ts'
import { connectorTools, resourceTools } from '../tools/index.ts'
import type { ClientName, MethodResult } from './envelope.ts'
import type { AnswerSender } from './large.ts'

/** One request, as a method sees it. */
export interface MethodCall {
  /** The params as they were sent, with their `_meta`. An empty object when there are none. */
  readonly params: Params
  /** The negotiated revision; before `initialize`, the assumed one (2025-06-18, basic/transports). */
  readonly revision: Revision
  /** Aborts when the client cancels, when the request times out, and when the channel closes. */
  readonly signal: AbortSignal
  readonly pass: TaskHandle
  /** Returns how the transport sends a content that is read meanwhile. Undefined when it sends whole answers only. */
  readonly sending?: (() => AnswerSender) | undefined
  /** Creates a link to a content that is too large for an answer. Undefined when the transport serves none. */
  readonly linkFor?: LinkFor | undefined
  /** Compares the headers of the request with the arguments of a tool, which they repeat. Undefined when the transport has no headers. */
  readonly headersFault?: HeadersFault | undefined
  readonly caller?: Caller | undefined
  readonly client: ClientName | undefined
  readonly view: View
  /** Sends a notification on the stream of this request. It does nothing after the request has ended. */
  readonly notify: (notification: Notification) => void
  /** Sends the progress of the method's own work, if the request has a progress token. Undefined when nobody listens. */
  readonly report?: ((progress: ToolProgress) => void) | undefined
  /** Sends a log message on the stream of this request, if the request asks for messages of that level (in `_meta`, 2026-07-28). */
  readonly log: (level: LogLevel, data: unknown) => void
}

export type HeadersFault = (inputSchema: JsonObject, given: JsonObject) => WireError | undefined

/** Handles one request. Throws a `ResourceError` or a `ProtocolError`; any other error becomes an internal error. */
export type Method = (call: MethodCall) => Promise<MethodResult>

export type ExtraMethod = (params: Params, call: MethodCall) => Promise<MethodResult>

/** Time from the start to the first notification, and from one notification to the next, in milliseconds. */
const progressIntervalMs = 1000
/** Maximum length of a progress token, in characters. A longer one gets no progress. */
const maxTokenLength = 256
/** Maximum length of the message in a progress notification, in characters. Longer ones are cut. */
const maxMessageLength = 500

/**
 * Wraps a method so that it sends `notifications/progress` once a second while it runs, if the request has a progress token
 * (basic/utilities/progress). `progress` counts the seconds, so it always grows. Progress that the method itself reports is sent instead.
 */
export function withProgress(method: Method): Method {
  return async (call) => {
    const meta = isObject(call.params._meta) ? call.params._meta : {}
    const token = meta.progressToken
    if (!isToken(token)) return method(call)
    let seconds = 0
    let last = 0
    const send = (progress: number, facts: { readonly total?: number; readonly message?: string } = {}) => {
      last = progress
      const params = { progressToken: token, progress, ...facts }
      call.notify({ jsonrpc: '2.0', method: 'notifications/progress', params })
    }
    const timer = setInterval(() => send(++seconds), progressIntervalMs)
    const report: MethodCall['report'] = ({ progress, total, message }) => {
      clearInterval(timer)
      if (!Number.isFinite(progress) || seconds + progress <= last) return
      send(seconds + progress, {
        ...(total === undefined ? {} : { total: seconds + total }),
        ...(message === undefined ? {} : { message: message.slice(0, maxMessageLength).toWellFormed() }),
      })
    }
    try {
      return await method({ ...call, report })
    } finally {
      clearInterval(timer)
    }
  }
}

function isToken(token: unknown): token is string | number {
  return (typeof token === 'string' && token.length <= maxTokenLength) || typeof token === 'number'
}

export interface ClientProfile {
  readonly tools: boolean
  /** The tools `search` and `fetch`, as ChatGPT connectors require them. */
  readonly chatgpt?: true
  /** Returns the view of the client, which may list fewer resources. Default: the whole view of the principal. */
  readonly view?: (principal: Principal) => View
  /** Text after the instructions of the server. */
  readonly note?: string
}

interface Giving {
  readonly profileOf: (client: ClientName | undefined) => ClientProfile
  readonly principal: Principal
  readonly whole: View
  readonly wrap: (view: View) => View
  readonly readingTools?: (view: View) => readonly Tool[]
  readonly explorerApp?: ToolApp
}

interface Profiled {
  readonly view: View
  readonly tools: readonly Tool[]
}

/** The views, tools and notes for the clients of one principal, by profile. */
export function createClientOffers({
  profileOf,
  principal,
  whole,
  wrap,
  readingTools = () => [],
  explorerApp,
}: Giving) {
  // One entry per profile.
  const profiles = new Map<ClientProfile, Profiled>()
  const of = (client: ClientName | undefined): Profiled => {
    const profile = profileOf(client)
    const cachedProfile = profiles.get(profile)
    if (cachedProfile !== undefined) return cachedProfile
    const view = profile.view === undefined ? whole : wrap(profile.view(principal))
    const offer = {
      view,
      tools: [
        ...(profile.chatgpt === true ? connectorTools(view) : []),
        ...(profile.tools ? [...resourceTools(view, explorerApp), ...readingTools(view)] : []),
      ],
    }
    profiles.set(profile, offer)
    return offer
  }
  return {
    view: (client: ClientName | undefined): View => of(client).view,
    tools: (client: ClientName | undefined): readonly Tool[] => of(client).tools,
    /** Returns the text after the instructions of the server. */
    note: (client: ClientName | undefined): string | undefined => profileOf(client).note,
  }
}
