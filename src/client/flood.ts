import type { Readable } from 'node:stream'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/client'

/** Bounds the messages that a server sends without having been asked: notifications, requests, answers to nothing. */
export interface Flood {
  /** Counts the messages of a transport from now on, and cuts it when they go on beyond the budget. */
  watch(transport: Transport): void
  /** To be awaited between pieces of what a server sends: others get their turn, longer ones while it is over its budget. */
  rest(workedMs: number): Promise<void>
  /** Whether the connection is cut: nothing more is read from it. */
  readonly isCut: boolean
}

export interface FloodOptions {
  /** Called once, when the connection is cut. */
  readonly onCut: () => void
  /** Milliseconds. */
  readonly now?: () => number
}

/** A server may send so many messages a second in the long run, and so many at once after a rest. */
const perSecond = 200
const burst = 2000
/** A server that sends so many more in a row, while its budget is spent, is cut. */
const maxExcess = 20_000
/** A server over its budget is read a quarter of the time: after each piece of work, so many times as long is waited. */
const restTimes = 3
const longestRestMs = 100
/** So many lines of a server are handled in one turn of the event loop; an event of a stream has four or so. */
const linesPerTurn = 16
const eventLinesPerTurn = 64

export function createFlood({ onCut, now = () => performance.now() }: FloodOptions): Flood {
  let tokens = burst
  let filledAt = now()
  let excess = 0
  let isCut = false

  const count = (transport: Transport): void => {
    const time = now()
    tokens = Math.min(burst, tokens + ((time - filledAt) / 1000) * perSecond)
    filledAt = time
    if (tokens >= 1) {
      tokens--
      if (tokens > burst / 2) excess = 0
      return
    }
    excess++
    if (excess <= maxExcess || isCut) return
    isCut = true
    onCut()
    transport
      .close()
      .catch((error: unknown) => transport.onerror?.(error instanceof Error ? error : new Error('close')))
  }

  return {
    watch: (transport) => {
      const asked = new Set<string | number>()
      const send = transport.send.bind(transport)
      transport.send = (message, options) => {
        if ('method' in message && 'id' in message) asked.add(message.id)
        return send(message, options)
      }
      let hear = transport.onmessage
      const counted: NonNullable<Transport['onmessage']> = (message, extra) => {
        const isAnswer = !('method' in message) && message.id !== undefined && asked.delete(message.id)
        if (!isAnswer) count(transport)
        if (!isCut) hear?.(message, extra)
      }
      // The SDK sets the listener anew when it has found out which revision the server speaks.
      Object.defineProperty(transport, 'onmessage', {
        configurable: true,
        get: () => (hear === undefined ? undefined : counted),
        set: (listener: Transport['onmessage']) => {
          hear = listener
        },
      })
    },
    rest: async (workedMs) => {
      if (excess > 0) await sleep(Math.min(workedMs * restTimes, longestRestMs))
      else await turn()
    },
    get isCut() {
      return isCut
    },
  }
}

/** Has a listener of a stream of lines hear a few lines in each turn of the event loop. Meanwhile the stream is not read. */
export function paceLines(stream: Readable, flood: Flood): void {
  const listeners = stream.listeners('data') as ((chunk: Buffer) => void)[]
  stream.removeAllListeners('data')
  const hear = (piece: Buffer) => {
    for (const listener of listeners) listener(piece)
  }
  const hearAll = async (pieces: readonly Buffer[]): Promise<void> => {
    stream.pause()
    for (const piece of pieces) {
      const begun = performance.now()
      if (!flood.isCut) hear(piece)
      await flood.rest(performance.now() - begun)
    }
    stream.resume()
  }
  stream.on('data', (chunk: Buffer) => {
    if (flood.isCut) return
    const pieces = piecesOf(chunk, linesPerTurn)
    if (pieces.length === 1) hear(chunk)
    else void hearAll(pieces)
  })
}

const newline = 0x0a

/** A chunk in pieces that end with a line, of at most so many lines each. */
export function piecesOf(chunk: Uint8Array, lines: number): readonly Buffer[] {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const pieces: Buffer[] = []
  let start = 0
  let ended = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) {
    if (++ended < lines) continue
    pieces.push(bytes.subarray(start, at + 1))
    start = at + 1
    ended = 0
  }
  if (start < bytes.length || pieces.length === 0) pieces.push(bytes.subarray(start))
  return pieces
}

/** The same of a stream of events, as a body of HTTP has it. */
export function pacedEvents(flood: Flood): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform: async (chunk, controller) => {
      for (const piece of piecesOf(chunk, eventLinesPerTurn)) {
        if (flood.isCut) return controller.terminate()
        const begun = performance.now()
        controller.enqueue(piece)
        // The reader handles the piece before the next turn of the event loop.
        await turn()
        await flood.rest(performance.now() - begun)
      }
    },
  })
}
