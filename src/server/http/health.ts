import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DegradedMount } from '../../core/changes.ts'
import type { ServedOpening } from '../protocol/opening.ts'
import { refuse, replyEmpty, replyJson } from './reply.ts'

export interface HealthState {
  readonly draining: boolean
  readonly opening?: ServedOpening
  readonly degraded?: () => readonly DegradedMount[]
}

function statusOf({ draining, opening }: HealthState): 'draining' | 'opening' | 'ready' {
  if (draining) return 'draining'
  return opening !== undefined && opening.opened === undefined ? 'opening' : 'ready'
}

/** Answers `/healthz` and `/readyz` to anyone: probes come from wherever the operator's tools are. Returns false for any other request. */
export function serveHealth(request: IncomingMessage, response: ServerResponse, state: HealthState): boolean {
  if (request.url === '/healthz') reply(request, response, 200, { status: 'ok' })
  else if (request.url === '/readyz') {
    const status = statusOf(state)
    if (status === 'ready') reply(request, response, 200, { status, ...countDegraded(state.degraded?.() ?? []) })
    else reply(request, response, 503, { status })
  } else return false
  return true
}

/** Returns the number of degraded mounts by reason. Only the log names the mounts, since anyone may send this request. */
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
