import { cacheOf, contentsOf, cursorOf, resourcesOf, templatePageOf, type Wire } from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'
import { defined } from '../../../core/kit/defined.ts'
import { isObject } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../../core/view.ts'
import type { Changes, PageChange } from '../mcp/changes.ts'
import { answerOf, type Connection, type ToolAnswer } from '../mcp/connect.ts'
import { bytesOfBase64 } from '../mcp/request.ts'
import { ask, hostCapabilities, listChanges, meetHost } from './bridge.ts'

/** The tools that a client has together with `browse`. */
const tools = ['list_resources', 'browse_directory', 'read_resource', 'search_resources', 'assemble_context']

/** Number of entries per request: the maximum of the tools. */
const limit = 200
/** Number of tokens of a text per call of the tool, for hosts that pass on no reads: the maximum of the tool. */
const maxTokens = 100_000

/** Connects to the server through the host. The page sends every request to the host, because it has no network access. */
export async function connectThroughHost(): Promise<Connection> {
  await meetHost()
  return {
    server: { name: 'hikidashi' },
    url: '',
    isPrivate: true,
    asksToken: () => false,
    view: createView(),
    changes: createHostChanges(),
    tools: new Set(tools),
    call,
  }
}

async function call(name: string, args: Wire, signal?: AbortSignal): Promise<ToolAnswer> {
  return answerOf(await ask('tools/call', { name, arguments: args }, signal))
}

function createView(): View {
  const page = async (name: string, args: Wire, member: string, signal: AbortSignal | undefined) => {
    const { structured } = await call(name, { limit, ...args }, signal)
    const nextCursor = cursorOf(structured)
    const entries = Array.isArray(structured[member]) ? structured[member] : []
    return { items: resourcesOf(entries.map(withType)), cache: cacheOf({}), ...defined({ nextCursor }) }
  }
  const all = async (signal: AbortSignal | undefined): Promise<readonly Resource[]> => {
    const items: Resource[] = []
    let cursor: string | undefined
    do {
      const next: Page<Resource> = await page('browse_directory', { ...defined({ cursor }) }, 'entries', signal)
      items.push(...next.items)
      cursor = next.nextCursor
    } while (cursor !== undefined)
    return items
  }
  return {
    mounts: (options) => all(options?.signal),
    directory: ({ uri, cursor }, options) =>
      page('browse_directory', { uri, ...defined({ cursor }) }, 'entries', options?.signal),
    list: (query, options) =>
      page('list_resources', { ...defined({ cursor: query?.cursor }) }, 'resources', options?.signal),
    templates: async (_query, options) => {
      const { structured } = await call('list_resources', { limit: 1 }, options?.signal)
      return templatePageOf({ resourceTemplates: Array.isArray(structured.templates) ? structured.templates : [] })
    },
    read: async (uri, options) => {
      const answer = isObject(hostCapabilities.value.serverResources)
        ? await ask('resources/read', { uri }, options?.signal)
        : await readByTool(uri, options?.signal)
      return { contents: contentsOf(answer, uri, bytesOfBase64), cache: cacheOf(answer) }
    },
    complete: async () => ({ values: [] }),
  }
}

/** Reads by the tool, for hosts that pass on no reads. Binary contents are in the content blocks of the answer. */
async function readByTool(uri: string, signal: AbortSignal | undefined): Promise<Wire> {
  // The tool takes the part as separate arguments.
  const [, whole = uri, unit, range] = /^([^?]*)\?(lines|bytes)=([\d-]+)$/.exec(uri) ?? []
  const args = { uri: whole, max_tokens: maxTokens, ...(unit === undefined ? {} : { [unit]: range }) }
  const answer = await ask('tools/call', { name: 'read_resource', arguments: args }, signal)
  const blocks: readonly unknown[] = Array.isArray(answer.content) ? answer.content : []
  const [first] = blocks.filter(isObject)
  if (answer.isError === true)
    throw new ResourceError('invalid', typeof first?.text === 'string' ? first.text : 'The tool failed.')
  const { contents } = isObject(answer.structuredContent) ? answer.structuredContent : {}
  const blobs = blocks.filter(isObject).flatMap(({ data, resource }) => {
    if (typeof data === 'string') return [data]
    return isObject(resource) && typeof resource.blob === 'string' ? [resource.blob] : []
  })
  const shown: readonly unknown[] = Array.isArray(contents) ? contents : []
  return {
    contents: shown.filter(isObject).map((content) => {
      if (typeof content.text === 'string') return { ...content, ...partIn(content) }
      return { ...content, blob: blobs.shift() ?? '' }
    }),
  }
}

/** Converts the part that the tool has answered with to the form of a read. */
function partIn({ firstLine, lastLine, next }: Wire): Wire {
  const isByLines = typeof firstLine === 'number' && typeof lastLine === 'number'
  const isPart = typeof next === 'string' || (isByLines && firstLine > 1)
  const part = isByLines ? { unit: 'lines', first: firstLine, last: lastLine } : { unit: 'bytes', first: 0, last: 0 }
  return isPart ? { _meta: { [metaKeys.part]: { ...part, next } } } : {}
}

/** Converts an entry of a tool to the form of a list of resources. */
function withType(entry: unknown): unknown {
  if (!isObject(entry)) return entry
  const { type, lastModified, ...facts } = entry
  return {
    ...facts,
    ...(type === 'directory' ? { mimeType: directoryMimeType } : {}),
    ...(typeof lastModified === 'string' ? { annotations: { lastModified } } : {}),
  }
}

/** Changes that the host passes on: added and removed entries. The host does not report changed contents. */
function createHostChanges(): Changes {
  const listeners = new Set<(change: PageChange) => void>()
  listChanges.addEventListener('change', () => {
    for (const listener of [...listeners]) listener({ uris: [], listed: true })
  })
  return {
    open: (listener) => {
      listeners.add(listener)
      return {
        uris: [],
        add: async () => [],
        addList: async () => true,
        remove: () => {},
        close: () => void listeners.delete(listener),
      }
    },
    pause: () => {},
    resume: () => {},
    retry: () => {},
    close: () => listeners.clear(),
  }
}
