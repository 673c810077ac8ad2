import type { Request, Response } from '../messages/messages.ts'
import { type StreamOptions, serveListenRequest } from './listen.ts'

/**
 * Serves a request with a stream of notifications until it ends. Resolves to its answer; to undefined when the client is gone or too
 * slow.
 */
export type StreamMethod = (request: Request, options: StreamOptions) => Promise<Response | undefined>

/** The methods of 2026-07-28 that are answered by a stream. */
export const streamMethods: ReadonlyMap<string, StreamMethod> = new Map([
  ['subscriptions/listen', serveListenRequest],
  ['events/stream', async (request, options) => (await import('./event-stream.ts')).streamEvents(request, options)],
])
