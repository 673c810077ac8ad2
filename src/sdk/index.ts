/** Adds resources to a server of the official SDK. This module imports nothing of the SDK. */
import { invalid } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Tool } from '../core/tool.ts'
import type { View } from '../core/view.ts'
import { type Audit, createMethodResponder, localPrincipal, type MethodResponder } from '../server/attached.ts'
import { ProtocolError } from '../server/messages/messages.ts'

/**
 * One view, or a function from the `authInfo` of the SDK (undefined over stdio) to the view of a caller. The function
 * must return the same view for the same caller.
 */
export type AttachSource = View | ((authInfo: unknown) => View)

export interface AttachOptions {
  /**
   * Tools in addition to those of the server. `true`: those that read resources, such as `read_resource`, for hosts
   * without resources; an array: its tools. Both also add the tools of the mounts. Default: none.
   */
  readonly tools?: boolean | readonly Tool[]
  /**
   * Whether clients may subscribe. Default: only with version 1 of the SDK. In version 2, a server behind
   * `createMcpHandler` or `serveStdio` does not learn what a client of 2026-07-28 listens to. Set it if the server is
   * connected by `connect`.
   */
  readonly subscriptions?: boolean
  /** Time-out of a request. Default 120,000. */
  readonly timeoutMs?: number
  /** The principal of the calls, for tools and the audit. Default: the principal of local use. */
  readonly principal?: Principal
  readonly scrubber?: Scrubber
  readonly audit?: Audit
  /** By default nothing is logged. */
  readonly log?: Log
}

export interface Attached {
  /** Cancels the requests in flight, and ends notifications of changes. The server continues without the resources. */
  close(): Promise<void>
}

/**
 * Adds the resources of a view, with templates, completion and changes, to a server of the official SDK, which keeps
 * its own resources. Call it before the server is connected.
 * @throws ResourceError `invalid` for an object that is not a server of the SDK, or one that is already connected
 */
export function attach(
  attachableServer: AttachableServer,
  source: AttachSource,
  options: AttachOptions = {},
): Attached {
  const { tools = false, log = () => {}, principal = localPrincipal } = options
  if (typeof source !== 'function' && typeof source?.read !== 'function')
    throw invalid('attach needs a view, or a function that returns one.', 'configuration')
  const sdkServer = openServer(attachableServer, tools !== false)
  const { server, handlers } = sdkServer
  const live = options.subscriptions ?? !sdkServer.isVersion2
  server.registerCapabilities({
    resources: live ? { subscribe: true, listChanged: true } : {},
    completions: {},
    ...(tools === false ? {} : { tools: {} }),
  })

  const askings = new Map<View, MethodResponder>()
  const asking = (context: SdkContext): MethodResponder => {
    const view = typeof source === 'function' ? source(context.authInfo ?? context.http?.authInfo) : source
    const cachedResponder = askings.get(view)
    if (cachedResponder !== undefined) return cachedResponder
    // A caller whose view is no longer used is closed with the server at the latest.
    const responder = createMethodResponder(view, {
      ...options,
      tools,
      principal,
      log,
      revision: sdkServer.revision,
      ...(live ? { tell: (notification) => server.notification(notification) } : {}),
    })
    askings.set(view, responder)
    return responder
  }
  const ask =
    (method: string): SdkHandler =>
    ({ params }, context) =>
      asking(context).ask(method, params, context.signal ?? context.mcpReq?.signal)

  const before = new Map(handlers)
  const sdkHandlers = mergeHandlers((method) => before.get(method), ask, live, tools !== false)
  for (const [method, handler] of sdkHandlers) handlers.set(method, handler)

  const close = async () => {
    for (const [method, handler] of sdkHandlers) {
      if (handlers.get(method) !== handler) continue
      const former = before.get(method)
      if (former === undefined) handlers.delete(method)
      else handlers.set(method, former)
    }
    await Promise.all([...askings.values()].map((one) => one.close()))
    askings.clear()
  }
  const { oninitialized, onclose } = server
  server.oninitialized = () => {
    // A single view is listened to from the beginning; another one from the first request of its caller.
    if (live && typeof source !== 'function') asking({})
    oninitialized?.()
  }
  server.onclose = () => {
    void Promise.all([...askings.values()].map((one) => one.close()))
    askings.clear()
    onclose?.()
  }
  return { close }
}

