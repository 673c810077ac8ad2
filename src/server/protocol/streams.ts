import type { Request, Response } from '../messages/messages.ts'
import { type StreamOptions, serveListenRequest } from './listen.ts'

export type StreamMethod = (request: Request, options: StreamOptions) => Promise<Response | undefined>

/** The methods of 2026-07-28 that are answered by a stream. */
export const streamMethods: ReadonlyMap<string, StreamMethod> = new Map([
  ['subscriptions/listen', serveListenRequest],
  ['events/stream', async (request, options) => (await import('./event-stream.ts')).streamEvents(request, options)],
])
