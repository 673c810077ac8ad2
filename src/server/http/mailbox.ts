import type { Notification } from '../protocol/messages.ts'
import type { EventStream } from './reply.ts'

/**
 * The notifications for a client with a session: they go out on the open stream of the client, with ids; the last ones are kept,
 * so that a client that was cut off can continue after the last one that it received.
 */
export interface Mailbox {
  /** Sends a notification. Resolves when there is room for the next: not before there is a stream. */
  deliver(notification: Notification): Promise<void>
  /**
   * Sets the client's new stream. Returns false when notifications after `lastId` are no longer kept, or never were, so the
   * client has missed some.
   */
  attach(stream: EventStream, lastId: string | undefined): boolean
  detach(stream: EventStream): void
  close(): void
}

/** Maximum number and total length (in characters) of the notifications that are kept. */
const maxEvents = 1000
const maxCharacters = 512 * 1024

/** @param prefix Prefix of the ids, unique per session: ids of other sessions are unknown here. */
export function createMailbox(prefix: string): Mailbox {
  let stream: EventStream | undefined
  let attached: (() => void)[] = []
  let kept: { readonly number: number; readonly json: string }[] = []
  let characters = 0
  let count = 0
  let closed = false

  const keep = (number: number, json: string): void => {
    kept.push({ number, json })
    characters += json.length
    while (kept.length > maxEvents || characters > maxCharacters) characters -= kept.shift()?.json.length ?? 0
  }

  return {
    deliver: async (notification) => {
      while (stream === undefined && !closed) await new Promise<void>((resolve) => attached.push(resolve))
      if (stream === undefined) throw new Error('the session is closed')
      const json = JSON.stringify(notification)
      const number = ++count
      keep(number, json)
      const to = stream
      to.send(json, 'message', `${prefix}-${number}`)
      // A notification that a broken stream did not take is kept: the client gets it from the next stream.
      await to.ready().catch(() => {
        if (stream === to) stream = undefined
      })
    },
    attach: (next, lastId) => {
      stream = next
      // A client that does not name its last event may have missed any.
      let whole = count === 0
      if (lastId !== undefined) {
        const last = lastId.startsWith(`${prefix}-`) ? Number(lastId.slice(prefix.length + 1)) : Number.NaN
        const oldest = kept[0]?.number ?? count + 1
        whole = last >= oldest - 1 && last <= count
        if (whole)
          for (const { number, json } of kept) if (number > last) next.send(json, 'message', `${prefix}-${number}`)
      }
      const waiting = attached
      attached = []
      for (const resolve of waiting) resolve()
      return whole
    },
    detach: (ending) => {
      if (stream === ending) stream = undefined
    },
    close: () => {
      closed = true
      stream = undefined
      kept = []
      for (const resolve of attached) resolve()
    },
  }
}
