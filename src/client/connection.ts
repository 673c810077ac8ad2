import { readFileSync } from 'node:fs'
import {
  Client,
  type ClientOptions,
  type McpSubscription,
  type Progress,
  type StandardSchemaV1,
  type SubscriptionFilter,
  type Transport,
} from '@modelcontextprotocol/client'
import { isResourceError, type ResourceError } from '../core/errors.ts'
import { untilAborted, withResolvers } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import { runInSpan, traceContext } from '../core/trace.ts'
import { toResourceError, unavailableError } from './errors.ts'
import type { ServerStream } from './http.ts'
import type { RemoteServerInfo, RequestOptions } from './target.ts'
import type { WireObject } from './wire.ts'

export interface ConnectionSettings {
  readonly timeoutMs: number
  readonly maxBytes: number
  /** Maximum memory of a command together with all processes that it starts, in bytes. */
  readonly memoryBytes: number
  readonly stderr: 'log' | 'inherit'
  readonly signal: AbortSignal
  readonly log: Log
}

export interface Connection {
  readonly revision: string
  /** Whether the server declared the capability `resources`. */
  readonly hasResources: boolean
  readonly hasPrompts: boolean
  readonly hasTools: boolean
  readonly about: RemoteServerInfo
  /** Changes that the server declared to notify about: of a resource, and of the lists of resources, prompts and tools. */
  readonly tells: {
    readonly updated: boolean
    readonly listed: boolean
    readonly prompts: boolean
    readonly tools: boolean
  }
  /** Whether requests have headers that repeat arguments of tools: over HTTP, from 2026-07-28 on. */
  readonly hasHeaders: boolean
  /** Sends one request. Throws only ResourceError, or the reason of an aborted signal. */
  request(method: string, params: WireObject, options: RequestOptions | undefined): Promise<WireObject>
  /** Opens a stream of changes. Resolves when the server has acknowledged it. Undefined before 2026-07-28. */
  listen?(filter: SubscriptionFilter): Promise<McpSubscription>
  /**
   * Opens the stream on which the server sends messages of its own accord. Resolves to `undefined` when the server has none. Undefined if
   * the connection has no such stream.
   */
  openStanding?(): Promise<ServerStream | undefined>
  /** Sets the listener of all notifications of the server. It replaces the previous one. */
  hear(listener: (method: string, params: WireObject) => void): void
  readonly isOver: boolean
  /** Resolves when the connection has ended, no matter which side ended it. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

/** The state of a connection that its requests and its transport share. */
export interface ConnectionState {
  ended: boolean
  /** Why an answer or the connection was cut off. */
  fault: ResourceError | undefined
  onEnd: () => void
}

/** Maximum time-out of the probe of the revision, in milliseconds. */
const probeTimeoutMs = 10_000
const firstModern = '2026-07-28'

export function newConnectionState(): ConnectionState {
  return { ended: false, fault: undefined, onEnd: () => {} }
}

/** Connects a client over a transport. Throws the errors of the SDK, or the reason of the aborted signal. */
export async function openClient(
  transport: Transport,
  mode: 'auto' | 'legacy',
  limits: ConnectionSettings,
  state: ConnectionState,
): Promise<Client> {
  const { timeoutMs, signal, log } = limits
  const options: ClientOptions =
    mode === 'auto' ? { versionNegotiation: { mode, probe: { timeoutMs: Math.min(timeoutMs, probeTimeoutMs) } } } : {}
  const client = new Client({ name: 'hikidashi', version: versionOfPackage() }, options)
  client.onerror = (error) => {
    if (isResourceError(error, 'too-large')) state.fault = error
    log('debug', 'a connection to a server reports an error', { error: error.message.slice(0, 500) })
  }
  client.onclose = () => {
    state.ended = true
    state.onEnd()
  }
  // The SDK observes the signal in most steps of this call, but not in all.
  const connecting = client.connect(transport, { timeout: timeoutMs, signal })
  try {
    await untilAborted(connecting, signal)
    state.ended = false
    return client
  } catch (error) {
    connecting.catch(() => {})
    await transport.close().catch(() => {})
    signal.throwIfAborted()
    throw error
  }
}

/**
 * Wraps an open client as a {@link Connection}.
 *
 * @param goodbye Ends the session on the server.
 */
export function bindConnection(
  client: Client,
  { timeoutMs }: ConnectionSettings,
  state: ConnectionState,
  goodbye = async () => {},
  openStanding?: Connection['openStanding'],
): Connection {
  const revision = client.getNegotiatedProtocolVersion() ?? ''
  const { resources, prompts, tools } = client.getServerCapabilities() ?? {}
  const end = new Promise<void>((resolve) => {
    state.onEnd = resolve
    if (state.ended) resolve()
  })
  let closing: Promise<void> | undefined

  const failureOf = (error: unknown, method: string): ResourceError => {
    const failure = toResourceError(error, method)
    const { fault } = state
    if (fault === undefined || !isResourceError(failure, 'unavailable')) return failure
    if (!state.ended) state.fault = undefined
    return fault
  }
  const requireOpen = () => {
    if (state.ended) throw unavailableError('The connection has ended. Connect again.')
  }
  const listen: Connection['listen'] = async (filter) => {
    requireOpen()
    return client.listen(filter, { timeout: timeoutMs }).catch((error: unknown) => {
      throw failureOf(error, 'subscriptions/listen')
    })
  }

  return {
    revision,
    hasResources: resources !== undefined,
    hasPrompts: prompts !== undefined,
    hasTools: tools !== undefined,
    about: aboutOf(client),
    tells: {
      updated: resources?.subscribe === true,
      listed: resources?.listChanged === true,
      prompts: prompts?.listChanged === true,
      tools: tools?.listChanged === true,
    },
    hasHeaders: revision >= firstModern && openStanding !== undefined,
    request: async (method, params, options) => {
      const signal = options?.signal
      signal?.throwIfAborted()
      requireOpen()
      const attributes = { 'mcp.method.name': method, 'mcp.protocol.version': revision }
      const traces = { kind: 'client', attributes, duration: 'mcp.client.operation.duration' } as const
      return runInSpan(method, traces, async () => {
        try {
          const { onProgress, headers } = options ?? {}
          const onprogress = onProgress && ((progress: Progress) => onProgress(defined({ ...progress })))
          // A request that reports progress may take longer.
          const request = {
            timeout: timeoutMs,
            resetTimeoutOnProgress: true,
            ...defined({ signal, onprogress, headers }),
          }
          return await client.request({ method, params: withTrace(params) }, anyObject, request)
        } catch (error) {
          signal?.throwIfAborted()
          throw failureOf(error, method)
        }
      })
    },
    ...(revision >= firstModern ? { listen } : {}),
    ...(revision >= firstModern || openStanding === undefined ? {} : { openStanding }),
    hear: (listener) => {
      // The listener validates the notifications: the SDK would drop those that do not match the schema exactly.
      client.fallbackNotificationHandler = async ({ method, params }) => listener(method, (params ?? {}) as WireObject)
    },
    get isOver() {
      return state.ended
    },
    ended: end,
    close: () => {
      closing ??= goodbye().then(() => client.close())
      return closing
    },
  }
}

/** Adds the trace context to the `_meta` of params, for servers behind any transport. */
function withTrace(params: WireObject): WireObject {
  const trace = traceContext()
  if (trace.traceparent === undefined) return { ...params }
  const { _meta } = params
  return { ...params, _meta: { ...(typeof _meta === 'object' ? _meta : {}), ...trace } }
}

function aboutOf(client: Client): RemoteServerInfo {
  const { name, version } = client.getServerVersion() ?? {}
  return {
    ...defined({ name, version }),
    capabilities: Object.keys(client.getServerCapabilities() ?? {}),
  }
}

/** The schema of results, which the SDK requires. It accepts every object. */
const anyObject: StandardSchemaV1<unknown, WireObject> = {
  '~standard': { version: 1, vendor: 'hikidashi', validate: (value: unknown) => ({ value: value as WireObject }) },
}

function versionOfPackage(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(file) as { version?: unknown }).version)
}

/** The link to a server, over one connection at a time: `reopen` replaces a lost one. */
export type ServerLink = ReturnType<typeof createServerLink>

/** @param open Opens a connection; rejects when the signal aborts. */
export function createServerLink(first: Connection, open: (signal: AbortSignal) => Promise<Connection>, log: Log) {
  const controller = new AbortController()
  const closing: AbortSignal = controller.signal
  let connection = first
  const { promise: over, resolve: giveUp } = withResolvers<ResourceError>()
  return {
    get connection(): Connection {
      return connection
    },
    log,
    request: (method: string, params: WireObject, options: RequestOptions | undefined) =>
      connection.request(method, params, options),
    reopen: async () => {
      const lost = connection
      const next = await open(closing)
      if (closing.aborted) {
        await next.close()
        throw unavailableError('The connection was closed.')
      }
      connection = next
      // Do not wait for the server of the lost connection.
      lost.close().catch((error: unknown) => log('debug', 'a lost connection cannot be closed', { error }))
      return next
    },
    /** Resolves `over` with this reason, and closes nothing. Only the first call counts. */
    giveUp,
    over,
    closing,
    close: async () => {
      controller.abort()
      giveUp(unavailableError('The connection was closed.'))
      await connection.close()
    },
  }
}
