import { randomUUID } from 'node:crypto'
import type { Principal } from '../../core/provider.ts'
import type { SessionOwner } from '../auth/caller.ts'
import type { EventStream } from '../exchange.ts'
import type { Notification } from '../messages/messages.ts'
import type { Connection } from '../protocol/connection.ts'

/** A client of a revision with sessions. */
export interface HttpSession {
  readonly id: string
  readonly owner: SessionOwner
  readonly connection: Connection
  stream: EventStream | undefined
  /** The notifications. Undefined for HTTP+SSE, whose one stream lasts as long as the session. */
  readonly mailbox: Mailbox | undefined
}

export interface SessionLimits {
  readonly maxSessions: number
  readonly maxPerPrincipal?: number
  /** Time since its last request after which a session without a running request and an open stream is closed, in milliseconds. */
  readonly idleTimeoutMs: number
  /** The name of this replica: ids begin with it and a dot, so that a proxy finds the replica of a session. Default: no name. */
  readonly replica?: string | undefined
}

export function createSessions({ maxSessions, maxPerPrincipal = maxSessions, idleTimeoutMs, replica }: SessionLimits) {
  const sessions = new Map<string, { readonly session: HttpSession; used: number }>()

  const close = async (session: HttpSession): Promise<void> => {
    if (!sessions.delete(session.id)) return
    session.stream?.end()
    session.mailbox?.close()
    await session.connection.close()
  }
  const countOf = ({ id }: Principal) => {
    let count = 0
    for (const { session } of sessions.values()) if (session.owner.id === id) count++
    return count
  }
  const sweep = () => {
    const oldest = performance.now() - idleTimeoutMs
    for (const { session, used } of sessions.values())
      if (used < oldest && session.connection.pending === 0 && session.stream === undefined) void close(session)
  }
  const timer = setInterval(sweep, Math.min(idleTimeoutMs, 60_000))
  timer.unref()

  return {
    /** Opens a session. Returns undefined when the maximum is reached. */
    open: (owner: SessionOwner, connection: Connection, mailbox?: Mailbox): HttpSession | undefined => {
      const isFull = () =>
        sessions.size >= maxSessions || (maxPerPrincipal < maxSessions && countOf(owner) >= maxPerPrincipal)
      if (isFull()) sweep()
      if (isFull()) return undefined
      const session: HttpSession = {
        id: replica === undefined ? randomUUID() : `${replica}.${randomUUID()}`,
        owner,
        connection,
        stream: undefined,
        mailbox,
      }
      sessions.set(session.id, { session, used: performance.now() })
      return session
    },
    /** Returns the session if it belongs to this principal, which then has its current rights in the session. */
    find: (id: string, principal: Principal): HttpSession | undefined => {
      const record = sessions.get(id)
      if (record === undefined || record.session.owner.id !== principal.id) return undefined
      record.session.owner.renew(principal)
      record.used = performance.now()
      return record.session
    },
    close,
    closeAll: async () => {
      clearInterval(timer)
      await Promise.allSettled([...sessions.values()].map(({ session }) => close(session)))
    },
    get size(): number {
      return sessions.size
    },
  }
}

type Mailbox = ReturnType<typeof createMailbox>

/** Maximum number and total length (in characters) of the notifications that are kept. */
const maxEvents = 1000
const maxCharacters = 512 * 1024

/**
 * The notifications for a client with a session: they go out on the open stream of the client, with ids; the last ones are kept for a
 * client that was cut off.
 *
 * @param prefix Prefix of the ids, unique per session.
 */
export function createMailbox(prefix: string) {
  let stream: EventStream | undefined
  let attached: (() => void)[] = []
  let messages: { readonly number: number; readonly json: string }[] = []
  let characters = 0
  let count = 0
  let closed = false

  const keep = (number: number, json: string): void => {
    messages.push({ number, json })
    characters += json.length
    while (messages.length > maxEvents || characters > maxCharacters) characters -= messages.shift()?.json.length ?? 0
  }

  return {
    /** Sends a notification. Resolves when there is room for the next: not before there is a stream. */
    deliver: async (notification: Notification) => {
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
    /**
     * Sets the client's new stream, and sends the kept notifications after `lastId`. Returns false when the client may have missed some.
     */
    attach: (next: EventStream, lastId: string | undefined): boolean => {
      stream = next
      // A client that names no last event may have missed any event.
      let whole = count === 0
      if (lastId !== undefined) {
        const last = lastId.startsWith(`${prefix}-`) ? Number(lastId.slice(prefix.length + 1)) : Number.NaN
        const oldest = messages[0]?.number ?? count + 1
        whole = last >= oldest - 1 && last <= count
        if (whole)
          for (const { number, json } of messages) if (number > last) next.send(json, 'message', `${prefix}-${number}`)
      }
      const waiting = attached
      attached = []
      for (const resolve of waiting) resolve()
      return whole
    },
    detach: (ending: EventStream) => {
      if (stream === ending) stream = undefined
    },
    close: () => {
      closed = true
      stream = undefined
      messages = []
      for (const resolve of attached) resolve()
    },
  }
}
