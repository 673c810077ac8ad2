import { randomUUID } from 'node:crypto'
import type { Principal } from '../core/provider.ts'
import type { Owner } from './authorize/caller.ts'
import type { Connection } from './connection.ts'
import type { Mailbox } from './mailbox.ts'
import type { EventStream } from './reply.ts'

/** A client of a revision with sessions. */
export interface Session {
  readonly id: string
  readonly owner: Owner
  readonly connection: Connection
  /** The stream on which the server speaks unasked, while the client holds one open. */
  stream: EventStream | undefined
  /** What it is told unasked, where streams come and go. */
  readonly mailbox: Mailbox | undefined
}

/** The sessions that are open: found by id and owner, closed when idle. */
export interface Sessions {
  /** `undefined` when there are as many as there may be. */
  open(owner: Owner, connection: Connection, mailbox?: Mailbox): Session | undefined
  /**
   * The session, if it is this principal's: somebody else's is as absent as one that never was. From then on it has the
   * principal's rights as they are now.
   */
  find(id: string, principal: Principal): Session | undefined
  close(session: Session): Promise<void>
  closeAll(): Promise<void>
  readonly size: number
}

export interface SessionLimits {
  readonly most: number
  /** How many one principal may have. */
  readonly mostOf?: number
  /** In milliseconds. */
  readonly idle: number
}

export function createSessions({ most, mostOf = most, idle }: SessionLimits): Sessions {
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
    const oldest = Date.now() - idle
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
      const session: Session = { id: randomUUID(), owner, connection, stream: undefined, mailbox }
      sessions.set(session.id, { session, used: Date.now() })
      return session
    },
    find: (id, principal) => {
      const found = sessions.get(id)
      if (found === undefined || found.session.owner.id !== principal.id) return undefined
      found.session.owner.renew(principal)
      found.used = Date.now()
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
