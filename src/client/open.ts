import { invalid, isResourceError } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import { bind, type Connection, type Limits, newState, open, type State } from './connection.ts'
import { memoryExceeded, statusOf, systemCode, unavailable } from './errors.ts'
import { commandFault, isTimeout, urlFault } from './faults.ts'
import { createFlood, type Flood } from './flood.ts'
import { type OnTooLarge, sseTransport, streamableHttp } from './http.ts'
import { childTransport } from './stdio.ts'
import type { CommandTarget, Target, UrlTarget } from './target.ts'

/** Maximum time that this client waits for a server to end a session, in milliseconds. */
const goodbyeTimeoutMs = 2000

/**
 * Opens a connection.
 *
 * @throws ResourceError `unavailable` when it cannot be opened, `invalid` for a URL that is not http or https.
 */
export function openConnection(target: Target, limits: Limits): Promise<Connection> {
  return 'url' in target ? openUrl(target, limits) : openCommand(target, limits)
}

async function openUrl(target: UrlTarget, limits: Limits): Promise<Connection> {
  const url = parseUrl(target.url)
  const headers = target.headers ?? {}
  const state = newState()
  const onTooLarge: OnTooLarge = (error) => {
    state.fault = error
  }
  const streamable = async (mode: 'auto' | 'legacy') => {
    const flood = floodOf(state, limits)
    const { transport, openStanding } = streamableHttp(url, headers, limits, onTooLarge, flood)
    flood.watch(transport)
    const client = await open(transport, mode, limits, state)
    return bind(client, limits, state, { goodbye: () => endSession(() => transport.terminateSession()), openStanding })
  }
  const sse = async () => {
    const flood = floodOf(state, limits)
    const transport = sseTransport(url, headers, limits.maxBytes, onTooLarge, flood)
    flood.watch(transport)
    return bind(await open(transport, 'legacy', limits, state), limits, state, {})
  }
  try {
    return await streamable('auto').catch((error: unknown) => {
      // Some old servers crash at the first request of a new client.
      if (statusOf(error) >= 500) return streamable('legacy')
      throw error
    })
  } catch (error) {
    limits.signal.throwIfAborted()
    // The fallback that the specification prescribes for servers that know only server-sent events.
    if (![400, 404, 405].includes(statusOf(error))) throw urlFault(url, error)
    return sse().catch(() => {
      limits.signal.throwIfAborted()
      throw urlFault(url, error)
    })
  }
}

async function openCommand(target: CommandTarget, limits: Limits): Promise<Connection> {
  const start = async (mode: 'auto' | 'legacy') => {
    const state = newState()
    const flood = floodOf(state, limits)
    const { transport, lastWords } = childTransport(target, limits, flood, {
      memoryBytes: limits.memoryBytes,
      onExceeded: (usedBytes) => {
        state.fault = memoryExceeded(limits.memoryBytes)
        limits.log('warn', 'a command holds more memory than its limit: it is killed', {
          command: target.command,
          usedBytes,
          limitBytes: limits.memoryBytes,
        })
      },
    })
    flood.watch(transport)
    try {
      const client = await open(transport, mode, limits, state)
      return { connection: bind(client, limits, state, {}) }
    } catch (error) {
      limits.signal.throwIfAborted()
      return { error: state.fault ?? error, words: lastWords() }
    }
  }
  const first = await start('auto')
  if ('connection' in first) return first.connection
  // Some old servers exit at any request but initialize: try that next. A server that timed out would do so again.
  const isHopeless = systemCode(first.error) !== undefined || isTimeout(first.error) || isResourceError(first.error)
  const second = isHopeless ? first : await start('legacy')
  if ('connection' in second) return second.connection
  // This side ended the connection: report its reason.
  if (isResourceError(second.error)) throw second.error
  throw commandFault(target.command, second.error, second.words)
}

/** Returns the rate limit for the messages that the server sends without a request. */
function floodOf(state: State, { log }: Limits): Flood {
  return createFlood({
    onCut: () => {
      state.fault = unavailable(
        'The server sends messages without an end that nobody asked for: its connection is cut.',
      )
      log('warn', 'a server sends messages without an end that nobody asked for: its connection is cut')
    },
  })
}

/** Tells a server that its session is over, and waits at most `goodbyeTimeoutMs` milliseconds. */
async function endSession(terminate: () => Promise<void>): Promise<void> {
  await untilAborted(terminate(), AbortSignal.timeout(goodbyeTimeoutMs)).catch(() => {})
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw invalid(`${JSON.stringify(text)} is not a URL of an MCP server: it begins with http:// or https://.`, 'url')
  return url
}
