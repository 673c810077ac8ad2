import type { Log } from '../../core/log.ts'
import type { View } from '../../core/view.ts'
import { type ClientName, clientIn } from '../clients.ts'
import type { Egress } from '../egress.ts'
import { codes, ProtocolError, type WireError, wireError } from '../errors.ts'
import type { Pass } from '../gate.ts'
import { failure, isObject, type Notification, type Request, type Response } from '../messages.ts'
import { type ServedOpening, whenWorkable } from '../opening.ts'
import { assumed, modern, type Revision } from '../revisions.ts'
import {
  discoverResult,
  type Handshake,
  handshakeFault,
  type Introduction,
  initializeResult,
  shakeHands,
} from './handshake.ts'
import { wantsLog } from './logging.ts'
import type { Call, Method } from './method.ts'
import { withProgress } from './progress.ts'
import { completeResult } from './results.ts'

/** The two ways in which a client begins: every request stands alone (2026-07-28), or `initialize` comes first. */
export type Era = 'modern' | 'legacy'

export interface RequestOptions {
  /** Its abort cancels the request, which then ends without an answer. */
  readonly signal?: AbortSignal
  /** Takes the notifications of this request (progress, logs), all of them before its answer. */
  readonly onNotification?: (notification: Notification) => void
  /** The request's admission, as the gate gave it. By default nothing has to wait. */
  readonly pass?: Pass
}

/**
 * The protocol for one principal, or for one client that stays: a request goes in, its answer comes out, under the same id.
 * It keeps no state between requests but what `initialize` agreed on, so any number of requests may run at once, and of
 * several clients where their requests stand alone (2026-07-28).
 */
export interface Channel {
  /** The answer; `undefined` when the request was cancelled. It does not reject. */
  request(message: Request, options?: RequestOptions): Promise<Response | undefined>
  /** Takes a notification of the client. `notifications/cancelled` is not among them: it aborts the request's signal. */
  notify(message: Notification): void
  readonly view: View
  /** Removes known secrets from an answer that was made elsewhere, as it is done with those of the channel. */
  readonly egress: Egress
  /** The revision that `initialize` agreed on; 2026-07-28 on a modern channel. */
  readonly revision: Revision | undefined
  /** Tells the client that everything it listens to may have changed: it may have missed something. */
  retell(): void
  /** Cancels the requests in flight. */
  close(): Promise<void>
}

/** What a channel serves. */
export interface Served extends Introduction {
  /** The methods by name. Those of the protocol itself (`initialize`, `ping`, `server/discover`) are not among them. */
  readonly methods: ReadonlyMap<string, Method>
  /** Called once, when the client has sent `notifications/initialized`. Before that it is to be told nothing. */
  readonly onInitialized?: () => void
}

export interface ChannelOptions {
  readonly era: Era
  readonly view: View
  /** The view that a client is shown, by the name that it gives itself. By default `view`. */
  readonly viewOf?: ((client: ClientName | undefined) => View) | undefined
  /** What a client is told behind the instructions, by the name that it gives itself. */
  readonly noteOf?: ((client: ClientName | undefined) => string | undefined) | undefined
  readonly log: Log
  readonly egress: Egress
  /** The longest that a request may take, in milliseconds, with or without progress. */
  readonly timeoutMs: number
  /** Requests that need the mounts wait until they are open, within their time. Left out: they are open. */
  readonly opening?: ServedOpening | undefined
  readonly onClose?: () => void
  readonly retell?: () => void
}

/** The methods that can take long. With a progress token, their requests send progress notifications. */
const lengthy = new Set(['resources/list', 'resources/read', 'resources/directory/read', 'prompts/get', 'tools/call'])

/** The methods that 2026-07-28 has removed: there they do not exist, even where they are served to older clients. */
const legacyOnly = new Set(['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel'])

/** The longest error message of an embedding program's method that is passed on, in characters. */
const maxMessageLength = 500

const freePass: Pass = { room: async () => {}, turn: async () => {}, breath: async () => {}, until: () => {} }

const timedOut: WireError = {
  code: codes.internal,
  message: 'The request took too long. Try again later, or ask for less.',
  data: { reason: 'timeout' },
}

