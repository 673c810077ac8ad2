import { isObject } from '../messages.ts'
import type { Method } from './method.ts'

/** Time from the start to the first notification, and from one notification to the next, in milliseconds. */
const progressIntervalMs = 1000
/** Maximum length of a progress token, in characters. A longer one gets no progress. */
const maxTokenLength = 256

/**
 * Wraps a method so that it sends `notifications/progress` once a second while it runs, if the request has a progress token
 * (basic/utilities/progress). `progress` counts the seconds, so it always grows; the total is unknown.
 */
export function withProgress(method: Method): Method {
  return async (call) => {
    const meta = isObject(call.params._meta) ? call.params._meta : {}
    const token = meta.progressToken
    if (!isToken(token)) return method(call)
    let progress = 0
    const timer = setInterval(() => {
      progress++
      const params = { progressToken: token, progress }
      call.notify({ jsonrpc: '2.0', method: 'notifications/progress', params })
    }, progressIntervalMs)
    try {
      return await method(call)
    } finally {
      clearInterval(timer)
    }
  }
}

function isToken(token: unknown): token is string | number {
  return (typeof token === 'string' && token.length <= maxTokenLength) || typeof token === 'number'
}
