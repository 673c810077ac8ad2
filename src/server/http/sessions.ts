import { randomUUID } from 'node:crypto'
import type { Principal } from '../../core/provider.ts'
import type { Owner } from '../auth/caller.ts'
import type { Connection } from '../protocol/connection.ts'
import type { Mailbox } from './mailbox.ts'
import type { EventStream } from './reply.ts'

/** A client of a revision with sessions. */
export interface Session {
  readonly id: string
  readonly owner: Owner
  readonly connection: Connection
  /** The stream for notifications, while the client holds one open. */
  stream: EventStream | undefined
  /** The notifications, in revisions in which streams come and go. */
  readonly mailbox: Mailbox | undefined
}

/** The open sessions: found by id and owner, closed when idle. */
export interface Sessions {
  /** Opens a session. Returns undefined when the maximum is reached. */
  open(owner: Owner, connection: Connection, mailbox?: Mailbox): Session | undefined
  /**
   * Returns the session if it belongs to this principal: a session of another principal looks like a missing one. From then on
   * the session has the principal's current rights.
   */
  find(id: string, principal: Principal): Session | undefined
  close(session: Session): Promise<void>
  closeAll(): Promise<void>
  readonly size: number
}

export interface SessionLimits {
  readonly most: number
  /** Maximum number of sessions per principal. */
  readonly mostOf?: number
  /** Maximum idle time, in milliseconds. */
  readonly idle: number
  /** The name of this replica: ids begin with it and a dot, so that a proxy finds the replica of a session. Default: no name. */
  readonly replica?: string | undefined
}

export function createSessions({ most, mostOf = most, idle, replica }: SessionLimits): Sessions {
  const sessions = new Map<string, { readonly session: Session; used: number }>()

  const close = async (session: Session): Promise<void> => {
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
    const oldest = performance.now() - idle
    for (const { session, used } of sessions.values())
      if (used < oldest && session.connection.pending === 0 && session.stream === undefined) void close(session)
  }
  const timer = setInterval(sweep, Math.min(idle, 60_000))
  timer.unref()

  return {
    open: (owner, connection, mailbox) => {
      const isFull = () => sessions.size >= most || (mostOf < most && countOf(owner) >= mostOf)
      if (isFull()) sweep()
      if (isFull()) return undefined
      const session: Session = {
        id: replica === undefined ? randomUUID() : `${replica}.${randomUUID()}`,
        owner,
        connection,
        stream: undefined,
        mailbox,
      }
      sessions.set(session.id, { session, used: performance.now() })
      return session
    },
    find: (id, principal) => {
      const found = sessions.get(id)
      if (found === undefined || found.session.owner.id !== principal.id) return undefined
      found.session.owner.renew(principal)
      found.used = performance.now()
      return found.session
    },
    close,
    closeAll: async () => {
      clearInterval(timer)
      await Promise.allSettled([...sessions.values()].map(({ session }) => close(session)))
    },
    get size() {
      return sessions.size
    },
  }
}
