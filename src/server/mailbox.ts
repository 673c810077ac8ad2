import type { Notification } from './messages.ts'
import type { EventStream } from './reply.ts'

/**
 * The way from the server to a client with a session: notifications go out on the stream that the client holds open, with
 * ids; the last of them are kept, so that a client that was cut off goes on behind the last that it saw.
 */
export interface Mailbox {
  /** Resolves when there is room for the next: not before there is a stream. */
  deliver(notification: Notification): Promise<void>
  /**
   * Gives the client's new stream. `false`: something behind `lastId` is not kept any more, or never was, so the client has
   * missed something.
   */
  attach(stream: EventStream, lastId: string | undefined): boolean
  detach(stream: EventStream): void
  close(): void
}

/** What is kept for a client that was cut off. */
const maxEvents = 1000
const maxCharacters = 512 * 1024

/** @param prefix Makes the ids those of one session: another's are unknown here. */
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
      // What a stream that broke did not take is kept: the client has it from the next one.
      await to.ready().catch(() => {
        if (stream === to) stream = undefined
      })
    },
    attach: (next, lastId) => {
      stream = next
      // Whoever does not say what it saw last may have missed anything.
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
