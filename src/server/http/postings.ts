import type { IncomingMessage, ServerResponse } from 'node:http'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { Posting } from '../../core/tool.ts'
import type { Gate } from '../admission/gate.ts'
import { overloaded, statusOfOverload } from '../admission/overload.ts'
import type { Caller } from '../auth/caller.ts'
import type { Egress } from '../protocol/egress.ts'
import { wireError } from '../protocol/errors.ts'
import { failure, type Request, type Response } from '../protocol/messages.ts'
import { modern } from '../protocol/revisions.ts'
import { refuse, replyJson } from './reply.ts'

/** The HTTP endpoints besides MCP that accept posts. */
export interface Postings {
  /** Common prefix of their paths, such as `/results/`. Every request below it is authenticated first. */
  readonly under: string
  /** Returns the endpoint at a path; undefined when it does not exist, or the principal may not post there. */
  at(path: string, principal: Principal): Posting | undefined
}

export interface PostingParts {
  readonly gate: Gate
  readonly egress: Egress
  readonly log: Log
  /** Time-out of a post, in milliseconds. */
  readonly timeout: number
}

/** Handles a post and answers it. */
export async function servePosting(
  posting: Posting,
  value: unknown,
  response: ServerResponse,
  { principal, share }: Caller,
  { gate, egress, log, timeout }: PostingParts,
): Promise<void> {
  const request: Request = { jsonrpc: '2.0', id: 0, method: 'post' }
  const clean = (answer: Response) => egress(answer, request)
  const fail = (error: unknown) => {
    if (isResourceError(error, 'not-found')) return refuse(response, 404, nothingHere)
    const answer = clean(failure(null, wireError(error, modern, undefined, log)))
    replyJson(response, statusOf(error), answer, isResourceError(error, 'unavailable') ? { 'Retry-After': '5' } : {})
  }
  try {
    const signal = AbortSignal.timeout(timeout)
    const ran = await gate.run(() => posting.post(value, { principal, signal }), share)
    if ('refused' in ran) {
      const later = overloaded(null, ran.refused)
      const { status = 503, headers = {} } = statusOfOverload(later) ?? {}
      return replyJson(response, status, later, headers)
    }
    const { answer, created, location } = ran.value
    const cleaned = clean({ jsonrpc: '2.0', id: 0, result: answer })
    const at = created && location !== undefined ? { Location: location } : {}
    replyJson(response, created ? 201 : 200, 'result' in cleaned ? cleaned.result : cleaned, at)
  } catch (error) {
    fail(error)
  }
}

/** The message for a missing endpoint, and for one that the caller may not know of. */
export const nothingHere = 'Nothing is here.'

/** Returns the path of a request, unchanged, if it lies below the prefix of the endpoints and has no query. */
export function postedTo({ url = '' }: IncomingMessage, postings: Postings | undefined): string | undefined {
  return postings !== undefined && url.startsWith(postings.under) ? url : undefined
}

/** Returns the HTTP status of an error outside of MCP. */
export function statusOf(error: unknown): number {
  if (!isResourceError(error)) return 500
  switch (error.kind) {
    case 'invalid':
      return error.detail.reason === 'too-large' ? 413 : 422
    case 'too-large':
      return 413
    case 'unavailable':
      return 503
    case 'not-found':
      return 404
    case 'internal':
      return 500
  }
}