export function openChannel(served: Served, options: ChannelOptions): Channel {
  const { era, view, viewOf = () => view, log, egress, timeoutMs, opening, onClose, retell } = options
  let handshake: Handshake | undefined
  let initialized = false
  /** Cancels each request in flight. */
  const inFlight = new Set<() => void>()

  const revision = () => (era === 'modern' ? modern : handshake?.revision)

  const ownMethods: ReadonlyMap<string, Method> = new Map<string, Method>(
    era === 'modern'
      ? [['server/discover', async ({ client }) => discoverResult(introduceTo(client))]]
      : [
          ['initialize', async ({ params }) => initialize(params)],
          ['ping', async () => ({})],
        ],
  )

  const introduceTo = (client: ClientName | undefined): Introduction => {
    const said = [served.instructions, options.noteOf?.(client)].filter((text) => text !== undefined && text !== '')
    return { ...served, instructions: said.length === 0 ? served.instructions : said.join('\n\n') }
  }

  const initialize = (params: Call['params']) => {
    const fault = handshakeFault(params)
    if (fault !== undefined) throw new ProtocolError(fault.code, fault.message)
    handshake = shakeHands(params)
    return initializeResult(handshake, introduceTo(handshake.client))
  }

  const methodOf = (name: string): Method | undefined => {
    if (era === 'modern' && legacyOnly.has(name)) return undefined
    const method = served.methods.get(name) ?? ownMethods.get(name)
    return method !== undefined && lengthy.has(name) ? withProgress(method) : method
  }

  /** Runs the method of a request. This is the only place where an error becomes an answer. */
  const run = async (message: Request, signal: AbortSignal, notify: Call['notify'], pass: Pass): Promise<Response> => {
    const { id, method: name, params = {} } = message
    const meta = isObject(params._meta) ? params._meta : {}
    const method = methodOf(name)
    if (method === undefined) return failure(id, { code: codes.methodNotFound, message: 'Method not found' })
    if (!isProgressToken(meta.progressToken))
      return failure(id, { code: codes.invalidParams, message: 'The _meta of the params is malformed.' })
    const spoken = revision() ?? assumed
    const client = era === 'modern' ? clientIn(meta) : handshake?.client
    const sendLog: Call['log'] = (level, data) => {
      if (era === 'modern' && wantsLog(meta, level))
        notify({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data } })
    }
    try {
      const waiting = whenWorkable(opening, name)
      if (waiting !== undefined) {
        await waiting
        // The request has ended meanwhile, so nobody gets this answer.
        if (signal.aborted) return failure(id, timedOut)
      }
      const call: Call = { params, revision: spoken, signal, pass, client, view: viewOf(client), notify, log: sendLog }
      return { jsonrpc: '2.0', id, result: completeResult(name, await method(call), spoken, served.server) }
    } catch (error) {
      if (signal.aborted) {
        // It was cancelled, or took too long, which is logged. Nobody gets this answer.
        log('debug', 'a request ended before its work did', { error })
        return failure(id, timedOut)
      }
      if (error instanceof ProtocolError) return failure(id, toWireError(error))
      const uri = typeof params.uri === 'string' ? params.uri : undefined
      return failure(id, wireError(error, spoken, uri, log))
    }
  }

  const request: Channel['request'] = (message, { signal, onNotification, pass = freePass } = {}) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve(undefined)
      const controller = new AbortController()
      let ended = false
      /** The first answer counts: of the method, the timeout or the cancellation. */
      const end = (response: Response | undefined) => {
        if (ended) return
        ended = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', cancel)
        inFlight.delete(cancel)
        resolve(response === undefined ? undefined : egress(response, message))
      }
      const cancel = () => {
        end(undefined)
        controller.abort()
      }
      const timer = setTimeout(() => {
        log('warn', 'a request took too long', { method: message.method, timeout: timeoutMs })
        end(failure(message.id, timedOut))
        controller.abort()
      }, timeoutMs)
      signal?.addEventListener('abort', cancel, { once: true })
      inFlight.add(cancel)
      const notify = (notification: Notification) => {
        if (!ended) onNotification?.(notification)
      }
      void run(message, controller.signal, notify, pass).then(end)
    })

  return {
    request,
    notify: ({ method }) => {
      if (method !== 'notifications/initialized' || era === 'modern' || initialized) return
      initialized = true
      served.onInitialized?.()
    },
    get revision() {
      return revision()
    },
    view,
    egress,
    retell: () => retell?.(),
    close: async () => {
      onClose?.()
      for (const cancel of inFlight) cancel()
    },
  }
}

/** Whether the progress token of a request is one (basic/utilities/progress), or there is none. */
function isProgressToken(token: unknown): boolean {
  return token === undefined || typeof token === 'string' || (typeof token === 'number' && Number.isInteger(token))
}

function toWireError({ code, message, data }: ProtocolError): WireError {
  const short = message.length > maxMessageLength ? `${message.slice(0, maxMessageLength)}…` : message
  return { code, message: short, ...(isObject(data) ? { data } : {}) }
}
