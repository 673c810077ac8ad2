import { signal } from '@preact/signals'
import {
  cacheHintOf,
  contentsOf,
  cursorOf,
  resourcesOf,
  templatePageOf,
  type WireObject,
} from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'
import { iteratePages } from '../../../core/kit/groups.ts'
import { defined, isObject } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import { directoryMimeType, type Resource, type View } from '../../../core/view.ts'
import type { PageChange, PageSubscriptions } from '../mcp/changes.ts'
import { type PageConnection, structuredContentOf } from '../mcp/connect.ts'
import { bytesOfBase64, errorOf } from '../mcp/request.ts'
import { announce, errorSentence } from '../state/announce.ts'
import { fileNameOf } from '../state/session.ts'

/** The tools that the page expects: a host does not list the tools of a server. */
const tools = ['list_resources', 'browse_directory', 'read_resource', 'search_resources', 'assemble_context']

/** Number of entries per request: the maximum of the tools. */
const limit = 200
/** Number of tokens per call of `read_resource`: the maximum of the tool. Used for hosts that do not forward `resources/read`. */
const maxTokens = 100_000

export async function connectThroughHost(): Promise<PageConnection> {
  await meetHost()
  return {
    server: { name: 'hikidashi' },
    url: '',
    isPrivate: true,
    asksToken: () => false,
    view: createHostView(),
    changes: createHostChanges(),
    tools: new Set(tools),
    call,
  }
}

async function call(name: string, args: WireObject, signal?: AbortSignal): Promise<WireObject> {
  return structuredContentOf(await requestHost('tools/call', { name, arguments: args }, signal))
}

function createHostView(): View {
  const page = async (name: string, args: WireObject, member: string, signal: AbortSignal | undefined) => {
    const structured = await call(name, { limit, ...args }, signal)
    const nextCursor = cursorOf(structured)
    const entries = Array.isArray(structured[member]) ? structured[member] : []
    return { items: resourcesOf(entries.map(withType)), cache: cacheHintOf({}), ...defined({ nextCursor }) }
  }
  const all = async (signal: AbortSignal | undefined): Promise<readonly Resource[]> => {
    const items: Resource[] = []
    for await (const next of iteratePages((query) => page('browse_directory', query, 'entries', signal)))
      items.push(...next.items)
    return items
  }
  return {
    mounts: (options) => all(options?.signal),
    directory: ({ uri, cursor }, options) =>
      page('browse_directory', { uri, ...defined({ cursor }) }, 'entries', options?.signal),
    list: (query, options) =>
      page('list_resources', { ...defined({ cursor: query?.cursor }) }, 'resources', options?.signal),
    templates: async (_query, options) => {
      const structured = await call('list_resources', { limit: 1 }, options?.signal)
      return templatePageOf({ resourceTemplates: Array.isArray(structured.templates) ? structured.templates : [] })
    },
    read: async (uri, options) => {
      const answer = isObject(hostCapabilities.value.serverResources)
        ? await requestHost('resources/read', { uri }, options?.signal)
        : await readByTool(uri, options?.signal)
      return { contents: contentsOf(answer, uri, bytesOfBase64), cache: cacheHintOf(answer) }
    },
    complete: async () => ({ values: [] }),
  }
}

