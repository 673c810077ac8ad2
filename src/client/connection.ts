import { readFileSync } from 'node:fs'
import {
  Client,
  type ClientOptions,
  SdkHttpError,
  type StandardSchemaV1,
  type Transport,
} from '@modelcontextprotocol/client'
import { invalid, isResourceError, type ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { CallOptions } from '../core/view.ts'
import { systemCode, toResourceError, unavailable } from './errors.ts'
import { sseTransport, streamableTransport, tooLarge, type UrlTarget } from './http.ts'
import { type CommandTarget, childTransport } from './stdio.ts'
import type { Wire } from './wire.ts'

/** The bounds of a connection, with their defaults filled in. */
export interface Limits {
  readonly timeoutMs: number
  readonly maxBytes: number
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
  /** Sends one request. Throws only ResourceError, or the reason of an aborted signal. */
  request(method: string, params: Wire, options: CallOptions | undefined): Promise<Wire>
  close(): Promise<void>
}

/** What is heard of a connection beside its answers. */
interface State {
  ended: boolean
  /** Why an answer was cut off, until the request that it belonged to fails. */
  fault: ResourceError | undefined
}

/** How long a server may take to say which revision it speaks before it is taken for an old one, in milliseconds. */
const maxProbe = 10_000
/** How long a server may take to end a session, in milliseconds. */
const maxGoodbye = 2000

export async function openUrl(target: UrlTarget, limits: Limits): Promise<Connection> {
  const url = parseUrl(target.url)
  const headers = target.headers ?? {}
  const state: State = { ended: false, fault: undefined }
  const onTooLarge = (error: ResourceError) => {
    state.fault = error
  }
  const streamable = async (mode: 'auto' | 'legacy') => {
    const transport = streamableTransport(url, headers, limits.maxBytes, onTooLarge)
    const client = await open(transport, mode, limits, state)
    return bind(client, limits, state, () => endSession(() => transport.terminateSession()))
  }
  const sse = async () => {
    const transport = sseTransport(url, headers, limits.maxBytes, onTooLarge)
    return bind(await open(transport, 'legacy', limits, state), limits, state, async () => {})
  }
  try {
    return await streamable('auto').catch((error: unknown) => {
      // Some old servers fall over the first question that a new client asks.
      if (statusOf(error) >= 500) return streamable('legacy')
      throw error
    })
  } catch (error) {
    // What the specification says of servers that know only server-sent events.
    if (![400, 404, 405].includes(statusOf(error))) throw connectFault(error)
    return sse().catch(() => {
      limits.signal.throwIfAborted()
      throw connectFault(error)
    })
  }
}

export async function openCommand(target: CommandTarget, limits: Limits): Promise<Connection> {
  const start = async (mode: 'auto' | 'legacy') => {
    const state: State = { ended: false, fault: undefined }
    const { transport, lastWords } = childTransport(target, limits.stderr, limits.maxBytes, limits.log)
    try {
      const client = await open(transport, mode, limits, state)
      return { connection: bind(client, limits, state, async () => {}) }
    } catch (error) {
      limits.signal.throwIfAborted()
      return { error, words: lastWords() }
    }
  }
  const first = await start('auto')
  if ('connection' in first) return first.connection
  const code = systemCode(first.error)
  if (code !== undefined) throw unavailable(`The command ${target.command} cannot be started (${code}).`, first.error)
  // Some old servers exit at any request but initialize.
  const second = await start('legacy')
  if ('connection' in second) return second.connection
  const { message } = connectFault(second.error)
  throw unavailable(second.words === '' ? message : `${message} It said: ${second.words}`, second.error)
}

async function open(transport: Transport, mode: 'auto' | 'legacy', limits: Limits, state: State): Promise<Client> {
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
  }
  // The SDK hears of an abort in most of what it does here, but not in all.
  const connecting = client.connect(transport, { timeout: timeoutMs, signal })
  try {
    await withSignal(connecting, signal)
    state.ended = false
    return client
  } catch (error) {
    connecting.catch(() => {})
    await transport.close().catch(() => {})
    signal.throwIfAborted()
    throw error
  }
}

function bind(client: Client, limits: Limits, state: State, goodbye: () => Promise<void>): Connection {
  let closing: Promise<void> | undefined
  return {
    revision: client.getNegotiatedProtocolVersion() ?? '',
    hasResources: client.getServerCapabilities()?.resources !== undefined,
    request: async (method, params, options) => {
      const signal = options?.signal
      signal?.throwIfAborted()
      if (state.ended) throw unavailable('The connection has ended. Connect again.')
      try {
        const request = { timeout: limits.timeoutMs, ...(signal === undefined ? {} : { signal }) }
        return await client.request({ method, params: { ...params } }, anyObject, request)
      } catch (error) {
        signal?.throwIfAborted()
        const failure = toResourceError(error, method)
        const { fault } = state
        if (fault === undefined || !isResourceError(failure, 'unavailable')) throw failure
        if (!state.ended) state.fault = undefined
        throw fault
      }
    },
    close: () => {
      closing ??= goodbye().then(() => client.close())
      return closing
    },
  }
}

/** The SDK's place for a schema of the answer, which is judged field by field later. JSON-RPC has it be an object. */
const anyObject: StandardSchemaV1<unknown, Wire> = {
  '~standard': { version: 1, vendor: 'hikidashi', validate: (value: unknown) => ({ value: value as Wire }) },
}

/** Tells a server that its session is over, and does not wait for it long. */
async function endSession(terminate: () => Promise<void>): Promise<void> {
  await withSignal(terminate(), AbortSignal.timeout(maxGoodbye)).catch(() => {})
}

async function withSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw invalid(`${JSON.stringify(text)} is not a URL of an MCP server: it begins with http:// or https://.`, 'url')
  return url
}

/** A connection that does not come about is always `unavailable`, whatever the reason. */
function connectFault(error: unknown): ResourceError {
  const fault = toResourceError(error, 'the opening of the connection')
  return fault.kind === 'internal' ? unavailable(fault.message, error) : fault
}

function statusOf(error: unknown): number {
  return error instanceof SdkHttpError ? error.status : 0
}

function versionOfPackage(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(file) as { version?: unknown }).version)
}
