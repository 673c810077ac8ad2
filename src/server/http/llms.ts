import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../../core/provider.ts'
import type { Scrubber } from '../../core/scrub.ts'
import type { Entrance } from '../admission/entrance.ts'
import type { Audit } from '../telemetry/audit.ts'
import { refuse, replyText } from './reply.ts'

/** Path of the description of a server for models (llmstxt.org). */
export const llmsPath = '/llms.txt'

/** Writes the description for a principal. `endpoint`: URL of the MCP endpoint, or its path where the URL is unknown. */
export type WriteLlms = (principal: Principal, endpoint: string) => Promise<string>

export interface LlmsOptions {
  readonly write: WriteLlms
  readonly entrance: Entrance
  readonly scrubber: Scrubber | undefined
  readonly audit: Audit | undefined
  /** Returns the URL of the MCP endpoint for a request. */
  readonly endpointOf: (request: IncomingMessage) => string
}

/** Serves `/llms.txt`: to callers that may list resources, with what they may see. */
export function createLlms({ write, entrance, scrubber, audit, endpointOf }: LlmsOptions) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const caller = await entrance.callerOf(request, response)
    if (caller === undefined) return
    if (!entrance.permits(caller, { jsonrpc: '2.0', id: 0, method: 'resources/list' }, response)) return
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD' })
    const begun = performance.now()
    const text = await write(caller.principal, endpointOf(request))
    audit?.({
      time: new Date().toISOString(),
      principal: caller.principal.id,
      transport: 'http',
      verb: 'list',
      uri: llmsPath,
      outcome: 'ok',
      ms: Math.round((performance.now() - begun) * 10) / 10,
    })
    replyText(response, scrubber?.scrub(text) ?? text, 'text/plain; charset=utf-8')
  }
}
