import { type TraceContext, traced } from '../../core/trace.ts'
import type { Request } from './messages.ts'
import type { Result } from './method.ts'
import type { Revision } from './revisions.ts'

/** Names of tools and prompts that a span shows. Clients may send any other. */
const shownName = /^[\w./ -]{1,64}$/

/** Runs a request in a span, as the conventions of OpenTelemetry for MCP have it. URIs are left out: they may hold secrets. */
export function tracedRequest(
  { id, method, params = {} }: Request,
  { revision, parent }: { readonly revision: Revision; readonly parent: TraceContext | undefined },
  work: () => Promise<Result>,
): Promise<Result> {
  const isNamed = method === 'tools/call' || method === 'prompts/get'
  const target = isNamed && typeof params.name === 'string' && shownName.test(params.name) ? params.name : undefined
  const attributes = { 'mcp.method.name': method, 'mcp.protocol.version': revision }
  const options = { kind: 'server', attributes, parent, duration: 'mcp.server.operation.duration' } as const
  return traced(target === undefined ? method : `${method} ${target}`, options, async (span) => {
    span.set({ 'jsonrpc.request.id': String(id).slice(0, 64) })
    if (target !== undefined)
      span.set({ [method === 'tools/call' ? 'gen_ai.tool.name' : 'gen_ai.prompt.name']: target })
    const result = await work()
    if (result.isError === true) span.fail('tool_error')
    return result
  })
}
