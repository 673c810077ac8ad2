import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DegradedMount } from '../core/changes.ts'
import { refuse, replyEmpty, replyJson } from './reply.ts'

/**
 * Answers `/healthz` and `/readyz`, to anybody: probes come from wherever the operator's tools are. `false`: it is for something
 * else.
 */
export function serveHealth(
  request: IncomingMessage,
  response: ServerResponse,
  state: () => 'draining' | readonly DegradedMount[],
): boolean {
  if (request.url === '/healthz') reply(request, response, 200, { status: 'ok' })
  else if (request.url === '/readyz') {
    const now = state()
    if (now === 'draining') reply(request, response, 503, { status: now })
    else reply(request, response, 200, { status: 'ready', ...countDegraded(now) })
  } else return false
  return true
}

/** How many mounts are degraded, by the reason. Which ones, the log says: anybody may ask here. */
function countDegraded(mounts: readonly DegradedMount[]): {
  readonly degraded?: Readonly<Record<string, number>>
} {
  const degraded: Record<string, number> = {}
  for (const { degradation } of mounts) degraded[degradation] = (degraded[degradation] ?? 0) + 1
  return mounts.length === 0 ? {} : { degraded }
}

function reply(request: IncomingMessage, response: ServerResponse, status: number, health: object): void {
  if (request.method === 'GET') replyJson(response, status, health)
  else if (request.method === 'HEAD') replyEmpty(response, status)
  else refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD' })
}
