import { ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { modern, type Revision } from './revisions.ts'

/** An error of JSON-RPC. */
export interface WireError {
  readonly code: number
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

export const codes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** Up to 2025-11-25; since then it is {@link codes.invalidParams} with `data: { uri }`. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const

export function invalidParams(message: string): WireError {
  return { code: codes.invalidParams, message }
}

/** An error that a method returns unchanged, for errors with a code of the protocol. Its message is for people, and short. */
export class ProtocolError extends Error {
  readonly code: number
  readonly data: Readonly<Record<string, unknown>> | undefined

  constructor(code: number, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message)
    this.name = 'ProtocolError'
    this.code = code
    this.data = data
  }
}

/** Maximum length of a URI that an error repeats, in characters. */
const maxEcho = 1024

/** The message for missing and denied resources, and for nothing else. */
const notFoundMessage = 'Resource not found'

/**
 * Converts any failure to its form for clients (error firewall). Missing and denied give the same bytes; for `unavailable`,
 * `internal` and errors other than {@link ResourceError}, the client gets a fixed sentence, and only the log has the details.
 */
export function wireError(error: unknown, revision: Revision, uri: string | undefined, log: Log): WireError {
  if (!(error instanceof ResourceError)) {
    log('error', 'a request failed', { error })
    return { code: codes.internal, message: 'Internal error' }
  }
  switch (error.kind) {
    case 'not-found':
      return {
        code: revision === modern ? codes.invalidParams : codes.resourceNotFound,
        message: notFoundMessage,
        ...(uri === undefined || uri.length > maxEcho ? {} : { data: { uri } }),
      }
    case 'invalid':
    case 'too-large':
      return { code: codes.invalidParams, message: error.message, data: { ...error.detail } }
    case 'unavailable':
      log('warn', 'a source is unavailable', { error })
      return {
        code: codes.internal,
        message: 'The source of this resource does not answer just now. Try again later.',
        data: { reason: 'unavailable', ...retryAfterOf(error) },
      }
    case 'internal':
      log('error', 'a request failed', { error })
      return { code: codes.internal, message: 'Internal error' }
  }
}

/** Returns the seconds until a retry, if they are known. No other detail of such an error is sent. */
function retryAfterOf({ detail: { retryAfter } }: ResourceError): { readonly retryAfter?: number } {
  return typeof retryAfter === 'number' ? { retryAfter } : {}
}