/** Reads with the tool `read_resource`, for hosts that do not forward `resources/read`. */
async function readByTool(uri: string, signal: AbortSignal | undefined): Promise<WireObject> {
  // The tool takes the range of lines or bytes as a separate argument.
  const [, whole = uri, unit, range] = /^([^?]*)\?(lines|bytes)=([\d-]+)$/.exec(uri) ?? []
  const firstByte = unit === 'bytes' && range !== undefined ? Number.parseInt(range, 10) : undefined
  const args = { uri: whole, max_tokens: maxTokens, ...(unit === undefined ? {} : { [unit]: range }) }
  const answer = await requestHost('tools/call', { name: 'read_resource', arguments: args }, signal)
  const blocks: readonly unknown[] = Array.isArray(answer.content) ? answer.content : []
  const [first] = blocks.filter(isObject)
  if (answer.isError === true)
    throw new ResourceError(
      'invalid',
      typeof first?.text === 'string' ? first.text : 'The tool failed without a message.',
    )
  const { contents } = isObject(answer.structuredContent) ? answer.structuredContent : {}
  const blobs = blocks.filter(isObject).flatMap(({ data, resource }) => {
    if (typeof data === 'string') return [data]
    return isObject(resource) && typeof resource.blob === 'string' ? [resource.blob] : []
  })
  const items: readonly unknown[] = Array.isArray(contents) ? contents : []
  return {
    contents: items.filter(isObject).map((content) => {
      if (typeof content.text === 'string') return { ...content, ...partIn(content, firstByte) }
      return { ...content, blob: blobs.shift() ?? '' }
    }),
  }
}

/**
 * Converts the range in an answer of the tool to the `_meta` of `resources/read`. `{}`: the content is whole.
 *
 * @param firstByte The first byte of the requested range. `undefined`: the request was not by bytes.
 */
function partIn({ text, firstLine, lastLine, next }: WireObject, firstByte: number | undefined): WireObject {
  if (typeof text !== 'string') return {}
  if (firstByte !== undefined) {
    const last = firstByte + new TextEncoder().encode(text).length - 1
    return { _meta: { [metaKeys.part]: { unit: 'bytes', first: firstByte, last, next } } }
  }
  const isPart = typeof next === 'string' || (typeof firstLine === 'number' && firstLine > 1)
  return isPart ? { _meta: { [metaKeys.part]: { unit: 'lines', first: firstLine, last: lastLine, next } } } : {}
}

/** Converts an entry in an answer of a tool to a resource of `resources/list`. */
function withType(entry: unknown): unknown {
  if (!isObject(entry)) return entry
  const { type, lastModified, ...facts } = entry
  return {
    ...facts,
    ...(type === 'directory' ? { mimeType: directoryMimeType } : {}),
    ...(typeof lastModified === 'string' ? { annotations: { lastModified } } : {}),
  }
}

