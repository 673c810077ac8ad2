import { createRequests } from '../../../client/requests.ts'
import type { WireObject } from '../../../client/wire.ts'
import { fallbackTo, ResourceError } from '../../../core/errors.ts'
import { defined, objectOf } from '../../../core/kit/object.ts'
import type { PromptView, View } from '../../../core/view.ts'
import { type ChangesState, createPageSubscriptions, type PageSubscriptions } from './changes.ts'
import { bytesOfBase64, type Endpoint, request } from './request.ts'

export interface PageConnection {
  readonly server: { readonly name: string; readonly title?: string; readonly version?: string }
  readonly url: string
  /** Whether the page has its own session (`hikidashi ui`), so that no host can use the URL. */
  readonly isPrivate: boolean
  asksToken(): boolean
  readonly view: View
  /** Changes on the server, over one stream for the whole page. Undefined if the server has no subscriptions. */
  readonly changes?: PageSubscriptions
  readonly tools: ReadonlySet<string>
  /** Calls a tool, and returns its structured content. Throws if the tool fails. `onProgress` is called with the progress of a long call. */
  call(
    name: string,
    args: WireObject,
    signal?: AbortSignal,
    onProgress?: (progress: WireObject) => void,
  ): Promise<WireObject>
}

export interface ConnectOptions {
  onChanges?(state: ChangesState): void
}

/** Asks a hikidashi server for its description, and returns the server as a view. */
export async function connectToServer(endpoint: Endpoint, { onChanges }: ConnectOptions = {}): Promise<PageConnection> {
  const [discovered, listed] = await Promise.all([
    request(endpoint, 'server/discover', {}),
    request(endpoint, 'tools/list', {}).catch(fallbackTo<WireObject>({}, 'invalid')),
  ])
  const { resources, prompts } = objectOf(discovered.capabilities)
  const { subscribe, listChanged } = objectOf(resources)
  const isLive = subscribe === true || listChanged === true || objectOf(prompts).listChanged === true
  const changes = isLive
    ? createPageSubscriptions(endpoint, onChanges === undefined ? {} : { onState: onChanges })
    : undefined
  const tools = Array.isArray(listed.tools) ? listed.tools : []
  return {
    server: serverOf(discovered),
    url: String(endpoint.url),
    isPrivate: endpoint.isPrivate === true,
    asksToken: () => endpoint.token() !== undefined,
    view: createServerView(endpoint, changes, typeof prompts === 'object'),
    ...defined({ changes }),
    tools: new Set(tools.flatMap((tool) => (typeof tool?.name === 'string' ? [tool.name] : []))),
    call: async (name, args, signal, onProgress) =>
      structuredContentOf(await request(endpoint, 'tools/call', { name, arguments: args }, signal, onProgress)),
  }
}

function createServerView(endpoint: Endpoint, changes: PageSubscriptions | undefined, hasPrompts: boolean): View {
  const requests = createRequests(
    (method, params, options) => request(endpoint, method, params, options?.signal),
    bytesOfBase64,
  )
  const prompts: PromptView = {
    list: (query, options) => requests.prompts(query?.cursor, options),
    get: ({ name, arguments: values }, options) => requests.prompt(name, values, options),
    complete: ({ name, ...asked }, options) => requests.complete({ type: 'ref/prompt', name }, asked, options),
  }
  return {
    mounts: async (options) => (await requests.resources(undefined, options)).mounts ?? [],
    list: async (query, options) => (await requests.resources(query?.cursor, options)).page,
    templates: (query, options) => requests.templates(query?.cursor, options),
    directory: ({ uri, cursor }, options) => requests.directory(uri, cursor, options),
    read: requests.read,
    complete: ({ uriTemplate, ...asked }, options) =>
      requests.complete({ type: 'ref/resource', uri: uriTemplate }, asked, options),
    ...(hasPrompts ? { prompts } : {}),
    ...(changes === undefined ? {} : { live: true, subscribe: changes.open }),
  }
}

function serverOf(discovered: WireObject): PageConnection['server'] {
  const meta = objectOf(discovered._meta)['io.modelcontextprotocol/serverInfo']
  const { name, title, version } = objectOf(discovered.serverInfo ?? meta)
  return {
    name: typeof name === 'string' ? name : 'hikidashi',
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof version === 'string' ? { version } : {}),
  }
}

/** Returns the structured content of a tool's answer. @throws ResourceError `invalid`, with the text of the tool, if the tool failed. */
export function structuredContentOf(answer: WireObject): WireObject {
  const blocks = Array.isArray(answer.content) ? answer.content : []
  const text = blocks.flatMap((block) => (typeof block?.text === 'string' ? [block.text] : [])).join('\n')
  if (answer.isError === true)
    throw new ResourceError('invalid', text === '' ? 'The tool failed without a message.' : text)
  return objectOf(answer.structuredContent)
}
