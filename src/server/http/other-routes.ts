import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DegradedMount } from '../../core/changes.ts'
import { isResourceError } from '../../core/errors.ts'
import { formatSampleValue } from '../../core/kit/sample-value.ts'
import type { Log, MetricFamily, MetricsRegistry } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { PostEndpoint } from '../../core/tool.ts'
import { isLoopback } from '../../core/uri.ts'
import type { Gate } from '../admission/gate.ts'
import { overloadAnswer, statusOfOverload } from '../admission/overload.ts'
import type { Caller } from '../auth/caller.ts'
import { refuse, refuseMethod, replyEmpty, replyJson, replyText } from '../exchange.ts'
import { errorAnswer, errorToWire, modernRevision, type Request, type Response } from '../messages/messages.ts'
import type { AnswerScrubber } from '../protocol/answer-scrubber.ts'
import type { OpeningCatalog } from '../protocol/envelope.ts'
import type { Entrance } from './entrance.ts'

export interface HealthState {
  readonly draining: boolean
  readonly opening?: OpeningCatalog
  readonly degraded?: () => readonly DegradedMount[]
}

function readinessOf({ draining, opening }: HealthState): 'draining' | 'opening' | 'ready' {
  if (draining) return 'draining'
  return opening !== undefined && opening.opened === undefined ? 'opening' : 'ready'
}

/** Paths of the probes. */
export const healthPath = '/healthz'
export const readyPath = '/readyz'

/** Answers a probe. It needs no authentication. */
export function serveHealth(request: IncomingMessage, response: ServerResponse, state: HealthState): void {
  const status = request.url === healthPath ? 'ok' : readinessOf(state)
  const degraded = status === 'ready' ? countDegraded(state.degraded?.() ?? []) : {}
  const code = status === 'ok' || status === 'ready' ? 200 : 503
  if (request.method === 'GET') replyJson(response, code, { status, ...degraded })
  else if (request.method === 'HEAD') replyEmpty(response, code)
  else refuseMethod(response, 'GET, HEAD')
}

/** Returns the number of degraded mounts by reason, without their names, because the probe is public. */
function countDegraded(mounts: readonly DegradedMount[]) {
  const degraded: Record<string, number> = {}
  for (const { degradation } of mounts) degraded[degradation] = (degraded[degradation] ?? 0) + 1
  return mounts.length === 0 ? {} : { degraded }
}

/** The HTTP endpoints besides MCP that accept posts. */
export interface PostEndpoints {
  /** Common prefix of their paths, such as `/results/`. */
  readonly under: string
  /** Returns the endpoint at a path; undefined when it does not exist, or the principal may not post there. */
  at(path: string, principal: Principal): PostEndpoint | undefined
}

export interface PostingServices {
  readonly gate: Gate
  readonly scrubAnswer: AnswerScrubber
  readonly log: Log
  /** Time-out of a post, in milliseconds. */
  readonly timeoutMs: number
}

/** Handles a post and answers it. */
export async function servePost(
  posting: PostEndpoint,
  value: unknown,
  response: ServerResponse,
  { principal, share }: Caller,
  { gate, scrubAnswer, log, timeoutMs }: PostingServices,
): Promise<void> {
  const request: Request = { jsonrpc: '2.0', id: 0, method: 'post' }
  const clean = (answer: Response) => scrubAnswer(answer, request)
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const ran = await gate.run(() => posting.post(value, { principal, signal }), share)
    if ('refused' in ran) {
      const later = overloadAnswer(null, ran.refused)
      const { status = 503, headers = {} } = statusOfOverload(later) ?? {}
      return replyJson(response, status, later, headers)
    }
    const { answer, created, location } = ran.value
    const cleaned = clean({ jsonrpc: '2.0', id: 0, result: answer })
    const at = created && location !== undefined ? { Location: location } : {}
    replyJson(response, created ? 201 : 200, 'result' in cleaned ? cleaned.result : cleaned, at)
  } catch (error) {
    if (isResourceError(error, 'not-found')) return refuse(response, 404, notFoundMessage)
    const answer = clean(errorAnswer(null, errorToWire(error, modernRevision, undefined, log)))
    replyJson(
      response,
      httpStatusForError(error),
      answer,
      isResourceError(error, 'unavailable') ? { 'Retry-After': '5' } : {},
    )
  }
}

/** The message for a missing path, and for one that the caller may not know of. */
export const notFoundMessage = 'Nothing is served at this path.'

export function httpStatusForError(error: unknown): number {
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

/** Path of the metrics for a monitoring system. */
export const metricsPath = '/metrics'

/**
 * Serves metrics in the text format of Prometheus. Without authentication, direct connections from this machine get them; others get the
 * answer for a missing path.
 *
 * @param entrance Authenticates the callers. Undefined without authentication.
 * @param roles Only callers with one of these roles get the metrics. Undefined: all authenticated callers.
 */
export function createMetricsEndpoint(measurements: MetricsRegistry, entrance?: Entrance, roles?: readonly string[]) {
  const isPermitted = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (entrance === undefined) {
      if (isFromHere(request)) return true
      refuse(response, 404, notFoundMessage)
      return false
    }
    const caller = await entrance.callerOf(request, response)
    if (caller === undefined || !entrance.permits(caller, undefined, response)) return false
    if (roles === undefined || caller.principal.roles.some((role) => roles.includes(role))) return true
    refuse(response, 404, notFoundMessage)
    return false
  }

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!(await isPermitted(request, response))) return
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(response, 'GET, HEAD')
    replyText(response, formatExposition(measurements.read()), expositionType)
  }
}

const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

function isFromHere({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/i, '')
  return isLoopback(address) && proxyHeaders.every((name) => headers[name] === undefined)
}

/** The MIME type of {@link formatExposition}: the text format of Prometheus. */
const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Formats metrics in the text format of Prometheus: for each metric its help and type, then its samples, one per line. */
export function formatExposition(all: readonly MetricFamily[]): string {
  return all
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(
        ({ labels = {}, value }) => `${name}${formatLabels(labels)} ${formatSampleValue(value)}\n`,
      )
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const labelText = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeHelp(value).replaceAll('"', '\\"')}"`,
  )
  return labelText.length === 0 ? '' : `{${labelText.join(',')}}`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
