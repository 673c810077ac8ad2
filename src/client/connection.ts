import { readFileSync } from 'node:fs'
import {
  Client,
  type ClientOptions,
  type McpSubscription,
  type StandardSchemaV1,
  type SubscriptionFilter,
  type Transport,
} from '@modelcontextprotocol/client'
import { untilAborted } from '../core/abort.ts'
import { isResourceError, type ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { CallOptions } from '../core/view.ts'
import { toResourceError, unavailable } from './errors.ts'
import { tooLarge } from './http.ts'
import type { Standing } from './standing.ts'
import type { About } from './target.ts'
import type { Wire } from './wire.ts'

/** The bounds of a connection, with their defaults filled in. */
export interface Limits {
  readonly timeoutMs: number
  readonly maxBytes: number
  /** How much memory a command and all that it starts may hold together, in bytes. */
  readonly memoryBytes: number
  readonly stderr: 'log' | 'inherit'
  readonly signal: AbortSignal
  readonly log: Log
}

/** An open connection to a server, whatever carries it and whatever revision it speaks. */
export interface Connection {
  /** The negotiated revision of the protocol. */
  readonly revision: string
  /** Whether the server said that it has resources. */
  readonly hasResources: boolean
  readonly hasPrompts: boolean
  readonly about: About
  /** What the server said that it tells of: changes of resources, entries that come and go, and prompts that do. */
  readonly tells: { readonly updated: boolean; readonly listed: boolean; readonly prompts: boolean }
  /** Sends one request. Throws only ResourceError, or the reason of an aborted signal. */
  request(method: string, params: Wire, options: CallOptions | undefined): Promise<Wire>
  /** Opens a stream of changes, and resolves once it is acknowledged. Absent before 2026-07-28. */
  listen?(filter: SubscriptionFilter): Promise<McpSubscription>
  /**
   * Opens the stream on which a server speaks unasked, where the connection itself is not such a one. Resolves to
   * `undefined` where the server has none. Absent where it is not needed.
   */
  openStanding?(): Promise<Standing | undefined>
  /** Has everything that the server says unasked go to one listener, the last one given. */
  hear(listener: (method: string, params: Wire) => void): void
  readonly isOver: boolean
  /** Resolves when the connection is over, whoever ended it. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

/** What is heard of a connection beside its answers. */
export interface State {
  ended: boolean
  /** Why an answer was cut off, until the request that it belonged to fails. */
  fault: ResourceError | undefined
  onEnd: () => void
}

/** What depends on what carries a connection. */
export interface Carrier {
  /** Tells the server that it is over. */
  goodbye?(): Promise<void>
  openStanding?(): Promise<Standing | undefined>
}

/** How long a server may take to say which revision it speaks before it is taken for an old one, in milliseconds. */
const maxProbe = 10_000
const firstModern = '2026-07-28'

export function newState(): State {
  return { ended: false, fault: undefined, onEnd: () => {} }
}

/** Opens a client on a transport. Throws whatever the SDK does. */
export async function open(
  transport: Transport,
  mode: 'auto' | 'legacy',
  limits: Limits,
  state: State,
): Promise<Client> {
  const { timeoutMs, signal, log } = limits
  const options: ClientOptions =
    mode === 'auto' ? { versionNegotiation: { mode, probe: { timeoutMs: Math.min(timeoutMs, maxProbe) } } } : {}
  const client = new Client({ name: 'hikidashi', version: versionOfPackage() }, options)
  client.onerror = (error) => {
    if (/^ReadBuffer exceeded/.test(error.message)) state.fault = tooLarge(limits.maxBytes)
    log('debug', 'the connection to a server has a fault', { error: error.message.slice(0, 500) })
  }
  client.onclose = () => {
    state.ended = true
    state.onEnd()
  }
  // The SDK hears of an abort in most of what it does here, but not in all.
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

/** What views do with an open client. */
export function bind(client: Client, limits: Limits, state: State, carrier: Carrier): Connection {
  const { timeoutMs } = limits
  const revision = client.getNegotiatedProtocolVersion() ?? ''
  const { resources, prompts } = client.getServerCapabilities() ?? {}
  const ended = new Promise<void>((resolve) => {
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
    if (state.ended) throw unavailable('The connection has ended. Connect again.')
  }
  const listen: Connection['listen'] = async (filter) => {
    requireOpen()
    return client.listen(filter, { timeout: timeoutMs }).catch((error: unknown) => {
      throw failureOf(error, 'subscriptions/listen')
    })
  }
  const { openStanding } = carrier

  return {
    revision,
    hasResources: resources !== undefined,
    hasPrompts: prompts !== undefined,
    about: aboutOf(client),
    tells: {
      updated: resources?.subscribe === true,
      listed: resources?.listChanged === true,
      prompts: prompts?.listChanged === true,
    },
    request: async (method, params, options) => {
      const signal = options?.signal
      signal?.throwIfAborted()
      requireOpen()
      try {
        const request = { timeout: timeoutMs, ...(signal === undefined ? {} : { signal }) }
        return await client.request({ method, params: { ...params } }, anyObject, request)
      } catch (error) {
        signal?.throwIfAborted()
        throw failureOf(error, method)
      }
    },
    ...(revision >= firstModern ? { listen } : {}),
    ...(revision >= firstModern || openStanding === undefined ? {} : { openStanding }),
    hear: (listener) => {
      // What the server says is judged by the listener, and not by the SDK, which drops what is not to the letter.
      client.fallbackNotificationHandler = async ({ method, params }) => listener(method, (params ?? {}) as Wire)
    },
    get isOver() {
      return state.ended
    },
    ended,
    close: () => {
      closing ??= (carrier.goodbye?.() ?? Promise.resolve()).then(() => client.close())
      return closing
    },
  }
}

function aboutOf(client: Client): About {
  const { name, version } = client.getServerVersion() ?? {}
  return {
    ...(name === undefined ? {} : { name }),
    ...(version === undefined ? {} : { version }),
    capabilities: Object.keys(client.getServerCapabilities() ?? {}),
  }
}

/** The SDK's place for a schema of the answer, which is judged field by field later. JSON-RPC has it be an object. */
const anyObject: StandardSchemaV1<unknown, Wire> = {
  '~standard': { version: 1, vendor: 'hikidashi', validate: (value: unknown) => ({ value: value as Wire }) },
}

function versionOfPackage(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(file) as { version?: unknown }).version)
}
