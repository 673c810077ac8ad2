import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { invalid, isResourceError, type ResourceError } from '../core/errors.ts'
import { isNotTlsCode } from '../core/http-url.ts'
import { untilAborted } from '../core/kit/abort.ts'
import {
  bindConnection,
  type Connection,
  type ConnectionSettings,
  type ConnectionState,
  newConnectionState,
  openClient,
} from './connection.ts'
import {
  causesOf,
  errorHttpStatus,
  memoryError,
  printableText,
  rpcErrorOf,
  systemCode,
  toResourceError,
  unavailableError,
} from './errors.ts'
import { createFloodLimit, type FloodLimit } from './flood.ts'
import { type OnTooLarge, sseTransport, streamableHttp } from './http.ts'
import { unreadableCode } from './messages.ts'
import { childTransport } from './stdio.ts'
import type { CommandTarget, ServerTarget, UrlTarget } from './target.ts'

/** Maximum time that this client waits for a server to end a session, in milliseconds. */
const goodbyeTimeoutMs = 2000

/**
 * Opens a connection to a server.
 *
 * @throws ResourceError `unavailable` when the connection cannot be opened, `invalid` for a URL that is not http or https, `too-large`
 *   when the first answer of a command is too long.
 */
export function openConnection(target: ServerTarget, limits: ConnectionSettings): Promise<Connection> {
  return 'url' in target ? openUrl(target, limits) : openCommand(target, limits)
}

async function openUrl(target: UrlTarget, limits: ConnectionSettings): Promise<Connection> {
  const url = parseUrl(target.url)
  const headers = target.headers ?? {}
  const state = newConnectionState()
  const onTooLarge: OnTooLarge = (error) => {
    state.fault = error
  }
  const streamable = async (mode: 'auto' | 'legacy') => {
    const flood = floodOf(state, limits)
    const { transport, openStanding } = streamableHttp(url, headers, limits, onTooLarge, flood)
    flood.watch(transport)
    const client = await openClient(transport, mode, limits, state)
    return bindConnection(client, limits, state, () => endSession(() => transport.terminateSession()), openStanding)
  }
  const sse = async () => {
    const flood = floodOf(state, limits)
    const transport = sseTransport(url, headers, limits.maxBytes, onTooLarge, flood)
    flood.watch(transport)
    return bindConnection(await openClient(transport, 'legacy', limits, state), limits, state)
  }
  try {
    return await streamable('auto').catch((error: unknown) => {
      // Some old servers crash at the first request of a newer client.
      if (errorHttpStatus(error) >= 500) return streamable('legacy')
      throw error
    })
  } catch (error) {
    limits.signal.throwIfAborted()
    // The fallback that the specification prescribes for servers that know only server-sent events.
    if (![400, 404, 405].includes(errorHttpStatus(error))) throw urlFault(url, error)
    return sse().catch(() => {
      limits.signal.throwIfAborted()
      throw urlFault(url, error)
    })
  }
}

async function openCommand(target: CommandTarget, limits: ConnectionSettings): Promise<Connection> {
  const start = async (mode: 'auto' | 'legacy') => {
    const state = newConnectionState()
    const flood = floodOf(state, limits)
    const { transport, lastWords } = childTransport(target, limits, flood, {
      memoryBytes: limits.memoryBytes,
      onExceeded: (usedBytes) => {
        state.fault = memoryError(limits.memoryBytes)
        limits.log('warn', 'a command uses more memory than its limit, and is killed', {
          command: target.command,
          usedBytes,
          limitBytes: limits.memoryBytes,
        })
      },
    })
    flood.watch(transport)
    try {
      const client = await openClient(transport, mode, limits, state)
      return { connection: bindConnection(client, limits, state) }
    } catch (error) {
      limits.signal.throwIfAborted()
      return { error: state.fault ?? error, words: lastWords() }
    }
  }
  const first = await start('auto')
  if ('connection' in first) return first.connection
  // Some old servers exit at any request but initialize: try that next. A server that timed out would time out again.
  const isHopeless = systemCode(first.error) !== undefined || isTimeout(first.error) || isResourceError(first.error)
  const second = isHopeless ? first : await start('legacy')
  if ('connection' in second) return second.connection
  // This client ended the connection, for this reason.
  if (isResourceError(second.error)) throw second.error
  throw commandFault(target.command, second.error, second.words)
}

function floodOf(state: ConnectionState, { log }: ConnectionSettings): FloodLimit {
  return createFloodLimit(() => {
    state.fault = unavailableError('The server floods the client with unrequested messages: its connection is cut.')
    log('warn', 'a server floods the client with unrequested messages: its connection is cut')
  })
}

async function endSession(terminate: () => Promise<void>): Promise<void> {
  await untilAborted(terminate(), AbortSignal.timeout(goodbyeTimeoutMs)).catch(() => {})
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw invalid(
      `${JSON.stringify(text)} is not an http or https URL. Write the URL of an MCP server, such as http://127.0.0.1:8787/mcp.`,
      'uri',
    )
  return url
}

/**
 * Returns the error of a connection that could not be opened: what was tried, what happened, and what to do. Of the URL it holds the origin
 * and the path.
 */
