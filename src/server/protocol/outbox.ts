import type { ViewChange } from '../../core/view.ts'
import { protocolKeys } from './keys.ts'
import type { Notification, RequestId } from './messages.ts'

/**
 * The notifications that a client has not received yet. Repeated changes of one resource are joined, however slow the client is.
 * The queue is bounded, and a client that exceeds it is disconnected.
 */
export interface Outbox {
  push(change: ViewChange): void
  /** Removes a waiting notification: the client has unsubscribed from the resource. */
  drop(uri: string): void
  /** Begins to write; earlier notifications wait until then. */
  open(): void
  close(): void
}

interface OutboxOptions {
  /** Writes one notification; resolves when there is room for the next. Rejects when the client is gone. */
  readonly write: (notification: Notification) => Promise<void>
  /** Id of the client's `subscriptions/listen` (2026-07-28). */
  readonly subscriptionId?: RequestId
  /** Called once when the client is gone or too slow; nothing more is written. */
  readonly onLost: () => void
}

/** Maximum number of characters of URIs that wait for a client which does not read earlier notifications. */
const maxWaiting = 1024 * 1024

export function createOutbox({ write, subscriptionId, onLost }: OutboxOptions): Outbox {
  const uris = new Set<string>()
  let waiting = 0
  let listed = false
  let prompts = false
  let tools = false
  let opened = false
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
    if (listed) {
      listed = false
      return { jsonrpc: '2.0', method: 'notifications/resources/list_changed', ...params }
    }
    if (prompts) {
      prompts = false
      return { jsonrpc: '2.0', method: 'notifications/prompts/list_changed', ...params }
    }
    if (tools) {
      tools = false
      return { jsonrpc: '2.0', method: 'notifications/tools/list_changed', ...params }
    }
    for (const uri of uris) {
      // Removed before it is written: a change from now on needs another notification.
      uris.delete(uri)
      waiting -= uri.length
      return { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri, ...meta } }
    }
    return undefined
  }

  const drain = async (): Promise<void> => {
    if (writing || !opened) return
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
    push: (change) => {
      if (closed) return
      listed ||= change.listed
      prompts ||= change.prompts === true
      tools ||= change.tools === true
      for (const uri of change.uris) {
        if (!uris.has(uri)) waiting += uri.length
        uris.add(uri)
      }
      // New notifications may exceed the limit as long as no earlier one is being written.
      if (writing && waiting > maxWaiting) lose()
      else void drain()
    },
    drop: (uri) => {
      if (uris.delete(uri)) waiting -= uri.length
    },
    open: () => {
      opened = true
      void drain()
    },
    close: () => {
      closed = true
      uris.clear()
    },
  }
}