/**
 * @param own Returns the handler that the server had for a method.
 * @param ask Returns the handler of the view for a method.
 */
function mergeHandlers(
  own: (method: string) => SdkHandler | undefined,
  ask: (method: string) => SdkHandler,
  live: boolean,
  tools: boolean,
): ReadonlyMap<string, SdkHandler> {
  const handlers: [string, SdkHandler][] = [
    ['resources/list', lists(own('resources/list'), ask('resources/list'), 'resources')],
    [
      'resources/templates/list',
      lists(own('resources/templates/list'), ask('resources/templates/list'), 'resourceTemplates'),
    ],
    ['resources/read', askViewFirst(ask('resources/read'), own('resources/read'))],
    ['resources/directory/read', askViewFirst(ask('resources/directory/read'), own('resources/directory/read'))],
    ['completion/complete', completes(ask('completion/complete'), own('completion/complete'))],
  ]
  if (live)
    for (const method of ['resources/subscribe', 'resources/unsubscribe'])
      handlers.push([method, askViewFirst(ask(method), own(method))])
  if (tools)
    handlers.push(
      ['tools/list', lists(own('tools/list'), ask('tools/list'), 'tools', true)],
      ['tools/call', calls(own('tools/call'), ask('tools/call'), own('tools/list'))],
    )
  return new Map(handlers)
}

const marks = { own: 'own:', view: 'view:' } as const

/**
 * Lists the pages of the server, and after its last one those of the view.
 * @param hides Whether an item of the server hides the item of the view with the same name.
 */
function lists(own: SdkHandler | undefined, ofView: SdkHandler, key: string, hides = false): SdkHandler {
  const pageOf = async (handler: SdkHandler, request: SdkRequest, context: SdkContext, cursor: string | undefined) => {
    const { cursor: _, ...params } = request.params ?? {}
    return handler({ ...request, params: cursor === undefined ? params : { ...params, cursor } }, context)
  }
  const withMark = ({ nextCursor, ...page }: SdkResult, mark: string): SdkResult =>
    typeof nextCursor === 'string' ? { ...page, nextCursor: `${mark}${nextCursor}` } : page

  return async (request, context) => {
    const cursor = request.params?.cursor
    if (typeof cursor === 'string' && cursor.startsWith(marks.view))
      return withMark(await pageOf(ofView, request, context, cursor.slice(marks.view.length)), marks.view)
    if (cursor !== undefined && !(typeof cursor === 'string' && cursor.startsWith(marks.own)))
      throw new ProtocolError(-32602, 'The cursor does not belong to this list. Begin again without it.')
    if (own === undefined) return withMark(await pageOf(ofView, request, context, undefined), marks.view)
    const ownCursor = cursor === undefined ? undefined : cursor.slice(marks.own.length)
    const page = await pageOf(own, request, context, ownCursor)
    if (typeof page.nextCursor === 'string') return withMark(page, marks.own)
    const more = withMark(await pageOf(ofView, request, context, undefined), marks.view)
    const items = itemsOf(page, key)
    const names = new Set(hides ? items.map(itemName) : [])
    const rest = itemsOf(more, key).filter((item) => !names.has(itemName(item)))
    return { ...page, ...more, [key]: [...items, ...rest] }
  }
}

const itemsOf = (page: SdkResult, key: string): readonly unknown[] => (Array.isArray(page[key]) ? page[key] : [])
const itemName = (item: unknown): unknown =>
  typeof item === 'object' && item !== null ? Reflect.get(item, 'name') : undefined

/** Whether an error may mean that a view does not know the requested item. */
function isUnknown(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && (error.code === -32602 || error.code === -32002)
}

/** If neither knows the item, the answer is that of the server. */
function askViewFirst(ofView: SdkHandler, own: SdkHandler | undefined): SdkHandler {
  return async (request, context) => {
    try {
      return await ofView(request, context)
    } catch (error) {
      if (own === undefined || !isUnknown(error)) throw error
      return own(request, context)
    }
  }
}

