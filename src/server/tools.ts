import { invalid, isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Tool, ToolAnswer, ToolBlock, ToolLink } from '../core/tool.ts'
import type { ClientName } from './clients.ts'
import { codes, type WireError, wireError } from './errors.ts'
import { isObject, type Request } from './messages.ts'
import { modern, type Revision, since } from './revisions.ts'
import { embeddedToWire, resourceToWire } from './wire.ts'

/** What tools one principal has just now: its roles may change. */
export interface Toolbox {
  readonly principal: Principal
  /** @param client What the client calls itself. */
  tools(client: ClientName | undefined): readonly Tool[]
}

interface Call {
  readonly params: Readonly<Record<string, unknown>>
  readonly client: ClientName | undefined
  readonly revision: Revision
  readonly signal: AbortSignal
}

type Wire = Record<string, unknown>

/**
 * Why a call is not let through to the protocol layer, which would say of a malformed one that there are tools: who has none is
 * answered as where there are none at all.
 */
export function toolFault(
  toolbox: Toolbox,
  { method, params = {} }: Request,
  client: ClientName | undefined,
): WireError | undefined {
  if (method !== 'tools/call') return undefined
  if (toolbox.tools(client).length === 0) return { code: codes.methodNotFound, message: 'Method not found' }
  const fault = (message: string) => ({ code: codes.invalidParams, message, data: { reason: 'params' } })
  if (typeof params.name !== 'string') return fault('The param name is not a string.')
  if (!isObject(params.arguments ?? {})) return fault('The arguments of the tool are not an object.')
  return undefined
}

/** The methods for tools. What is malformed does not get here: {@link toolFault}. */
export function toolMethods(toolbox: Toolbox | undefined, log: Log) {
  const list = async ({ revision, client }: Pick<Call, 'revision' | 'client'>): Promise<Wire> => {
    const tools = toolbox?.tools(client) ?? []
    // What one principal has is not for others.
    const cached = tools.length > 0 && revision === modern ? { ttlMs: 0, cacheScope: 'private' } : {}
    return { tools: tools.map((tool) => toolToWire(tool, revision)), ...cached }
  }
  if (toolbox === undefined) return { 'tools/list': list }
  const call = async ({ params, revision, signal, client }: Call): Promise<Wire> => {
    const tool = toolbox.tools(client).find(({ name }) => name === params.name)
    if (tool === undefined) throw invalid('There is no such tool.', 'unknown-tool')
    const given = isObject(params.arguments) ? params.arguments : {}
    try {
      return answerToWire(await tool.call(given, { principal: toolbox.principal, signal }), revision)
    } catch (error) {
      // The model can do better when it is told; of a fault of ours it is told like everybody.
      if (!isResourceError(error) || error.kind === 'internal') throw error
      // Who has cancelled it made it fail: that is nobody's fault.
      const { message } = wireError(error, revision, undefined, signal.aborted ? () => {} : log)
      return { content: [{ type: 'text', text: message }], isError: true }
    }
  }
  return { 'tools/list': list, 'tools/call': call }
}

function toolToWire(tool: Tool, revision: Revision): Wire {
  const { name, title, description, inputSchema, outputSchema, annotations = {} } = tool
  const { readOnly, destructive, idempotent, openWorld } = annotations
  const hints = {
    ...(title === undefined ? {} : { title }),
    ...(readOnly === undefined ? {} : { readOnlyHint: readOnly }),
    ...(destructive === undefined ? {} : { destructiveHint: destructive }),
    ...(idempotent === undefined ? {} : { idempotentHint: idempotent }),
    ...(openWorld === undefined ? {} : { openWorldHint: openWorld }),
  }
  const isNewer = since(revision, '2025-06-18')
  return {
    name,
    ...(title !== undefined && isNewer ? { title } : {}),
    description,
    inputSchema,
    ...(outputSchema !== undefined && isNewer ? { outputSchema } : {}),
    ...(since(revision, '2025-03-26') ? { annotations: hints } : {}),
  }
}

function answerToWire({ text, structured, resources = [], blocks = [] }: ToolAnswer, revision: Revision): Wire {
  const isNewer = since(revision, '2025-06-18')
  const links = isNewer ? resources.map(linkToWire) : []
  return {
    content: [
      { type: 'text', text: text.toWellFormed() },
      ...blocks.map((block) => blockToWire(block, revision)),
      ...links,
    ],
    ...(structured !== undefined && isNewer ? { structuredContent: structured } : {}),
  }
}

function linkToWire({ uri, name, description, mimeType }: ToolLink): Wire {
  return {
    type: 'resource_link',
    uri,
    name,
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
  }
}

/** Sounds are content since 2025-03-26; before, they are resources like all else. */
function blockToWire(block: ToolBlock, revision: Revision): Wire {
  if (block.type === 'embedded') return embeddedToWire(block.resource, revision)
  if (block.type === 'link')
    return since(revision, '2025-06-18')
      ? { type: 'resource_link', ...resourceToWire(block.resource, revision) }
      : { type: 'text', text: block.resource.uri }
  if (block.type === 'resource') {
    const { uri, mimeType, blob } = block
    return { type: 'resource', resource: { uri, mimeType, blob } }
  }
  if (block.type === 'audio' && !since(revision, '2025-03-26'))
    return { type: 'text', text: `(A sound: ${block.mimeType}.)` }
  return { type: block.type, data: block.data, mimeType: block.mimeType }
}