/** Reports that entries were added or removed. The host forwards no notifications of changed contents. */
function createHostChanges(): PageSubscriptions {
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

/** Facts about the host around the page (MCP Apps, `HostContext`) that the page uses. */
export const hostContext = signal<WireObject>({})

/** Capabilities of the host, from its answer to `ui/initialize`. */
export const hostCapabilities = signal<WireObject>({})

/** Arguments of the call of `browse` that opened the page. */
export const toolInput = signal<WireObject>({})

/** Listeners that are called when the host reports added or removed entries. */
const listeners = new Set<(change: PageChange) => void>()

/** The revision of MCP Apps that the page speaks. */
const revision = '2026-01-26'

const waiting = new Map<number, (message: WireObject) => void>()
let lastId = 0

/** Sends a message to the window around the page. The page cannot know the origin of the host, so it allows any (`*`). */
function post(message: WireObject): void {
  window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')
}

/**
 * Sends one request to the host, and returns its answer.
 *
 * @throws ResourceError with the error of the host or the server. After an abort, the reason of the signal.
 */
export function requestHost(method: string, params: WireObject, signal?: AbortSignal): Promise<WireObject> {
  const id = ++lastId
  return new Promise((resolve, reject) => {
    const end = () => {
      waiting.delete(id)
      post({ method: 'notifications/cancelled', params: { requestId: id } })
      reject(signal?.reason)
    }
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    signal?.addEventListener('abort', end, { once: true })
    waiting.set(id, ({ result, error }) => {
      signal?.removeEventListener('abort', end)
      if (isObject(result)) resolve(result)
      else if (isObject(error)) reject(errorOf(error.code, error.message, error.data))
      else reject(new ResourceError('unavailable', 'The host sent an answer without a result. Try again.'))
    })
    post({ id, method, params })
  })
}

/** Sends a notification, which has no answer. */
export function notifyHost(method: string, params: WireObject): void {
  post({ method, params })
}

/** Starts to receive messages of the host, and does the handshake of MCP Apps (`ui/initialize`). */
async function meetHost(): Promise<void> {
  addEventListener('message', (event) => {
    // Messages of any window other than the parent are ignored.
    if (event.source === window.parent && isObject(event.data)) hear(event.data)
  })
  const answer = await requestHost('ui/initialize', {
    appInfo: { name: 'hikidashi-explorer', version: '1' },
    appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
    protocolVersion: revision,
  })
  if (isObject(answer.hostContext)) hostContext.value = answer.hostContext
  if (isObject(answer.hostCapabilities)) hostCapabilities.value = answer.hostCapabilities
  notifyHost('ui/notifications/initialized', {})
}

function hear(message: WireObject): void {
  const { id, method, params } = message
  if (typeof method !== 'string') {
    const settle = typeof id === 'number' ? waiting.get(id) : undefined
    if (typeof id === 'number') waiting.delete(id)
    settle?.(message)
    return
  }
  const members = isObject(params) ? params : {}
  if (method === 'ui/notifications/host-context-changed') hostContext.value = { ...hostContext.value, ...members }
  if (method === 'ui/notifications/tool-input' && isObject(members.arguments)) toolInput.value = members.arguments
  if (method === 'notifications/resources/list_changed')
    for (const one of [...listeners]) one({ uris: [], listed: true })
  if (id === undefined) return
  const isKnown = method === 'ping' || method === 'ui/resource-teardown'
  post(isKnown ? { id, result: {} } : { id, error: { code: -32601, message: 'Method not found' } })
}

/** In a host, the page stores nothing in the browser. */
export const readStoredText: typeof import('../state/browser.ts').readStoredText = () => null

export const storeText: typeof import('../state/browser.ts').storeText = () => {}

/** In a host, the page keeps its history in memory. */
const steps: string[] = ['#view=tree']
let listener: (fragment: string) => void = () => {}

export const pushStep: typeof import('../state/browser.ts').pushStep = (fragment) => {
  steps.push(fragment)
  if (steps.length > maxSteps) steps.shift()
}

export const replaceStep: typeof import('../state/browser.ts').replaceStep = (fragment) => {
  steps[steps.length - 1] = fragment
}

export const stepBack: typeof import('../state/browser.ts').stepBack = () => {
  if (steps.length > 1) steps.pop()
  listener(steps.at(-1) ?? '')
}

export const followSteps: typeof import('../state/browser.ts').followSteps = (follow) => {
  listener = follow
  follow(steps.at(-1) ?? '')
}

export function stepTo(fragment: string): void {
  pushStep(fragment)
  listener(fragment)
}

const maxSteps = 200

/** In a host, images are `data:` URLs, because the policy of the host allows no others. */
export const createUrl: typeof import('../state/browser.ts').createUrl = (content, type) => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return `data:${type};base64,${base64Of(bytes)}`
}

export const releaseUrl: typeof import('../state/browser.ts').releaseUrl = () => {}

/** Number of bytes per call of `String.fromCharCode`, because engines limit the number of arguments. */
const chunkBytes = 8192

function base64Of(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + chunkBytes)))
  return btoa(parts.join(''))
}

/** In a host, the page saves files through the host, if the host supports downloads. */
export const canDownload: typeof import('../state/browser.ts').canDownload = () =>
  isObject(hostCapabilities.value.downloadFile)

export const download: typeof import('../state/browser.ts').download = (name, content) => {
  const facts = { uri: `file:///${encodeURIComponent(fileNameOf(name))}`, mimeType: 'application/octet-stream' }
  const body = typeof content === 'string' ? { text: content } : { blob: base64Of(content) }
  const contents = [{ type: 'resource', resource: { ...facts, ...body } }]
  requestHost('ui/download-file', { contents }).catch((error: unknown) => announce(errorSentence(error)))
}

export const downloadFrom: typeof import('../state/browser.ts').downloadFrom = () => {}