/** An argument of a prompt is completed by the server. */
function completes(ofView: SdkHandler, own: SdkHandler | undefined): SdkHandler {
  const either = askViewFirst(ofView, own)
  return (request, context) => {
    const ref = request.params?.ref
    const isPrompt = typeof ref === 'object' && ref !== null && Reflect.get(ref, 'type') === 'ref/prompt'
    return isPrompt && own !== undefined ? own(request, context) : either(request, context)
  }
}

/** A tool of the server hides a tool of the view with the same name. */
function calls(own: SdkHandler | undefined, ofView: SdkHandler, list: SdkHandler | undefined): SdkHandler {
  return async (request, context) => {
    if (own === undefined) return ofView(request, context)
    const ofServer = list === undefined ? {} : await list({ method: 'tools/list', params: {} }, context)
    const isOwn = itemsOf(ofServer, 'tools').some((tool) => itemName(tool) === request.params?.name)
    if (isOwn) return own(request, context)
    try {
      return await ofView(request, context)
    } catch (error) {
      if (!isUnknown(error) || error.data?.reason !== 'unknown-name') throw error
      return own(request, context)
    }
  }
}

/** The members of the class `Server` of the official SDK that this module uses, in versions 1.20 and later, and 2. */
export interface SdkServer {
  registerCapabilities(capabilities: Record<string, object>): void
  notification(notification: { method: string; params?: Record<string, unknown> }): Promise<void>
  oninitialized?: (() => void) | undefined
  onclose?: (() => void) | undefined
}

/** A `Server` of the official SDK, or a `McpServer`, which has one. */
export type AttachableServer = SdkServer | { readonly server: SdkServer }

interface SdkRequest {
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>> | undefined
}

interface SdkContext {
  readonly signal?: AbortSignal
  readonly authInfo?: unknown
  readonly mcpReq?: { readonly signal?: AbortSignal; readonly envelope?: unknown }
  readonly http?: { readonly authInfo?: unknown } | undefined
}

type SdkResult = Record<string, unknown>
type SdkHandler = (request: SdkRequest, context: SdkContext) => Promise<SdkResult> | SdkResult

/**
 * Returns a server with its table of handlers. The SDK offers no access to existing handlers, so this reads an internal
 * member; tests check it with versions 1 and 2.
 * @throws ResourceError `invalid` for an object that is not a server of the SDK, or one that is already connected
 */
function openServer(attachableServer: AttachableServer, tools: boolean) {
  const server = 'server' in attachableServer ? attachableServer.server : attachableServer
  const handlers: unknown = Reflect.get(server, '_requestHandlers')
  if (!(handlers instanceof Map))
    throw invalid(
      'attach needs a Server or a McpServer of @modelcontextprotocol/sdk (1.20 and later) or @modelcontextprotocol/server (2).',
      'configuration',
    )
  if (Reflect.get(server, 'transport') !== undefined)
    throw invalid('The server is connected already. Call attach before connect.', 'configuration')
  // A McpServer sets its handlers with its first resource or tool, and refuses to when others exist, so it must set
  // them now.
  if ('server' in attachableServer)
    for (const name of [
      'setResourceRequestHandlers',
      'setCompletionRequestHandler',
      ...(tools ? ['setToolRequestHandlers'] : []),
    ]) {
      const prepare: unknown = Reflect.get(attachableServer, name)
      if (typeof prepare === 'function') Reflect.apply(prepare, attachableServer, [])
    }
  const negotiated: unknown = Reflect.get(server, 'getNegotiatedProtocolVersion')
  return {
    server,
    /** The current handlers by method, at first those that the application has set. */
    handlers: handlers as Map<string, SdkHandler>,
    isVersion2: typeof negotiated === 'function',
    /** Returns the negotiated revision, if the SDK reports it (version 2). */
    revision: () => {
      const negotiatedRevision: unknown =
        typeof negotiated === 'function' ? Reflect.apply(negotiated, server, []) : undefined
      return typeof negotiatedRevision === 'string' ? negotiatedRevision : undefined
    },
  }
}
