import { type ErrorDetail, type ErrorKind, ResourceError } from '../../../core/errors.ts'

/** Error codes of JSON-RPC and MCP that a hikidashi server sends. */
const kinds: Readonly<Record<number, ErrorKind>> = {
  [-32700]: 'invalid',
  [-32600]: 'invalid',
  [-32601]: 'invalid',
  [-32602]: 'invalid',
  [-32002]: 'not-found',
}

/**
 * Converts an error of the protocol. `-32602` with only a URI means "not found" (2026-07-28).
 *
 * @param data The data of the error, which becomes the `cause`.
 * @param status The HTTP status of the answer.
 */
export function errorOf(code: unknown, message: unknown, data: unknown, status = 200): ResourceError {
  const detail = detailOf(data)
  const text = typeof message === 'string' && message !== '' ? message : 'The server answered with an error.'
  return new ResourceError(kindOf(code, detail, status), text, detail, { cause: data })
}

function kindOf(code: unknown, detail: ErrorDetail, status: number): ErrorKind {
  if (code === -32602 && 'uri' in detail && detail.reason === undefined) return 'not-found'
  if (detail.reason === 'too-large') return 'too-large'
  if (detail.reason === 'unavailable' || detail.reason === 'ending') return 'unavailable'
  // Errors below the protocol: the server is overloaded, or a proxy is at fault.
  if (status === 429 || status >= 500) return 'unavailable'
  return kinds[Number(code)] ?? 'internal'
}

function detailOf(data: unknown): ErrorDetail {
  if (typeof data !== 'object' || data === null) return {}
  return Object.fromEntries(
    Object.entries(data).filter((entry): entry is [string, string | number] =>
      ['string', 'number'].includes(typeof entry[1]),
    ),
  )
}
