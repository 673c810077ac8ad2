import type { IncomingMessage, ServerResponse } from 'node:http'
import { refuse, replyFile } from './reply.ts'

/** The answer for a page: a body, or a refusal with a message. */
export type PageAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
} & ({ readonly body: Uint8Array } | { readonly message: string })

/** Answers requests of people's browsers. Returns undefined for any other request. */
export type Pages = (request: IncomingMessage) => PageAnswer | undefined | Promise<PageAnswer | undefined>

/** Returns whether the pages answered the request. */
export async function servePages(pages: Pages, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const answer = await pages(request)
  if (answer === undefined) return false
  if ('message' in answer) refuse(response, answer.status, answer.message, answer.headers)
  else replyFile(response, answer.status, answer.body, answer.headers)
  return true
}
