import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** So many requests may wait on one connection for the answers to those before them. */
const maxPipelined = 16

type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/**
 * Handles the requests of each connection one after the other, as their answers have to come: one that was answered with the
 * end of the connection ends what was sent behind it, before anything is done for that. Who sends on and on without waiting is
 * cut off: Node itself would take it all in.
 *
 * @param onCut Called for each connection that is.
 */
export function inTurn(
  handle: Handle,
  onCut: () => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  const connections = new WeakMap<Socket, { waiting: number; last: Promise<void> }>()

  /** Resolves when an answer is given, or cannot be any more. */
  const answered = (response: ServerResponse): Promise<void> =>
    new Promise((resolve) => {
      if (response.writableFinished || response.destroyed) return resolve()
      response.once('finish', resolve).once('close', resolve)
    })

  return (request, response) => {
    const { socket } = request
    // What else was in the piece that it came with.
    if (socket.destroyed) return
    const connection = connections.get(socket) ?? { waiting: 0, last: Promise.resolve() }
    connections.set(socket, connection)
    if (connection.waiting >= maxPipelined) {
      onCut()
      return void socket.destroy()
    }
    connection.waiting++
    connection.last = connection.last.then(async () => {
      try {
        if (socket.destroyed || socket.writableEnded) return
        await handle(request, response)
        await answered(response)
      } finally {
        connection.waiting--
      }
    })
  }
}
