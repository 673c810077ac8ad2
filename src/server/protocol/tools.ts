import { foreignCursorError, invalid, isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { Tool, ToolAnswer, ToolBlock, ToolLink } from '../../core/tool.ts'
import type { ListedTools } from '../../core/view.ts'
import {
  errorToWire,
  isAtLeast,
  isObject,
  optionalString,
  ProtocolError,
  type Revision,
  requiredString,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { ClientName } from './envelope.ts'
import type { Method, MethodCall } from './method.ts'
import { embeddedToWire, loadableIcons, readToWire, resourceToWire, unavailableMountFields } from './wire.ts'

export interface Toolbox {
  readonly principal: Principal
  /**
   * @param client The client's declared name.
   * @param soon Whether tools of sources that have not answered yet are left out after a short time.
   */
  tools(client: ClientName | undefined, signal: AbortSignal, soon?: boolean): Promise<ListedTools>
}

type Wire = Record<string, unknown>

/** Names that no tool of another server gets. */
export const ownToolNames: readonly string[] = [
  ...['list_resources', 'browse_directory', 'read_resource', 'search_in_resource', 'search_resources'],
  ...['browse', 'assemble_context', 'what_changed', 'save_analysis'],
]

/** Returns the methods for tools. A principal without tools always gets the answer of a server without tools. */
export function toolMethods(toolbox: Toolbox | undefined, log: Log): Readonly<Record<string, Method>> {
  const list: Method = async ({ params, revision, client, signal }) => {
    if (optionalString(params, 'cursor') !== undefined) throw foreignCursorError()
    const { tools = [], ...page } = (await toolbox?.tools(client, signal, true)) ?? {}
    return { tools: tools.map((tool) => toolToWire(tool, revision)), ...unavailableMountFields(page) }
  }
  if (toolbox === undefined) return { 'tools/list': list }
  const call: Method = async ({ params, revision, signal, client, headersFault, report }) => {
    const { tools } = await toolbox.tools(client, signal)
    if (tools.length === 0) throw new ProtocolError(wireErrorCodes.methodNotFound, 'Method not found')
    const called = requiredString(params, 'name')
    if (!isObject(params.arguments ?? {})) throw invalid('The arguments of the tool are not an object.', 'params')
    const tool = tools.find(({ name }) => name === called)
    if (tool === undefined) throw invalid('There is no such tool.', 'unknown-name')
    const args = isObject(params.arguments) ? params.arguments : {}
    const fault = headersFault?.(tool.inputSchema, args)
    if (fault !== undefined) throw new ProtocolError(fault.code, fault.message)
    try {
      return answerToWire(await tool.call(args, { principal: toolbox.principal, signal }, report), revision)
    } catch (error) {
      // The model sees the error, so that it can correct its call. An internal error becomes a fixed answer, as everywhere.
      if (!isResourceError(error) || error.kind === 'internal') throw error
      // A failure after a cancellation is not logged.
      const { message } = errorToWire(error, revision, undefined, signal.aborted ? () => {} : log)
      return { content: [{ type: 'text', text: message }], isError: true }
    }
  }
  return { 'tools/list': list, 'tools/call': call }
}

const appMimeType = 'text/html;profile=mcp-app'

/** Facts of every app: no origin is reached, and the host draws the border. */
const appFacts = {
  ui: { csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] }, prefersBorder: true },
}

/** Returns the app that a URI names, for a client with the tool. */
export async function appAt(
  uri: string,
  toolbox: Toolbox | undefined,
  { client, signal }: MethodCall,
): Promise<Tool['app']> {
  if (!uri.startsWith('ui://')) return undefined
  return (await toolbox?.tools(client, signal))?.tools.find((tool) => tool.app?.uri === uri)?.app
}

/** Returns the method for reads, with the apps of the tools. */
export function withApps(readMethod: Method, toolbox: Toolbox | undefined): Method {
  if (toolbox === undefined) return readMethod
  const readApp = async (uri: string, call: MethodCall): Promise<Wire> => {
    const { revision, pass } = call
    const app = await appAt(uri, toolbox, call)
    if (app === undefined) return readMethod(call)
    const content = { uri, mimeType: appMimeType, text: await app.html(), meta: appFacts }
    return readToWire({ contents: [content], cache: { ttlMs: 0, scope: 'private' } }, revision, pass.turn)
  }
  return (call) => {
    const { uri } = call.params
    return typeof uri === 'string' && uri.startsWith('ui://') ? readApp(uri, call) : readMethod(call)
  }
}

function toolToWire(tool: Tool, revision: Revision): Wire {
  const { name, title, description, inputSchema, outputSchema, annotations = {}, icons = [], app } = tool
  const { readOnly, destructive, idempotent, openWorld } = annotations
  const hints = defined({
    title,
    readOnlyHint: readOnly,
    destructiveHint: destructive,
    idempotentHint: idempotent,
    openWorldHint: openWorld,
  })
  const isNewer = isAtLeast(revision, '2025-06-18')
  const meta = { ...tool.meta, ...(app === undefined ? {} : { ui: { resourceUri: app.uri } }) }
  return {
    name,
    ...(title !== undefined && isNewer ? { title } : {}),
    description,
    inputSchema,
    ...(outputSchema !== undefined && isNewer ? { outputSchema } : {}),
    ...(isAtLeast(revision, '2025-03-26') ? { annotations: hints } : {}),
    ...(icons.length > 0 && isAtLeast(revision, '2025-11-25') ? { icons: loadableIcons(icons) } : {}),
    ...(Object.keys(meta).length > 0 && isNewer ? { _meta: meta } : {}),
  }
}

function answerToWire({ text, structured, resources = [], blocks = [], failed }: ToolAnswer, revision: Revision): Wire {
  const isNewer = isAtLeast(revision, '2025-06-18')
  const links = isNewer ? resources.map(linkToWire) : []
  return {
    content: [
      ...(text === '' && blocks.length > 0 ? [] : [{ type: 'text', text: text.toWellFormed() }]),
      ...blocks.map((block) => blockToWire(block, revision)),
      ...links,
    ],
    ...(structured !== undefined && isNewer ? { structuredContent: structured } : {}),
    ...(failed === true ? { isError: true } : {}),
  }
}

function linkToWire({ uri, name, description, mimeType }: ToolLink): Wire {
  return {
    type: 'resource_link',
    uri,
    name,
    ...defined({ description, mimeType }),
  }
}

/** Converts a block of an answer. A text replaces a sound before 2025-03-26, and a link before 2025-06-18. */
function blockToWire(block: ToolBlock, revision: Revision): Wire {
  if (block.type === 'text') return { type: 'text', text: block.text.toWellFormed() }
  if (block.type === 'embedded') return embeddedToWire(block.resource, revision)
  if (block.type === 'link')
    return isAtLeast(revision, '2025-06-18')
      ? { type: 'resource_link', ...resourceToWire(block.resource, revision) }
      : { type: 'text', text: block.resource.uri }
  if (block.type === 'resource') {
    const { uri, mimeType, blob } = block
    return { type: 'resource', resource: { uri, mimeType, blob } }
  }
  if (block.type === 'audio' && !isAtLeast(revision, '2025-03-26'))
    return { type: 'text', text: `(A sound: ${block.mimeType}.)` }
  return { type: block.type, data: block.data, mimeType: block.mimeType }
}
