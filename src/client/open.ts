import { invalid } from '../core/errors.ts'
import { bind, type Connection, type Limits, newState, open } from './connection.ts'
import { statusOf, systemCode } from './errors.ts'
import { commandFault, isTimeout, urlFault } from './faults.ts'
import { type OnTooLarge, sseTransport, streamableHttp, type UrlTarget } from './http.ts'
import { untilAborted } from './signal.ts'
import { type CommandTarget, childTransport } from './stdio.ts'

/** Where a server is: behind a URL, or a command that starts it. */
export type Target = UrlTarget | CommandTarget

/** How long a server may take to end a session, in milliseconds. */
const maxGoodbye = 2000

/**
 * Opens a connection.
 *
 * @throws ResourceError `unavailable` when none comes about, `invalid` for a URL that is not http or https.
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
    const { transport, openStanding } = streamableHttp(url, headers, limits, onTooLarge)
    const client = await open(transport, mode, limits, state)
    return bind(client, limits, state, { goodbye: () => endSession(() => transport.terminateSession()), openStanding })
  }
  const sse = async () => {
    const transport = sseTransport(url, headers, limits.maxBytes, onTooLarge)
    return bind(await open(transport, 'legacy', limits, state), limits, state, {})
  }
  try {
    return await streamable('auto').catch((error: unknown) => {
      // Some old servers fall over the first question that a new client asks.
      if (statusOf(error) >= 500) return streamable('legacy')
      throw error
    })
  } catch (error) {
    limits.signal.throwIfAborted()
    // What the specification says of servers that know only server-sent events.
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
    const { transport, lastWords } = childTransport(target, limits.stderr, limits.maxBytes, limits.log)
    try {
      const client = await open(transport, mode, limits, state)
      return { connection: bind(client, limits, state, {}) }
    } catch (error) {
      limits.signal.throwIfAborted()
      return { error, words: lastWords() }
    }
  }
  const first = await start('auto')
  if ('connection' in first) return first.connection
  // Some old servers exit at any request but initialize. One that was silent would be so again.
  const isHopeless = systemCode(first.error) !== undefined || isTimeout(first.error)
  const second = isHopeless ? first : await start('legacy')
  if ('connection' in second) return second.connection
  throw commandFault(target.command, second.error, second.words)
}

/** Tells a server that its session is over, and does not wait for it long. */
async function endSession(terminate: () => Promise<void>): Promise<void> {
  await untilAborted(terminate(), AbortSignal.timeout(maxGoodbye)).catch(() => {})
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw invalid(`${JSON.stringify(text)} is not a URL of an MCP server: it begins with http:// or https://.`, 'url')
  return url
}
