import type { ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Connection } from './connection.ts'
import { unavailable } from './errors.ts'
import type { RequestOptions } from './target.ts'
import type { Wire } from './wire.ts'

/** The link to a server: one connection at a time, and a new one after it was lost. */
export interface Link {
  /** The connection that requests use. It may have ended. */
  readonly connection: Connection
  readonly log: Log
  request(method: string, params: Wire, options: RequestOptions | undefined): Promise<Wire>
  /** Opens another connection, which replaces this one. */
  reopen(): Promise<Connection>
  /** Ends the link for good, for this reason. Only the first call counts. */
  giveUp(reason: ResourceError): void
  /** Resolves with the reason when the link has ended for good. */
  readonly over: Promise<ResourceError>
  /** Aborts when the link is closed. */
  readonly closing: AbortSignal
  close(): Promise<void>
}

/** @param open Opens a connection; gives up when the signal aborts. */
export function createLink(first: Connection, open: (signal: AbortSignal) => Promise<Connection>, log: Log): Link {
  const controller = new AbortController()
  const closing = controller.signal
  let connection = first
  let giveUp = (_reason: ResourceError): void => {}
  const over = new Promise<ResourceError>((resolve) => {
    giveUp = resolve
  })
  return {
    get connection() {
      return connection
    },
    log,
    request: (method, params, options) => connection.request(method, params, options),
    reopen: async () => {
      const lost = connection
      const next = await open(closing)
      if (closing.aborted) {
        await next.close()
        throw unavailable('The connection was closed.')
      }
      connection = next
      // Nobody waits for the server of the lost connection to learn that it is over.
      lost.close().catch((error: unknown) => log('debug', 'a lost connection cannot be closed', { error }))
      return next
    },
    giveUp: (reason) => giveUp(reason),
    over,
    closing,
    close: async () => {
      controller.abort()
      giveUp(unavailable('The connection was closed.'))
      await connection.close()
    },
  }
}
