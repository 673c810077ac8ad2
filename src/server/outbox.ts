import type { ViewChange } from '../core/view.ts'
import type { Notification, RequestId } from './messages.ts'
import { protocolKeys } from './protocol/keys.ts'

/**
 * What a client has not been told yet. Repeated changes of one resource are one, however slow the client is; what waits is
 * bounded, and a client that would need more is given up.
 */
export interface Outbox {
  push(change: ViewChange): void
  /** Forgets what waits of one resource: it is not asked for any more. */
  drop(uri: string): void
  /** Begins to write; what was pushed before waits until then. */
  open(): void
  close(): void
}

export interface OutboxOptions {
  /** Writes one notification; resolves when there is room for the next. Rejects when the client is gone. */
  readonly write: (notification: Notification) => Promise<void>
  /** The id of the `subscriptions/listen` that asked (2026-07-28). */
  readonly subscriptionId?: RequestId
  /** Called once when the client is gone or too slow; nothing is written any more. */
  readonly onLost: () => void
}

/** So many characters of URIs may wait for one client that does not take what it was sent before. */
const maxWaiting = 1024 * 1024

export function createOutbox({ write, subscriptionId, onLost }: OutboxOptions): Outbox {
  const uris = new Set<string>()
  let waiting = 0
  let listed = false
  let prompts = false
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
    for (const uri of uris) {
      // Taken out before it is written: a change from now on is another one.
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
      for (const uri of change.uris) {
        if (!uris.has(uri)) waiting += uri.length
        uris.add(uri)
      }
      // What was just pushed waits for nobody yet, however much it is.
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
