import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { waitUntilSent } from '../exchange.ts'
import type { Meter } from '../telemetry/meter.ts'

/** Maximum number of requests on one connection that wait for earlier answers. Beyond it, the connection is not read. */
const maxWaiting = 16
/** Maximum number of them with those that were read already: one chunk can hold more than a hundred. Beyond it, the connection is cut. */
const maxRead = 512
/** If so many requests wait on all connections together, a connection with `maxWaiting` of them is cut at its next request. */
const maxWaitingInAll = 16_384
type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>

interface Pipeline {
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[]
  /** Whether one of its requests is being handled. */
  busy: boolean
  paused: boolean
  /** The answer that is being made or sent. Undefined while there is none, so that an idle connection keeps no answer in memory. */
  answering: ServerResponse | undefined
}

/**
 * Handles the requests of each connection one after the other. An answer that closes the connection drops the requests after it. A client
 * that sends on without waiting for answers is not read until there is room: Node itself would buffer everything.
 *
 * @param handle Must not reject.
 * @param onFirst Called with the first request of a connection.
 */
export function handleInTurn(handle: Handle, meter: Meter, onFirst?: (socket: Socket) => void) {
  const lines = new WeakMap<Duplex, Pipeline>()
  let inAll = 0

  let last: Promise<unknown> = Promise.resolve()

  /** Resolves in a turn of the event loop of its own, so clients that wait for their answers go before those that do not. */
  const turn = (): Promise<unknown> => {
    last = last.then(() => nextTurn())
    return last
  }

  const drop = (line: Pipeline): void => {
    inAll -= line.waiting.splice(0).length
  }

  const begin = (socket: Socket): Pipeline => {
    const line: Pipeline = { waiting: [], busy: false, paused: false, answering: undefined }
    lines.set(socket, line)
    onFirst?.(socket)
    // Node resumes the socket by itself to read the body of a request, and after an answer: pause it again.
    socket.on('resume', () => {
      if (line.paused) socket.pause()
    })
    socket.once('close', () => drop(line))
    return line
  }

  const resume = (socket: Socket, line: Pipeline): void => {
    line.paused = false
    socket.resume()
  }

  const work = async (socket: Socket, line: Pipeline): Promise<void> => {
    for (let next = line.waiting.shift(); next !== undefined; next = line.waiting.shift()) {
      inAll--
      if (socket.destroyed || socket.writableEnded) {
        drop(line)
        break
      }
      // The body of the last request may not have arrived yet.
      if (line.paused && line.waiting.length < maxWaiting / 2) resume(socket, line)
      line.answering = next[1]
      await handle(...next)
      if (!next[1].writableFinished) await waitUntilSent(next[1])
      line.answering = undefined
      if (line.waiting.length > 0) await turn()
    }
    line.busy = false
  }

  const take = (...[request, response]: Parameters<Handle>): void => {
    meter.count('requests')
    const { socket } = request
    // The request was in the same chunk as one that closed the connection.
    if (socket.destroyed) return
    const line = lines.get(socket) ?? begin(socket)
    const { length } = line.waiting
    if (length >= maxRead || (length >= maxWaiting && inAll >= maxWaitingInAll)) {
      meter.count('cutPipelines')
      return void socket.destroy()
    }
    line.waiting.push([request, response])
    inAll++
    if (!line.busy) {
      line.busy = true
      void work(socket, line)
    } else if (length + 1 >= maxWaiting && !line.paused) {
      line.paused = true
      socket.pause()
      meter.count('pausedPipelines')
    }
  }

  return {
    take,
    answering: (socket: Duplex): ServerResponse | undefined => lines.get(socket)?.answering,
  }
}
