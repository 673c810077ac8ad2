import { invalid, isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { formatJson, isBlobStream } from './json.ts'

export type RequestId = string | number

export interface Request extends Notification {
  readonly id: RequestId
}

export interface Notification {
  readonly jsonrpc: '2.0'
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}

export type Response =
  | { readonly jsonrpc: '2.0'; readonly id: RequestId; readonly result: Readonly<Record<string, unknown>> }
  | { readonly jsonrpc: '2.0'; readonly id: RequestId | null; readonly error: WireError }

/** A URL for the bytes of one resource. It is a secret until it expires. */
export interface ContentLink {
  readonly href: string
  /** Time at which it expires (ISO 8601). */
  readonly expires: string
}

/** Creates the link to a resource for the caller of one request. Undefined when it would be too long. */
export type LinkFor = (uri: string) => ContentLink | undefined

/** A JSON value classified as a JSON-RPC 2.0 message, or the answer to an invalid one. */
type Inbound =
  | { readonly kind: 'request'; readonly message: Request }
  | { readonly kind: 'notification'; readonly message: Notification }
  | { readonly kind: 'response' }
  | { readonly kind: 'faulty'; readonly answer: Response }
  /** A malformed notification, which gets no answer (JSON-RPC 2.0, section 4.1). */
  | { readonly kind: 'dropped' }

/** Maximum length of an id and of a method, in characters. */
const maxName = 1024

/** Returns the answer to a request that failed. `id` is null when it is unknown. */
export function errorAnswer(id: RequestId | null, error: WireError): Response {
  return { jsonrpc: '2.0', id, error }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Classifies one message (not a batch). It does not check methods or their params. */
export function classifyMessage(value: unknown): Inbound {
  const faulty = (id: RequestId | null, code: number, message: string): Inbound =>
    isNotification ? { kind: 'dropped' } : { kind: 'faulty', answer: errorAnswer(id, { code, message }) }
  let isNotification = false
  if (!isObject(value)) return faulty(null, wireErrorCodes.invalidRequest, 'The message is not a JSON-RPC object.')
  // Some clients write an id of null into their notifications.
  if (typeof value.method === 'string')
    isNotification = value.id === undefined || (value.id === null && value.method.startsWith('notifications/'))
  const id = isId(value.id) ? value.id : null
  if (value.jsonrpc !== '2.0')
    return faulty(id, wireErrorCodes.invalidRequest, 'The message does not say "jsonrpc": "2.0".')
  if ((value.method ?? undefined) === undefined && ('result' in value || 'error' in value)) return { kind: 'response' }
  if (typeof value.method !== 'string') return faulty(id, wireErrorCodes.invalidRequest, 'The method is not a string.')
  if (id === null && !isNotification)
    return faulty(
      null,
      wireErrorCodes.invalidRequest,
      'The id is neither a string of at most 1024 characters nor an integer.',
    )
  if ((value.result ?? value.error ?? undefined) !== undefined)
    return faulty(id, wireErrorCodes.invalidRequest, 'The message is a request and a response at once.')
  if (value.method.length > maxName) return faulty(id, wireErrorCodes.methodNotFound, 'Method not found')
  if ((value.params ?? undefined) !== undefined && !isObject(value.params))
    return faulty(id, wireErrorCodes.invalidParams, 'The params are not an object.')
  if (isObject(value.params) && (value.params._meta ?? undefined) !== undefined && !isObject(value.params._meta))
    return faulty(id, wireErrorCodes.invalidParams, 'The _meta of the params is not an object.')
  const { method, params } = value
  if (id === null)
    return { kind: 'notification', message: { jsonrpc: '2.0', method, ...(isObject(params) ? { params } : {}) } }
  if (isObject(params)) return { kind: 'request', message: { jsonrpc: '2.0', id, method, params } }
  return { kind: 'request', message: { jsonrpc: '2.0', id, method } }
}

function isId(value: unknown): value is RequestId {
  return (
    (typeof value === 'string' && value.length <= maxName) || (typeof value === 'number' && Number.isSafeInteger(value))
  )
}

/**
 * Formats a message. An answer longer than `limit` bytes becomes an error that explains how to read less; one that cannot be written, such
 * as metadata that is nested too deeply, an internal error.
 *
 * @param linkOf Returns a link to the whole content, for the error of an answer that is too long.
 */
export function formatMessage(message: unknown, limit?: number, linkOf?: LinkOf): string {
  try {
    return formatJson(message, limit)
  } catch (error) {
    return formatJson(unwritableAnswerError(message, error, linkOf))
  }
}

/** Returns the error in the place of an answer that could not be written. */
export function unwritableAnswerError(message: unknown, error: unknown, linkOf?: LinkOf): Response {
  const id = isObject(message) && isId(message.id) ? message.id : null
  if (!isResourceError(error)) return errorAnswer(id, { code: wireErrorCodes.internal, message: 'Internal error' })
  const link = linkOf?.()
  const data = link === undefined ? { ...error.detail } : { ...error.detail, link }
  return errorAnswer(id, { code: wireErrorCodes.invalidParams, message: error.message, data })
}

/** Whether the content of an answer is read while it is sent. */
export function isStreamed(message: unknown): boolean {
  if (!isObject(message) || !isObject(message.result)) return false
  const { contents } = message.result
  return Array.isArray(contents) && isBlobStream(contents[0]?.blob)
}

type LinkOf = () => ContentLink | undefined

export function idKey(id: RequestId): string {
  return `${typeof id} ${id}`
}

export type Params = Readonly<Record<string, unknown>>

/** @throws ResourceError `invalid` for a value that is not a string. The message repeats nothing of the request. */
export function requiredString(params: Params, name: string): string {
  const value = params[name]
  if (typeof value !== 'string') throw invalid(`The param ${name} is not a string.`, 'params')
  return value
}

/** Returns a text that may be missing: null counts as absent. */
export function optionalString(params: Params, name: string): string | undefined {
  return (params[name] ?? undefined) === undefined ? undefined : requiredString(params, name)
}

const maxArguments = 100

/** @throws ResourceError `invalid` for a value other than an object of up to 100 strings, each with up to `longest` characters. */
export function stringsIn(members: unknown, where: string, longest: number): ReadonlyMap<string, string> {
  if (!isObject(members)) throw invalid(`${where} is not an object.`, 'params')
  const entries = Object.entries(members)
  if (entries.length > maxArguments) throw invalid(`${where} has over ${maxArguments} members.`, 'params')
  return new Map(
    entries.map(([name, value]) => {
      if (typeof value !== 'string' || value.length > longest || name.length > longest)
        throw invalid(`A member of ${where} is not a string of at most ${longest} characters.`, 'params')
      return [name, value]
    }),
  )
}

/** Returns the variables of a completion that are already filled in: `context.arguments`. */
export function filledVariables(context: unknown): ReadonlyMap<string, string> {
  if (context === undefined || context === null) return new Map()
  const args = isObject(context) ? (context.arguments ?? {}) : undefined
  return stringsIn(args, 'context.arguments', 8192)
}

export interface WireError {
  readonly code: number
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** The codes of errors of JSON-RPC and of MCP. */
export const wireErrorCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** Up to 2025-11-25; since then it is {@link wireErrorCodes.invalidParams} with `data: { uri }`. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const

export function invalidParams(message: string): WireError {
  return { code: wireErrorCodes.invalidParams, message }
}

/** An error with a code of JSON-RPC or MCP. The client gets it, with a long message cut. */
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

const maxEcho = 1024

/** The message for missing and denied resources. */
const notFoundMessage = 'Resource not found'

/**
 * Converts a failure to its form for clients. Missing and denied give the same bytes; for `unavailable`, `internal` and errors other than
 * {@link ResourceError}, the client gets a fixed sentence, and the log has the details.
 */
export function errorToWire(error: unknown, revision: Revision, uri: string | undefined, log: Log): WireError {
  if (!(error instanceof ResourceError)) {
    log('error', 'a request failed', { error })
    return { code: wireErrorCodes.internal, message: 'Internal error' }
  }
  switch (error.kind) {
    case 'not-found':
      return {
        code: revision === modernRevision ? wireErrorCodes.invalidParams : wireErrorCodes.resourceNotFound,
        message: notFoundMessage,
        ...(uri === undefined || uri.length > maxEcho ? {} : { data: { uri } }),
      }
    case 'invalid':
    case 'too-large': {
      const { fault: _, ...data } = error.detail
      return { code: wireErrorCodes.invalidParams, message: error.message, data }
    }
    case 'unavailable':
      log('warn', 'a source is unavailable', { error })
      return {
        code: wireErrorCodes.internal,
        message: 'A source of this server does not answer now, or the server is busy. Try again later.',
        data: { reason: 'unavailable', ...retryAfterOf(error) },
      }
    case 'internal':
      log('error', 'a request failed', { error })
      return { code: wireErrorCodes.internal, message: 'Internal error' }
  }
}

function retryAfterOf({ detail: { retryAfter } }: ResourceError): { readonly retryAfter?: number } {
  return typeof retryAfter === 'number' ? { retryAfter } : {}
}

/** Maximum length of the message of a {@link ProtocolError}, in characters. */
const maxMessageLength = 500

export function protocolErrorToWire({ code, message, data }: ProtocolError): WireError {
  const short = message.length > maxMessageLength ? `${message.slice(0, maxMessageLength)}…` : message
  return { code, message: short, ...(isObject(data) ? { data } : {}) }
}

/** The protocol revisions that are served, newest first. The first is stateless; the others begin with `initialize`. */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const

export type Revision = (typeof revisions)[number]

/** The revision without sessions, in which every request declares its revision in `_meta`. */
export const modernRevision = '2026-07-28' satisfies Revision

/** The revisions that begin with `initialize`: all that the HTTP+SSE transport of 2024-11-05 serves. */
export const legacyRevisions: readonly Revision[] = revisions.filter((revision) => revision !== modernRevision)

/** The assumed revision of a request that declares none (2025-06-18, basic/transports). */
export const assumedRevision = '2025-03-26' satisfies Revision

export function isRevision(text: unknown): text is Revision {
  return (revisions as readonly unknown[]).includes(text)
}

export function isAtLeast(revision: Revision, first: Revision): boolean {
  return revision >= first
}

/** Whether a revision has JSON-RPC batches: 2025-03-26 requires them, 2025-06-18 removed them. */
export function hasBatches(revision: Revision): boolean {
  return revision <= '2025-03-26'
}

/** The keys of `_meta` that the specification defines (2026-07-28, basic/index, `_meta`). */
export const protocolKeys = {
  /** The revision that a request speaks. */
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  /** The least severe log message that the client wants during a request. */
  logLevel: 'io.modelcontextprotocol/logLevel',
  /** The server's name and version, in each result. */
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

export const eventsExtension = 'io.modelcontextprotocol/events'

/** The levels of a log message, least severe first (RFC 5424, section 6.2.1). */
const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export type LogLevel = (typeof logLevels)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return (logLevels as readonly unknown[]).includes(value)
}

/** Whether a request with this `_meta` wants messages of a level. Without a level in it, it wants none. */
export function wantsLog(meta: Readonly<Record<string, unknown>>, level: LogLevel): boolean {
  const least = meta[protocolKeys.logLevel]
  return isLogLevel(least) && logLevels.indexOf(level) >= logLevels.indexOf(least)
}
