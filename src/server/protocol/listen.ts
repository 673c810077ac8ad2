import { setMaxListeners } from 'node:events'
import { type ErrorReason, invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Subscription, View, ViewChange } from '../../core/view.ts'
import {
  errorAnswer,
  errorToWire,
  isObject,
  modernRevision,
  type Notification,
  protocolKeys,
  type Request,
  type RequestId,
  type Response,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { EventOptions } from './event-options.ts'

export interface StreamOptions {
  readonly view: View
  readonly events: EventOptions
  readonly server: { readonly name: string; readonly version: string }
  readonly write: (message: Notification) => Promise<void>
  readonly signal: AbortSignal
  /** Aborts when the service ends: then the stream gets its result. */
  readonly closing: AbortSignal
  readonly log: Log
}

const idKey = protocolKeys.subscriptionId

/**
 * Serves one `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions) until it ends. First the URIs are checked and listened to,
 * then the subscription is acknowledged, and then notifications are sent, also of changes in between. The acknowledgement names the
 * accepted URIs. The answer is the result when the service ends, an error when nothing was acknowledged, and undefined when the client is
 * gone or too slow.
 */
export async function serveListenRequest(request: Request, options: StreamOptions): Promise<Response | undefined> {
  const { view, write, signal, closing, log } = options
  const over = new AbortController()
  const end = () => over.abort()
  const outbox = createOutbox(write, end, request.id)
  // `AbortSignal.any` would keep a reference to each stream in the long-lived signal of the service.
  setMaxListeners(0, closing)
  for (const one of [signal, closing]) one.addEventListener('abort', end)
  if (signal.aborted || closing.aborted) end()
  let subscription: Subscription | undefined
  let acknowledged = false
  try {
    const filter = filterOf(request.params?.notifications)
    subscription = view.subscribe?.((change) => outbox.push(change))
    const honoured = (await subscription?.add(filter.uris, { signal: over.signal })) ?? []
    const hasList = filter.list && ((await subscription?.addList({ signal: over.signal })) ?? false)
    const prompts = filter.prompts && ((await subscription?.addPrompts?.({ signal: over.signal })) ?? false)
    const tools = filter.tools && ((await subscription?.addTools?.({ signal: over.signal })) ?? false)
    if (!over.signal.aborted) {
      const notifications = {
        ...(hasList ? { resourcesListChanged: true } : {}),
        ...(prompts ? { promptsListChanged: true } : {}),
        ...(tools ? { toolsListChanged: true } : {}),
        ...(honoured.length > 0 ? { resourceSubscriptions: honoured } : {}),
      }
      const params = { notifications, _meta: { [idKey]: request.id } }
      await write({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params })
      acknowledged = true
      outbox.open()
      await aborted(over.signal)
    }
    if (!closing.aborted || signal.aborted) return undefined
    if (!acknowledged) return errorAnswer(request.id, closingError)
    const _meta = { [idKey]: request.id, [protocolKeys.serverInfo]: options.server }
    return { jsonrpc: '2.0', id: request.id, result: { resultType: 'complete', _meta } }
  } catch (error) {
    if (over.signal.aborted) return undefined
    return errorAnswer(request.id, errorToWire(error, modernRevision, undefined, log))
  } finally {
    for (const one of [signal, closing]) one.removeEventListener('abort', end)
    subscription?.close()
    outbox.close()
  }
}

export const closingError: WireError = {
  code: wireErrorCodes.internal,
  message: 'The server is shutting down. Try again later.',
  data: { reason: 'ending' satisfies ErrorReason },
}

function filterOf(notifications: unknown) {
  if (!isObject(notifications)) throw invalid('The param notifications is not an object.', 'params')
  const { resourceSubscriptions = [], resourcesListChanged, promptsListChanged, toolsListChanged } = notifications
  if (!Array.isArray(resourceSubscriptions) || !resourceSubscriptions.every((uri) => typeof uri === 'string'))
    throw invalid('The param notifications.resourceSubscriptions is not an array of strings.', 'params')
  for (const name of ['resourcesListChanged', 'toolsListChanged', 'promptsListChanged'])
    if (!['boolean', 'undefined'].includes(typeof notifications[name]))
      throw invalid(`The param notifications.${name} is not a boolean.`, 'params')
  return {
    uris: resourceSubscriptions,
    list: resourcesListChanged === true,
    prompts: promptsListChanged === true,
    tools: toolsListChanged === true,
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/**
 * The notifications that a client has not received yet. Repeated changes of one resource are joined. A client that exceeds the queue is
 * disconnected.
 */
export type Outbox = ReturnType<typeof createOutbox>

/** Maximum number of characters of URIs that wait for a client which does not read earlier notifications. */
const maxWaiting = 1024 * 1024

/**
 * @param write Writes one notification; resolves when there is room for the next. Rejects when the client is gone.
 * @param onLost Called once when the client is gone or too slow.
 * @param subscriptionId Id of the client's `subscriptions/listen` (2026-07-28).
 */
export function createOutbox(
  write: (notification: Notification) => Promise<void>,
  onLost: () => void,
  subscriptionId?: RequestId,
) {
  const lists = new Set<'resources' | 'prompts' | 'tools'>()
  const uris = new Set<string>()
  let waiting = 0
  let isOpen = false
  let writing = false
  let closed = false

  const lose = (): void => {
    if (closed) return
    closed = true
    uris.clear()
    onLost()
  }
  const meta = subscriptionId === undefined ? {} : { _meta: { [protocolKeys.subscriptionId]: subscriptionId } }

  const next = (): Notification | undefined => {
    const params = subscriptionId === undefined ? {} : { params: meta }
    // A list is removed before it is written, because a change from now on needs another notification.
    for (const list of lists) {
      lists.delete(list)
      return { jsonrpc: '2.0', method: `notifications/${list}/list_changed`, ...params }
    }
    for (const uri of uris) {
      uris.delete(uri)
      waiting -= uri.length
      return { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri, ...meta } }
    }
    return undefined
  }

  const drain = async (): Promise<void> => {
    if (writing || !isOpen) return
    writing = true
    try {
      for (let message = next(); message !== undefined && !closed; message = next()) await write(message)
    } catch {
      lose()
    } finally {
      writing = false
    }
  }

  return {
    push: (change: ViewChange) => {
      if (closed) return
      if (change.listed) lists.add('resources')
      if (change.prompts === true) lists.add('prompts')
      if (change.tools === true) lists.add('tools')
      for (const uri of change.uris) {
        if (!uris.has(uri)) waiting += uri.length
        uris.add(uri)
      }
      // New notifications may exceed the limit as long as no earlier one is being written.
      if (writing && waiting > maxWaiting) lose()
      else void drain()
    },
    drop: (uri: string) => {
      if (uris.delete(uri)) waiting -= uri.length
    },
    /** Begins to write; earlier notifications wait until then. */
    open: () => {
      isOpen = true
      void drain()
    },
    close: () => {
      closed = true
      uris.clear()
    },
  }
}
