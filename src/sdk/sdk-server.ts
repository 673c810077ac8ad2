import { invalid } from '../core/errors.ts'

/** The used members of the class `Server` of the official SDK: of 1.20 and later, and of 2. */
export interface SdkServer {
  registerCapabilities(capabilities: Record<string, object>): void
  notification(notification: { method: string; params?: Record<string, unknown> }): Promise<void>
  oninitialized?: (() => void) | undefined
  onclose?: (() => void) | undefined
}

/** A `Server` of the official SDK, or a `McpServer`, which has one. */
export type AttachableServer = SdkServer | { readonly server: SdkServer }

/** A request as the SDK hands it to a handler. */
export interface SdkRequest {
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>> | undefined
}

/** Context that the SDK passes to a handler, in either version. */
export interface SdkContext {
  readonly signal?: AbortSignal
  readonly authInfo?: unknown
  readonly mcpReq?: { readonly signal?: AbortSignal; readonly envelope?: unknown }
  readonly http?: { readonly authInfo?: unknown } | undefined
}

export type SdkResult = Record<string, unknown>
export type SdkHandler = (request: SdkRequest, context: SdkContext) => Promise<SdkResult> | SdkResult

/** A server of the SDK, with its table of handlers. */
export interface OpenServer {
  readonly server: SdkServer
  /** The handlers by method: those that the application has set, until they are replaced. */
  readonly handlers: Map<string, SdkHandler>
  /** The revision that was agreed on, where the SDK says so (2). */
  revision(): string | undefined
  readonly isVersion2: boolean
}

/**
 * Opens the table of handlers of a server. The SDK has no public way to ask for the handler that is there already, so this reads
 * the member that all its versions have had; the tests hold it for both of them.
 *
 * @throws ResourceError `invalid` for what is no server of the SDK, or one that is connected already.
 */
export function openServer(given: AttachableServer, tools: boolean): OpenServer {
  const server = 'server' in given ? given.server : given
  const handlers: unknown = Reflect.get(server, '_requestHandlers')
  if (!(handlers instanceof Map))
    throw invalid(
      'attach needs a Server or a McpServer of @modelcontextprotocol/sdk (1.20 and later) or @modelcontextprotocol/server (2).',
      'attach',
    )
  if (Reflect.get(server, 'transport') !== undefined)
    throw invalid('The server is connected already: attach before connect.', 'attach')
  // A McpServer sets its handlers with the first resource or tool that it is given, and refuses to when others are there.
  if ('server' in given)
    for (const name of [
      'setResourceRequestHandlers',
      'setCompletionRequestHandler',
      ...(tools ? ['setToolRequestHandlers'] : []),
    ]) {
      const prepare: unknown = Reflect.get(given, name)
      if (typeof prepare === 'function') Reflect.apply(prepare, given, [])
    }
  const negotiated: unknown = Reflect.get(server, 'getNegotiatedProtocolVersion')
  return {
    server,
    handlers: handlers as Map<string, SdkHandler>,
    isVersion2: typeof negotiated === 'function',
    revision: () => {
      const said: unknown = typeof negotiated === 'function' ? Reflect.apply(negotiated, server, []) : undefined
      return typeof said === 'string' ? said : undefined
    },
  }
}
