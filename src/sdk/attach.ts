import { invalid } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Tool } from '../core/tool.ts'
import type { View } from '../core/view.ts'
import { type Asking, type Audit, attachedTo, localPrincipal } from '../server/attached.ts'
import { mergeHandlers } from './merge.ts'
import { type AttachableServer, openServer, type SdkContext, type SdkHandler } from './sdk-server.ts'

/**
 * One view for all callers, or a function from the `authInfo` of the SDK (undefined over stdio) to the view of that caller.
 * The function must return the same view for the same caller.
 */
export type AttachSource = View | ((authInfo: unknown) => View)

export interface AttachOptions {
  /**
   * The tools `list_resources`, `browse_directory`, `read_resource` and `search_resources` for hosts that have no resources, and those of the mounts, beside those
   * of the server. By default none.
   */
  readonly tools?: boolean | readonly Tool[]
  /**
   * Whether clients may subscribe. By default with version 1 of the SDK only: in version 2, a server behind `createMcpHandler` or
   * `serveStdio` does not hear what a client of 2026-07-28 listens to. Set it where the server is connected by `connect`.
   */
  readonly subscriptions?: boolean
  /** How long a request may take, in milliseconds. By default 120,000. */
  readonly timeoutMs?: number
  /** The caller, for tools and the audit. */
  readonly principal?: Principal
  readonly scrubber?: Scrubber
  readonly audit?: Audit
  /** By default nothing is logged. */
  readonly log?: Log
}

export interface Attached {
  /** Cancels what is in flight, and tells of no more changes. The server goes on without the resources. */
  close(): Promise<void>
}

/**
 * Makes the resources of a view, its templates, completion and changes a part of a server that is made with the official SDK, beside
 * the resources and tools that it has. To be called before the server is connected; it may register more of its own behind it.
 *
 * @throws ResourceError `invalid` for what is no server of the SDK, or one that is connected already.
 */
export function attach(given: AttachableServer, source: AttachSource, options: AttachOptions = {}): Attached {
  const { tools = false, log = () => {}, principal = localPrincipal } = options
  if (typeof source !== 'function' && typeof source?.read !== 'function')
    throw invalid('attach needs a view, or a function that gives one.', 'attach')
  const opened = openServer(given, tools !== false)
  const { server, handlers } = opened
  const live = options.subscriptions ?? !opened.isVersion2
  server.registerCapabilities({
    resources: live ? { subscribe: true, listChanged: true } : {},
    completions: {},
    ...(tools === false ? {} : { tools: {} }),
  })

  const askings = new Map<View, Asking>()
  const asking = (context: SdkContext): Asking => {
    const view = typeof source === 'function' ? source(context.authInfo ?? context.http?.authInfo) : source
    const known = askings.get(view)
    if (known !== undefined) return known
    // Unused ones end with the server at the latest.
    const made = attachedTo(view, {
      ...options,
      tools,
      principal,
      log,
      revision: opened.revision,
      ...(live ? { tell: (notification) => server.notification(notification) } : {}),
    })
    askings.set(view, made)
    return made
  }
  const ask =
    (method: string): SdkHandler =>
    ({ params }, context) =>
      asking(context).ask(method, params, context.signal ?? context.mcpReq?.signal)

  const before = new Map(handlers)
  const merged = mergeHandlers({ before, ask, live, tools: tools !== false })
  for (const [method, handler] of merged) handlers.set(method, handler)

  const close = async () => {
    for (const [method, handler] of merged) {
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
    // One view for all is listened to from the beginning; others when their callers first ask.
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
