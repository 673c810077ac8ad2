import { isObject } from './messages.ts'
import type { Call, Method } from './method.ts'

/** Time from the start to the first notification, and from one notification to the next, in milliseconds. */
const progressIntervalMs = 1000
/** Maximum length of a progress token, in characters. A longer one gets no progress. */
const maxTokenLength = 256
/** Maximum length of a message, in characters. */
const maxMessageLength = 500

/**
 * Wraps a method so that it sends `notifications/progress` once a second while it runs, if the request has a progress token
 * (basic/utilities/progress). `progress` counts the seconds, so it always grows; the total is unknown. When the method reports
 * progress of its own, that is sent instead, on top of the seconds counted so far.
 */
export function withProgress(method: Method): Method {
  return async (call) => {
    const meta = isObject(call.params._meta) ? call.params._meta : {}
    const token = meta.progressToken
    if (!isToken(token)) return method(call)
    let seconds = 0
    let last = 0
    const send = (progress: number, facts: { readonly total?: number; readonly message?: string } = {}) => {
      last = progress
      const params = { progressToken: token, progress, ...facts }
      call.notify({ jsonrpc: '2.0', method: 'notifications/progress', params })
    }
    const timer = setInterval(() => send(++seconds), progressIntervalMs)
    const report: Call['report'] = ({ progress, total, message }) => {
      clearInterval(timer)
      if (!Number.isFinite(progress) || seconds + progress <= last) return
      send(seconds + progress, {
        ...(total === undefined ? {} : { total: seconds + total }),
        ...(message === undefined ? {} : { message: message.slice(0, maxMessageLength).toWellFormed() }),
      })
    }
    try {
      return await method({ ...call, report })
    } finally {
      clearInterval(timer)
    }
  }
}

function isToken(token: unknown): token is string | number {
  return (typeof token === 'string' && token.length <= maxTokenLength) || typeof token === 'number'
}
