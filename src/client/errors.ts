import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { type ErrorDetail, isResourceError, ResourceError } from '../core/errors.ts'
import { unreadableCode } from './messages.ts'
import { contentLinkIn } from './wire.ts'

export const rpcErrorCodes = {
  methodNotFound: -32601,
  invalidParams: -32602,
  resourceNotFound: -32002,
  headerMismatch: -32020,
} as const

/**
 * JSON-RPC error code with which this client answers its own request when the connection ends before the answer. Servers count down from
 * -32000 for errors of their own.
 */
export const streamEndedCode = -32_097

/** Returns the error of an answer that exceeds this client's limit. */
export function tooLargeError(limit: number): ResourceError {
  return new ResourceError('too-large', `The answer of the server is longer than ${limit} bytes.`, {
    reason: 'too-large',
    limit,
  })
}

/** Maximum length of a server's text in an error message, in characters. */
const maxMessage = 500

/** Converts a failure of a remote server into a ResourceError. The message of a JSON-RPC error is kept, except for an unknown method. */
export function toResourceError(error: unknown, method: string): ResourceError {
  if (isResourceError(error)) return error
  if (error instanceof ProtocolError) return fromProtocol(error, method)
  if (error instanceof SdkHttpError) return fromHttp(error, method)
  if (error instanceof SdkError) return fromSdk(error, method)
  if (!(error instanceof Error)) return new ResourceError('internal', `${method} failed.`, {}, { cause: error })
  // fetch and the SDK have no error classes for the following failures.
  if (error.message === 'Not connected') return unavailableError('The connection has ended. Connect again.', error)
  const code = systemCode(error)
  if (code !== undefined || error.message === 'fetch failed')
    return unavailableError(`The server cannot be reached (${code ?? 'network error'}).`, error)
  return new ResourceError('internal', `${method} failed: ${error.message}`, {}, { cause: error })
}

export function unavailableError(message: string, cause?: unknown): ResourceError {
  return new ResourceError('unavailable', message, {}, { cause })
}

/** `fault` of an error: the command exceeded its memory limit. */
export const memoryFault = 'memory'

export function memoryError(limitBytes: number): ResourceError {
  const limit = `${Math.floor(limitBytes / (1024 * 1024))} MiB`
  return new ResourceError(
    'unavailable',
    `The command and the processes that it started used more than ${limit} of memory, and were killed. In a configuration, "memory" of the mount raises this limit.`,
    { fault: memoryFault },
  )
}

function fromProtocol(error: ProtocolError, method: string): ResourceError {
  const options = { cause: error }
  const detail = detailOf(error.data)
  const message = printableText(error.message)
  switch (error.code) {
    case rpcErrorCodes.resourceNotFound:
      return new ResourceError('not-found', message, {}, options)
    case rpcErrorCodes.invalidParams:
      if (isUriAlone(error.data)) return new ResourceError('not-found', message, {}, options)
      if (detail.reason === 'too-large') return new ResourceError('too-large', message, detail, options)
      return new ResourceError('invalid', message, { reason: 'params', ...detail }, options)
    case rpcErrorCodes.methodNotFound:
      return new ResourceError('internal', `The server does not know ${method}.`, { code: error.code }, options)
    case unreadableCode:
      return new ResourceError(
        'internal',
        `The answer of the server to ${method} is malformed: ${message}.`,
        {},
        options,
      )
    case streamEndedCode:
      return unavailableError(`The connection ended before ${method} was answered. Try again.`, error)
  }
  if (detail.reason === 'unavailable') return unavailableError(message, error)
  return new ResourceError('internal', `${method} failed: ${message}`, { ...detail, code: error.code }, options)
}

function fromSdk(error: SdkError, method: string): ResourceError {
  switch (error.code) {
    case SdkErrorCode.RequestTimeout:
      return unavailableError(`The server did not answer ${method} in time.`, error)
    case SdkErrorCode.ConnectionClosed:
    case SdkErrorCode.NotConnected:
    case SdkErrorCode.SendFailed:
      return unavailableError(`The connection ended before ${method} was answered. Connect again.`, error)
    case SdkErrorCode.InvalidResult:
    case SdkErrorCode.UnsupportedResultType:
    case SdkErrorCode.InputRequiredRoundsExceeded:
      return new ResourceError('internal', `The answer of the server to ${method} is malformed.`, {}, { cause: error })
    default:
      return new ResourceError('internal', `${method} failed: ${error.message}`, {}, { cause: error })
  }
}

/** Since 2026-07-28 a server may send a JSON-RPC error with an HTTP status such as 404. The body tells the failure, except for 401 and 403. */
function fromHttp(error: SdkHttpError, method: string): ResourceError {
  const { status } = error
  const fault = status === 401 || status === 403 ? undefined : rpcErrorOf(error.data.text)
  return fault === undefined ? unavailableError(httpFaultMessage(status), error) : fromProtocol(fault, method)
}

export function rpcErrorOf(text: unknown): ProtocolError | undefined {
  if (typeof text !== 'string') return undefined
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown; data?: unknown } }
    if (typeof error?.code !== 'number' || typeof error.message !== 'string') return undefined
    return ProtocolError.fromError(error.code, error.message, error.data)
  } catch {
    return undefined
  }
}

export function httpFaultMessage(status: number): string {
  switch (status) {
    case 401:
      return 'The server requires authentication (HTTP 401). Send a token in the headers.'
    case 403:
      return 'The server refuses this connection (HTTP 403). The token in the headers may not be enough.'
    case 404:
      return 'There is no MCP server at this URL, or the session has ended (HTTP 404).'
    default:
      return `The server answered with HTTP ${status}.`
  }
}

/** Returns the HTTP status of a failure; 0 when it has none. */
export function errorHttpStatus(error: unknown): number {
  return error instanceof SdkHttpError ? error.status : 0
}

/** Returns the `code` of an error or of its causes, such as ECONNREFUSED; undefined when none has a code. Codes of the SDK are ignored. */
export function systemCode(error: unknown): string | undefined {
  for (const at of causesOf(error))
    if (!(at instanceof SdkError) && 'code' in at && typeof at.code === 'string') return at.code
  return undefined
}

/** Returns an error and its causes, at most five. */
export function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = []
  for (let at = error; at instanceof Error && causes.length < 5; at = at.cause) causes.push(at)
  return causes
}

/** Whether the data of an error is the URI and nothing else: then a -32602 means "not found" (MCP 2026-07-28). */
function isUriAlone(data: unknown): boolean {
  if (typeof data !== 'object' || data === null) return false
  return 'uri' in data && typeof data.uri === 'string' && Object.keys(data).length === 1
}

function detailOf(data: unknown): ErrorDetail {
  if (typeof data !== 'object' || data === null) return {}
  const detail: Record<string, string | number> = {}
  for (const [key, value] of Object.entries(data) as [string, unknown][])
    if (typeof value === 'number') detail[key] = value
    else if (typeof value === 'string') detail[key] = printableText(value)
  return detail
}

/** Returns a server's text as one line of limited length, without control characters. */
export function printableText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it replaces control characters.
  const line = text.toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
  return line.length > maxMessage ? `${line.slice(0, maxMessage).toWellFormed()}...` : line
}

/** Returns the link to the whole content in the error of a read that is too large; undefined without one. `endpoint`: URL of the MCP endpoint. */
export function contentLinkOf({ cause }: Error, endpoint: string): URL | undefined {
  return cause instanceof ProtocolError ? contentLinkIn(cause.data, endpoint) : undefined
}
