import type { Readable } from 'node:stream'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/client'

/** Rate limit for what a server sends unasked. */
export type FloodLimit = ReturnType<typeof createFloodLimit>

/** Rate of the token bucket, in messages per second. */
const perSecond = 200
/** Burst of the token bucket, in messages. */
const burst = 2000
/** A message counts as one, and as one more for every time that it contains this number of bytes. */
const bytesPerMessage = 16 * 1024
/** Maximum number of messages beyond the budget. After them the connection is cut. */
const maxExcess = 20_000
/**
 * Pause after each piece of data of a server over its budget, as a multiple of the time in which the piece was handled. A pause has at most
 * `maxRestMs` milliseconds.
 */
const restTimes = 3
const maxRestMs = 100
/** Maximum number of lines that one turn of the event loop handles. An event of a stream has about four lines. */
const linesPerTurn = 16
const eventLinesPerTurn = 64

/**
 * @param onCut Called once, when the connection is cut.
 * @param now Clock, in milliseconds.
 */
export function createFloodLimit(onCut: () => void, now = () => performance.now()) {
  let tokens = burst
  let filledAt = now()
  let excess = 0
  let isCut = false
  let bytes = 0

  const count = (transport: Transport): void => {
    const cost = 1 + Math.floor(bytes / bytesPerMessage)
    bytes = 0
    const time = now()
    tokens = Math.min(burst, tokens + ((time - filledAt) / 1000) * perSecond)
    filledAt = time
    if (tokens >= cost) {
      tokens -= cost
      if (tokens > burst / 2) excess = 0
      return
    }
    excess += cost
    if (excess <= maxExcess || isCut) return
    isCut = true
    onCut()
    transport
      .close()
      .catch((error: unknown) => transport.onerror?.(error instanceof Error ? error : new Error('close')))
  }

  return {
    /** Counts the unasked messages of a transport from now on. Closes it when they exceed the budget by too many. */
    watch: (transport: Transport) => {
      const ids = new Set<string | number>()
      const send = transport.send.bind(transport)
      transport.send = (message, options) => {
        if ('method' in message && 'id' in message) ids.add(message.id)
        return send(message, options)
      }
      let hear = transport.onmessage
      const counted: NonNullable<Transport['onmessage']> = (message, extra) => {
        const isAnswer = !('method' in message) && message.id !== undefined && ids.delete(message.id)
        if (isAnswer) bytes = 0
        else count(transport)
        if (!isCut) hear?.(message, extra)
      }
      // The SDK sets the listener again after it has negotiated the revision: a setter counts for that one too.
      Object.defineProperty(transport, 'onmessage', {
        configurable: true,
        get: () => (hear === undefined ? undefined : counted),
        set: (listener: Transport['onmessage']) => {
          hear = listener
        },
      })
    },
    countUnreadable: count,
    /** Counts bytes that have arrived. They belong to the next message. */
    addBytes: (length: number) => {
      bytes += length
    },
    /** Yields the event loop between pieces of a server's data. Sleeps longer while the server is over its budget. */
    rest: async (workedMs: number) => {
      if (excess > 0) await sleep(Math.min(workedMs * restTimes, maxRestMs))
      else await turn()
    },
    /** Whether the connection is cut. Nothing more is read from it then. */
    get isCut(): boolean {
      return isCut
    },
  }
}

/** Makes the present `data` listeners of a stream handle a few lines in each turn of the event loop. */
export function paceLines(stream: Readable, flood: FloodLimit): void {
  const listeners = stream.listeners('data') as ((chunk: Buffer) => void)[]
  stream.removeAllListeners('data')
  const hear = (piece: Buffer) => {
    flood.addBytes(piece.length)
    for (const listener of listeners) listener(piece)
  }
  const hearAll = async (pieces: readonly Buffer[]): Promise<void> => {
    stream.pause()
    for (const piece of pieces) {
      const start = performance.now()
      if (!flood.isCut) hear(piece)
      await flood.rest(performance.now() - start)
    }
    stream.resume()
  }
  stream.on('data', (chunk: Buffer) => {
    if (flood.isCut) return
    const pieces = splitAtLineEnds(chunk, linesPerTurn)
    if (pieces.length === 1) hear(chunk)
    else void hearAll(pieces)
  })
}

const newline = 0x0a

/** Splits a chunk at line ends into pieces of at most `lines` lines. */
function splitAtLineEnds(chunk: Uint8Array, lines: number): readonly Buffer[] {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const pieces: Buffer[] = []
  let start = 0
  let end = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) {
    if (++end < lines) continue
    pieces.push(bytes.subarray(start, at + 1))
    start = at + 1
    end = 0
  }
  if (start < bytes.length || pieces.length === 0) pieces.push(bytes.subarray(start))
  return pieces
}

/** Does the same as {@link paceLines} for a stream of events in the body of an HTTP answer. */
export function paceEvents(flood: FloodLimit): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform: async (chunk, controller) => {
      for (const piece of splitAtLineEnds(chunk, eventLinesPerTurn)) {
        if (flood.isCut) return controller.terminate()
        const start = performance.now()
        flood.addBytes(piece.length)
        controller.enqueue(piece)
        // The reader handles the piece before the next turn of the event loop.
        await turn()
        await flood.rest(performance.now() - start)
      }
    },
  })
}
