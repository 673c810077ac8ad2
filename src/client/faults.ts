import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import type { ResourceError } from '../core/errors.ts'
import { printable, rpcErrorOf, statusOf, systemCode, toResourceError, unavailable } from './errors.ts'

/**
 * Returns the error of a connection that could not be opened: what was tried, what happened, and what to do. Its code is always
 * `unavailable`, for every cause. It holds no secret of the URL: only its origin and path.
 */
export function urlFault(url: URL, error: unknown): ResourceError {
  const shown = `${url.origin}${url.pathname}`
  const cannot = (what: string) => unavailable(`Cannot connect to ${shown}: ${what}`, error)
  const noServer = (how: string) =>
    unavailable(`There is no MCP server at ${shown}: ${how}. Check the path, which is often /mcp.`, error)
  const status = statusOf(error)
  if ([404, 405, 501].includes(status)) return noServer(`it answered with HTTP ${status}`)
  const target =
    status >= 300 && status < 400 ? /Redirect\D* to (\S+) not followed/.exec(messageOf(error))?.[1] : undefined
  if (target !== undefined)
    return cannot(`it leads to ${printable(target)}, on another server. Connect to that, if you trust it.`)
  const refusal = error instanceof SdkHttpError ? rpcErrorOf(error.data.text) : error
  const said = refusal instanceof ProtocolError ? ` It said: ${printable(refusal.message)}` : ''
  if (status === 401) return cannot(`it asks who you are (HTTP 401). Give it a token in the headers.${said}`)
  if (status === 403)
    return cannot(`it refuses this client (HTTP 403). A token in the headers may be needed, or another one.${said}`)
  if (said !== '') return cannot(`it refused to begin.${said}`)
  if (status >= 500) return cannot(`it answered with HTTP ${status}. Try again later, or look into its log.`)
  if (status !== 0) return cannot(`it answered with HTTP ${status}. Check that it is an MCP server.`)
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return noServer('it answered with something else, such as a web page')
  if (isTimeout(error)) return cannot('it did not answer in time. Check that it is an MCP server, and try again.')
  const network = networkFault(url, error)
  if (network !== undefined) return cannot(network)
  const isUnusable = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed
  if (isUnusable || error instanceof SyntaxError) return noServer('it answered with what is not JSON-RPC')
  return cannot(lowerFirst(toResourceError(error, 'the opening of the connection').message))
}

/** Does the same as {@link urlFault} for a command. `words` is the end of its standard error. */
export function commandFault(command: string, error: unknown, words: string): ResourceError {
  const code = systemCode(error)
  if (code === 'ENOENT')
    return unavailable(
      `The command ${command} cannot be started: there is no such program (ENOENT). Install it, or give its full path.`,
      error,
    )
  if (code !== undefined)
    return unavailable(`The command ${command} cannot be started (${code}). Check that you may run it.`, error)
  const said = words === '' ? '' : ` It said: ${words}`
  const sentence = (what: string) => unavailable(`${what}${said}`, error)
  if (isTimeout(error))
    return sentence(
      `The command ${command} was started and did not answer in time. Check that it is an MCP server that speaks over stdio.`,
    )
  // A program that echoes its input (such as cat) sends our own request back, which the client answers with "method not found".
  if (error instanceof ProtocolError && error.code === -32_601)
    return sentence(
      `The command ${command} is no MCP server: it does not know how a connection begins. Check the command line.`,
    )
  if (error instanceof ProtocolError)
    return sentence(`The command ${command} refused to begin: ${printable(error.message)}.`)
  if (error instanceof SdkError)
    return sentence(
      `The command ${command} ended before it spoke MCP. Run it by itself to see why, and check the command line.`,
    )
  return sentence(`The command ${command} is no MCP server that this client knows: ${printable(messageOf(error))}.`)
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
      return `there is no host named ${url.hostname} (${code}). Correct it, or check the network.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return `the connection was cut off (${code}). Check that it is an MCP server${url.protocol === 'http:' ? ', and not https' : ''}.`
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'EPROTO':
      return `it does not speak https (${code}). Try http.`
    default:
      if (/CERT|SIGNED|SIGNATURE|ISSUER/.test(code))
        return `its certificate is not trusted (${code}). Name a file with its authority in NODE_EXTRA_CA_CERTS.`
      return `it cannot be reached (${code}). Check the host, the port and the network.`
  }
  const messages = causesOf(error).map(({ message }) => message)
  if (messages.includes('bad port'))
    return `port ${url.port} is kept for another protocol, and no client may connect to it. Serve on another port, such as 8787.`
  if (messages.includes('fetch failed')) return 'it cannot be reached. Check the URL and the network.'
  return undefined
}

/** Whether the server did not answer in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout
}

/** Returns an error and its causes, at most five, so a cycle of causes does no harm. */
function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = []
  for (let at = error; at instanceof Error && causes.length < 5; at = at.cause) causes.push(at)
  return causes
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
