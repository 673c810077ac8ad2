import type { IncomingMessage, ServerResponse } from 'node:http'
import { headerValues, replyEmpty } from '../exchange.ts'

/** Headers of a request that a page may set, in lower case: those of MCP, of content links and of traces. */
const requestHeaders = [
  'accept',
  'authorization',
  'content-type',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'mcp-method',
  'mcp-name',
  'range',
  'if-range',
  'if-none-match',
  'traceparent',
  'tracestate',
  'baggage',
]

/** Headers that repeat a param of a tool (2026-07-28). Each must be allowed by its name. */
const paramHeader = /^mcp-param-[\w!#$%&'*+.^`|~-]+$/i

const exposed =
  'Mcp-Session-Id, WWW-Authenticate, Retry-After, Location, ETag, Accept-Ranges, Content-Range, Content-Disposition'

/** Lets web pages of the listed origins send requests and read the answers (CORS, as the Fetch standard has it). */
export function createCors(allowedOrigins: readonly string[]) {
  const origins = new Set(allowedOrigins)
  const allowedOriginOf = (request: IncomingMessage): string | undefined => {
    const [origin = '', ...others] = headerValues(request, 'origin')
    return others.length === 0 && origins.has(origin) ? origin : undefined
  }
  return {
    prepare: (request: IncomingMessage, response: ServerResponse): void => {
      response.appendHeader('Vary', 'Origin')
      const origin = allowedOriginOf(request)
      if (origin === undefined) return
      response.setHeader('Access-Control-Allow-Origin', origin)
      response.setHeader('Access-Control-Expose-Headers', exposed)
    },
    answerPreflight: (request: IncomingMessage, response: ServerResponse): boolean => {
      const { method, headers } = request
      const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
      if (!isPreflight || allowedOriginOf(request) === undefined) return false
      const headerNames = (headers['access-control-request-headers'] ?? '').split(',')
      const params = headerNames.map((name) => name.trim()).filter((name) => paramHeader.test(name))
      replyEmpty(response, 204, {
        'Access-Control-Allow-Methods': 'GET, HEAD, POST, DELETE',
        'Access-Control-Allow-Headers': [...requestHeaders, ...params].join(', '),
        'Access-Control-Max-Age': '600',
      })
      return true
    },
  }
}
