import { filledPromptOf, promptPageOf } from '../../../client/prompts.ts'
import {
  cacheOf,
  completionOf,
  contentsOf,
  cursorOf,
  directoryPageOf,
  malformed,
  mountsOf,
  resourcePageOf,
  templatePageOf,
} from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import { defined } from '../../../core/kit/defined.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../../core/view.ts'
import { type Changes, type ChangesState, createChanges } from './changes.ts'
import { type Endpoint, request } from './request.ts'
import type { Wire } from './sse.ts'

/** A server, as the page sees it. */
export interface Connection {
  readonly server: { readonly name: string; readonly title?: string; readonly version?: string }
  /** The address of MCP. */
  readonly url: string
  /** Whether the page has its own session (`hikidashi ui`). Then no host can use its address. */
  readonly isPrivate: boolean
  /** Whether the server asked for a token. */
  asksToken(): boolean
  readonly view: View
  /** Changes on the server, over one stream for the whole page. Undefined if the server has no subscriptions. */
  readonly changes?: Changes
  /** The names of the tools that it has. */
  readonly tools: ReadonlySet<string>
  /** Calls a tool, and returns its structured content and its text. Throws if the tool fails. */
  call(name: string, args: Wire, signal?: AbortSignal): Promise<ToolAnswer>
}

export interface ToolAnswer {
  readonly structured: Wire
  readonly text: string
}

export interface ConnectOptions {
  onChanges?(state: ChangesState): void
}

/** Asks a hikidashi server for its description, and returns the server as a view. */
export async function connect(endpoint: Endpoint, { onChanges }: ConnectOptions = {}): Promise<Connection> {
  const [discovered, listed] = await Promise.all([
    request(endpoint, 'server/discover', {}),
    request(endpoint, 'tools/list', {}).catch((error: unknown): Wire => {
      // A server without tools does not know the method.
      if (isResourceError(error, 'invalid')) return {}
      throw error
    }),
  ])
  const { resources, prompts } = objectOf(discovered.capabilities)
  const { subscribe, listChanged } = objectOf(resources)
  const isLive = subscribe === true || listChanged === true || objectOf(prompts).listChanged === true
  const changes = isLive ? createChanges(endpoint, onChanges === undefined ? {} : { onState: onChanges }) : undefined
  const tools = Array.isArray(listed.tools) ? listed.tools : []
  return {
    server: serverOf(discovered),
    url: String(endpoint.url),
    isPrivate: endpoint.isPrivate === true,
    asksToken: () => endpoint.token() !== undefined,
    view: createView(endpoint, changes, typeof prompts === 'object'),
    ...defined({ changes }),
    tools: new Set(tools.flatMap((tool) => (typeof tool?.name === 'string' ? [tool.name] : []))),
    call: async (name, args, signal) =>
      answerOf(await request(endpoint, 'tools/call', { name, arguments: args }, signal)),
  }
}

function createView(endpoint: Endpoint, changes: Changes | undefined, hasPrompts: boolean): View {
  const ask = (method: string, params: Wire, signal: AbortSignal | undefined) =>
    request(endpoint, method, params, signal)
  const pageOf = <T>(answer: Wire, page: Omit<Page<T>, 'nextCursor'>): Page<T> => {
    const nextCursor = cursorOf(answer)
    return nextCursor === undefined ? page : { ...page, nextCursor }
  }
  const complete = async (
    ref: Wire,
    argument: Wire,
    given: ReadonlyMap<string, string> | undefined,
    signal?: AbortSignal,
  ) => {
    const context = given === undefined || given.size === 0 ? {} : { context: { arguments: Object.fromEntries(given) } }
    return completionOf(await ask('completion/complete', { ref, argument, ...context }, signal))
  }
  const at = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor })
  return {
    mounts: async (options) => {
      const mounts = mountsOf(await ask('resources/list', {}, options?.signal)) ?? []
      return mounts.map((mount): Resource => ({ ...mount, mimeType: mount.mimeType ?? directoryMimeType }))
    },
    list: async (query, options) => {
      const answer = await ask('resources/list', at(query?.cursor), options?.signal)
      return pageOf(answer, resourcePageOf(answer))
    },
    templates: async (query, options) => {
      const answer = await ask('resources/templates/list', at(query?.cursor), options?.signal)
      return pageOf(answer, templatePageOf(answer))
    },
    directory: async ({ uri, cursor }, options) => {
      const answer = await ask('resources/directory/read', { uri, ...at(cursor) }, options?.signal)
      return pageOf(answer, directoryPageOf(answer))
    },
    read: async (uri, options) => {
      const answer = await ask('resources/read', { uri }, options?.signal)
      return { contents: contentsOf(answer, uri, bytesOfBase64), cache: cacheOf(answer) }
    },
    complete: ({ uriTemplate, argument, arguments: given }, options) =>
      complete({ type: 'ref/resource', uri: uriTemplate }, argument, given, options?.signal),
    ...(hasPrompts
      ? {
          prompts: {
            list: async (query, options) => {
              const answer = await ask('prompts/list', at(query?.cursor), options?.signal)
              return pageOf(answer, promptPageOf(answer))
            },
            get: async ({ name, arguments: given = new Map() }, options) => {
              const params = { name, arguments: Object.fromEntries(given) }
              return filledPromptOf(await ask('prompts/get', params, options?.signal), bytesOfBase64)
            },
            complete: ({ name, argument, arguments: given }, options) =>
              complete({ type: 'ref/prompt', name }, argument, given, options?.signal),
          },
        }
      : {}),
    ...(changes === undefined ? {} : { live: true, subscribe: changes.open }),
  }
}

function serverOf(discovered: Wire): Connection['server'] {
  const meta = objectOf(discovered._meta)['io.modelcontextprotocol/serverInfo']
  const { name, title, version } = objectOf(discovered.serverInfo ?? meta)
  return {
    name: typeof name === 'string' ? name : 'hikidashi',
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof version === 'string' ? { version } : {}),
  }
}

function answerOf(answer: Wire): ToolAnswer {
  const blocks = Array.isArray(answer.content) ? answer.content : []
  const text = blocks.flatMap((block) => (typeof block?.text === 'string' ? [block.text] : [])).join('\n')
  if (answer.isError === true) throw new Error(text === '' ? 'The tool failed.' : text)
  return { structured: objectOf(answer.structuredContent), text }
}

function objectOf(value: unknown): Wire {
  return typeof value === 'object' && value !== null ? (value as Wire) : {}
}

/** @throws ResourceError for text that is not base64. */
function bytesOfBase64(text: string): Uint8Array {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) throw malformed('a blob is not base64')
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}
