import type { IncomingMessage, ServerResponse } from 'node:http'
import { isLoopback } from '../../core/host.ts'
import type { Measured, Measurements } from '../../core/measurements.ts'
import type { Entrance } from '../admission/entrance.ts'
import { refuse, replyText } from './reply.ts'

/** Path of the metrics for a monitoring system. */
export const metricsPath = '/metrics'

export interface ExposedOptions {
  readonly measurements: Measurements
  /** Authenticates callers, whose metrics these are. Undefined without authentication. */
  readonly entrance?: Entrance
  /** Only callers with one of these roles get the metrics. Undefined: all authenticated callers. */
  readonly roles?: readonly string[]
}

/** The message for a missing path, and for callers without the right. */
const nothing = 'Nothing is here.'

/**
 * Serves metrics in the text format of Prometheus. Without authentication, only direct connections from this machine get them:
 * requests through a proxy come from elsewhere. All others get the answer for a missing path.
 */
export function createExposed({ measurements, entrance, roles }: ExposedOptions) {
  const isPermitted = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (entrance === undefined) {
      if (isFromHere(request)) return true
      refuse(response, 404, nothing)
      return false
    }
    const caller = await entrance.callerOf(request, response)
    if (caller === undefined || !entrance.permits(caller, undefined, response)) return false
    if (roles === undefined || caller.principal.roles.some((role) => roles.includes(role))) return true
    refuse(response, 404, nothing)
    return false
  }

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!(await isPermitted(request, response))) return
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD' })
    replyText(response, formatExposition(measurements.read()), expositionType)
  }
}

const forwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

function isFromHere({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/i, '')
  return isLoopback(address) && forwarded.every((name) => headers[name] === undefined)
}

/** The MIME type of {@link formatExposition}: the text format of Prometheus. */
const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Formats metrics in the text format of Prometheus: for each metric its help and type, then its samples, one per line. */
export function formatExposition(all: readonly Measured[]): string {
  return all
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(({ labels = {}, value }) => `${name}${formatLabels(labels)} ${formatValue(value)}\n`)
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const written = Object.entries(labels).map(([name, value]) => `${name}="${escapeHelp(value).replaceAll('"', '\\"')}"`)
  return written.length === 0 ? '' : `{${written.join(',')}}`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function formatValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
