import type { ServerResponse } from 'node:http'
import { type TraceContext, traceContextIn } from '../../core/trace.ts'

/** Returns the trace context in the headers of the request of a response. */
export function traceOf({ req }: ServerResponse): TraceContext | undefined {
  // A response that is not of Node's own server may have no request.
  const headers = (req as typeof req | undefined)?.headers
  return headers?.traceparent === undefined ? undefined : traceContextIn(headers)
}
