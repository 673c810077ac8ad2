import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { taken } from './reply.ts'

/** So many requests may wait on one connection for the answers to those before them. Then nothing more is read from it. */
const mostWaiting = 16
/** What was read with them waits, too: one piece holds a hundred and more. Whoever has made them so short that it is more is cut. */
const mostRead = 512
/** When so many wait on all connections together, those on which too many wait are cut. */
const mostInAll = 16_384
/**
 * A connection on which too many wait rests after each answer, until none does: so many times as long as that took, and so
 * long at most, in milliseconds; twice that where there are two of them, and so on, so that together they have no more than
 * one would.
 */
const restTimes = 3
const longestRest = 100

type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** What becomes of a connection on which too many requests wait. */
export interface PipelineEvents {
  /** Nothing more is read from it for now. */
  readonly onPause: () => void
  /** It is cut. */
  readonly onCut: () => void
  /** It has ended, and so many requests that were read from it will get no answer. */
  readonly onLeft: (socket: Socket, requests: number) => void
}

interface Line {
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[]
  /** One of them is being handled. */
  busy: boolean
  paused: boolean
  /** It was paused, and has not waited for all of its answers since. */
  pressing: boolean
}

/**
 * Handles the requests of each connection one after the other, as their answers have to come: one that was answered with the
 * end of the connection ends what was sent behind it, before anything is done for that. Who sends on and on without waiting is
 * not read from until there is room (Node itself would take it all in), and has a quarter of the time at most.
 *
 * @param handle Must not reject.
 */
export function inTurn(
  handle: Handle,
  { onPause, onCut, onLeft }: PipelineEvents,
): (...args: Parameters<Handle>) => void {
  const lines = new WeakMap<Socket, Line>()
  let inAll = 0
  let pressingLines = 0
  let last: Promise<unknown> = Promise.resolve()

  /** Resolves in a turn of the event loop of its own: whoever waits for answers goes before those who do not. */
  const turn = (): Promise<unknown> => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)))
    return last
  }

  const press = (line: Line, pressing: boolean): void => {
    if (line.pressing !== pressing) pressingLines += pressing ? 1 : -1
    line.pressing = pressing
  }

  const drop = (socket: Socket, line: Line): void => {
    const { length } = line.waiting.splice(0)
    inAll -= length
    press(line, false)
    if (length > 0) onLeft(socket, length)
  }

  const lineOf = (socket: Socket): Line => {
    const known = lines.get(socket)
    if (known !== undefined) return known
    const line: Line = { waiting: [], busy: false, paused: false, pressing: false }
    lines.set(socket, line)
    // Node resumes it by itself, for the body of a request and when an answer was taken.
    socket.on('resume', () => {
      if (line.paused) socket.pause()
    })
    socket.once('close', () => drop(socket, line))
    return line
  }

  const resume = (socket: Socket, line: Line): void => {
    line.paused = false
    socket.resume()
  }

  const work = async (socket: Socket, line: Line): Promise<void> => {
    // All that came in one piece is here before the first of it is begun.
    await undefined
    for (let next = line.waiting.shift(); next !== undefined; next = line.waiting.shift()) {
      inAll--
      if (socket.destroyed || socket.writableEnded) {
        drop(socket, line)
        break
      }
      // The body of the last one may not have come yet.
      if (line.paused && line.waiting.length < mostWaiting / 2) resume(socket, line)
      const begun = performance.now()
      await handle(...next)
      await taken(next[1])
      if (line.waiting.length > 0) await turn()
      if (line.pressing) await sleep(pressingLines * Math.min(restTimes * (performance.now() - begun), longestRest))
    }
    line.busy = false
    press(line, false)
  }

  return (request, response) => {
    const { socket } = request
    // What else was in the piece that it came with.
    if (socket.destroyed) return
    const line = lineOf(socket)
    const { length } = line.waiting
    if (length >= mostRead || (length >= mostWaiting && inAll >= mostInAll)) {
      onCut()
      return void socket.destroy()
    }
    line.waiting.push([request, response])
    inAll++
    if (!line.busy) {
      line.busy = true
      void work(socket, line)
    } else if (length + 1 >= mostWaiting && !line.paused) {
      line.paused = true
      press(line, true)
      socket.pause()
      onPause()
    }
  }
}
