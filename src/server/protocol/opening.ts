import type { ServerResponse } from 'node:http'
import { followFor } from '../../core/kit/abort.ts'
import { refuse } from '../http/reply.ts'
import { passesGate } from './envelope.ts'

/** A catalog that may still be opening. */
export interface ServedOpening {
  /** The open catalog; undefined until it is open. */
  readonly opened: unknown
  /** Waits until it is open. Throws ResourceError `unavailable` when it could not be opened. */
  whenOpen(signal?: AbortSignal): Promise<unknown>
}

/** Returns a promise for the moment when a request can be handled; undefined when it can be at once. */
export function whenWorkable(opening: ServedOpening, method: string): Promise<unknown> | undefined {
  if (opening.opened !== undefined || passesGate(method)) return undefined
  return opening.whenOpen()
}

/** Waits until a post can be handled. Resolves to false after a time-out, when it has answered the request. */
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
