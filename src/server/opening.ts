import type { ServerResponse } from 'node:http'
import { followFor } from '../core/abort.ts'
import { refuse } from './reply.ts'

/** What is served, while it may still be opened. */
export interface ServedOpening {
  /** `undefined`: it is not open yet. */
  readonly opened: unknown
  /** Waits until it is open. Throws ResourceError `unavailable` when it could not be opened. */
  whenOpen(signal?: AbortSignal): Promise<unknown>
}

/** The requests that are answered from the configuration alone. */
const immediate = new Set(['initialize', 'server/discover', 'ping'])

/**
 * Whether a request has to be answered though other requests wait for the opening: it then runs outside of the gate, in which those
 * may have taken every place.
 */
export function passesGate(opening: ServedOpening | undefined, method: string): boolean {
  return opening !== undefined && opening.opened === undefined && immediate.has(method)
}

/** Waits until a request can be worked on. `undefined`: it can be at once. */
export function whenWorkable(opening: ServedOpening | undefined, method: string): Promise<unknown> | undefined {
  if (opening === undefined || opening.opened !== undefined || immediate.has(method)) return undefined
  return opening.whenOpen()
}

/** Waits until a post can be worked on. Resolves to `false` when it cannot, which it is told: it took too long. */
export async function waitUntilOpen(
  opening: ServedOpening | undefined,
  response: ServerResponse,
  timeoutMs: number,
): Promise<boolean> {
  if (opening === undefined || opening.opened !== undefined) return true
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const waiting = followFor(gone.signal, timeoutMs)
  return opening
    .whenOpen(waiting.signal)
    .then(
      () => true,
      () => {
        refuse(response, 503, 'The server is not ready yet. Try again later.', { 'Retry-After': '5' })
        return false
      },
    )
    .finally(waiting.release)
}
