import type { IncomingMessage, ServerResponse } from 'node:http'
import { isLoopback } from '../core/host.ts'
import type { Measurements } from '../core/measurements.ts'
import type { Entrance } from './entrance.ts'
import { expositionType, formatExposition } from './exposition.ts'
import { refuse, replyText } from './reply.ts'

/** Where measurements are told to a monitoring system. */
export const metricsPath = '/metrics'

export interface ExposedOptions {
  readonly measurements: Measurements
  /** Where callers say who they are: whose measurements these are. Left out: nobody is asked. */
  readonly entrance?: Entrance
  /** Who is told, of those: who has one of these roles. Left out: all of them. */
  readonly roles?: readonly string[]
}

/** What stands for whatever is not there, and for what is not for who asks. */
const nothing = 'Nothing is here.'

/**
 * Tells measurements in the text format of Prometheus. Where nobody is asked who they are, only who asks from this machine is told,
 * and straight: what a proxy passes on comes from elsewhere. For all others nothing is there.
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