function urlFault(url: URL, error: unknown): ResourceError {
  const address = `${url.origin}${url.pathname}`
  const cannot = (what: string) => unavailableError(`Cannot connect to ${address}: ${what}`, error)
  const noServer = (how: string) =>
    unavailableError(`There is no MCP server at ${address}: ${how}. Check the path, which is often /mcp.`, error)
  const status = errorHttpStatus(error)
  if ([404, 405, 501].includes(status)) return noServer(`it answered with HTTP ${status}`)
  const target =
    status >= 300 && status < 400 ? /Redirect\D* to (\S+) not followed/.exec(messageOf(error))?.[1] : undefined
  if (target !== undefined)
    return cannot(`it redirects to ${printableText(target)}, on another server. Connect to that, if you trust it.`)
  const refusal = error instanceof SdkHttpError ? rpcErrorOf(error.data.text) : error
  const quotation = refusal instanceof ProtocolError ? ` It said: ${printableText(refusal.message)}` : ''
  if (status === 401) return cannot(`it requires authentication (HTTP 401). Send a token in the headers.${quotation}`)
  if (status === 403)
    return cannot(`it refuses this client (HTTP 403). Send a token in the headers, or another token.${quotation}`)
  if (isUnreadable(refusal)) return cannot(`its first answer is malformed: ${refusal.message}.`)
  if (quotation !== '') return cannot(`it refused the first request.${quotation}`)
  if (status >= 500) return cannot(`it answered with HTTP ${status}. Try again later, or look at its log.`)
  if (status !== 0) return cannot(`it answered with HTTP ${status}. Check that it is an MCP server.`)
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return noServer('it answered with something else, such as a web page')
  if (isTimeout(error)) return cannot('it did not answer in time. Check that it is an MCP server, and try again.')
  const network = networkFault(url, error)
  if (network !== undefined) return cannot(network)
  const isUnusable = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed
  if (isUnusable || error instanceof SyntaxError) return noServer('its answer is not JSON-RPC')
  return cannot(lowerFirst(toResourceError(error, 'the opening of the connection').message))
}

/** Does the same as {@link urlFault} for a command. `words` is the end of its standard error. */
function commandFault(command: string, error: unknown, words: string): ResourceError {
  const code = systemCode(error)
  if (code === 'ENOENT')
    return unavailableError(
      `The command ${command} cannot be started: the program does not exist (ENOENT). Install it, or give its full path.`,
      error,
    )
  if (code !== undefined)
    return unavailableError(`The command ${command} cannot be started (${code}). Check that you may run it.`, error)
  const quotation = words === '' ? '' : ` It said: ${words}`
  const sentence = (what: string) => unavailableError(`${what}${quotation}`, error)
  if (isTimeout(error))
    return sentence(
      `The command ${command} was started and did not answer in time. Check that it is an MCP server that speaks over stdio.`,
    )
  // A program that echoes its input (such as cat) sends our own request back, which the client answers with "method not found".
  if (error instanceof ProtocolError && error.code === -32_601)
    return sentence(
      `The command ${command} is not an MCP server: it does not answer "initialize". Check the command line.`,
    )
  if (isUnreadable(error)) return sentence(`The first answer of the command ${command} is malformed: ${error.message}.`)
  if (error instanceof ProtocolError)
    return sentence(`The command ${command} refused the first request: ${printableText(error.message)}.`)
  if (error instanceof SdkError)
    return sentence(
      `The command ${command} ended before it spoke MCP. Run it by itself to see why, and check the command line.`,
    )
  return sentence(`The command ${command} does not answer as an MCP server: ${printableText(messageOf(error))}.`)
}

/** Returns what the network reported and what to do; undefined when the error did not come from the network. */
function networkFault(url: URL, error: unknown): string | undefined {
  const code = systemCode(error)
  switch (code) {
    case undefined:
      break
    case 'ECONNREFUSED':
      return 'nothing listens there (ECONNREFUSED). Start the server, or correct the host and port.'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the name ${url.hostname} cannot be resolved (${code}). Correct it, or check the network.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return `the connection was cut off (${code}). Check that it is an MCP server${url.protocol === 'http:' ? ', and not https' : ''}.`
    default:
      if (isNotTlsCode(code)) return `it does not speak https (${code}). Try http.`
      if (/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/.test(code))
        return `its certificate is not valid now (${code}). Renew it, or correct the clock of this machine.`
      if (/ALTNAME_INVALID/.test(code))
        return `its certificate is for another host (${code}). Use a host that the certificate names.`
      if (/CERT|SIGNED|SIGNATURE|ISSUER/.test(code))
        return `its certificate is not trusted (${code}). Set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority.`
      return `it cannot be reached (${code}). Check the host, the port and the network.`
  }
  const messages = causesOf(error).map(({ message }) => message)
  if (messages.includes('bad port'))
    return `port ${url.port} is reserved for another protocol, so Node and browsers do not connect to it. Serve on another port, such as 8787.`
  if (messages.includes('fetch failed')) return 'it cannot be reached. Check the URL and the network.'
  return undefined
}

function isUnreadable(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.code === unreadableCode
}

function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
