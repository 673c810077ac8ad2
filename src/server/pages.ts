import type { IncomingMessage, ServerResponse } from 'node:http'
import { refuse, replyFile } from './reply.ts'

/** What is answered of a page: a body, or a refusal in words. */
export type PageAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
} & ({ readonly body: Uint8Array } | { readonly message: string })

/** Answers what is asked by people's browsers. `undefined`: it is for something else. */
export type Pages = (request: IncomingMessage) => PageAnswer | undefined | Promise<PageAnswer | undefined>

/** Whether pages answered. `false`: the request is for something else. */
export async function servePages(pages: Pages, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const answer = await pages(request)
  if (answer === undefined) return false
  if ('message' in answer) refuse(response, answer.status, answer.message, answer.headers)
  else replyFile(response, answer.status, answer.body, answer.headers)
  return true
}
