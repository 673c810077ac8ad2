import type { ServerContext } from '@modelcontextprotocol/server'

/** How long a request works in silence, and then from one notification to the next. */
const interval = 1000
/** The longest token that is repeated, in characters. */
const maxToken = 256

/**
 * Makes a method say that it is still at work, once a second from the first second on, when the client gave a token.
 * `progress` counts the seconds, so it always grows; the total is not known. Nothing is sent after the answer.
 */
export function withProgress<Call, Result>(
  method: (call: Call, context: ServerContext) => Promise<Result>,
): (call: Call, context: ServerContext) => Promise<Result> {
  return async (call, context) => {
    const token = context.mcpReq._meta?.progressToken
    if (!isToken(token)) return method(call, context)
    let progress = 0
    const timer = setInterval(() => {
      progress++
      // A client that is gone does not hear of it: its request is being cancelled anyway.
      context.mcpReq
        .notify({ method: 'notifications/progress', params: { progressToken: token, progress } })
        .catch(() => clearInterval(timer))
    }, interval)
    try {
      return await method(call, context)
    } finally {
      clearInterval(timer)
    }
  }
}

function isToken(token: unknown): token is string | number {
  return (
    (typeof token === 'string' && token.length <= maxToken) || (typeof token === 'number' && Number.isFinite(token))
  )
}
