/**
 * The kind of a failed operation on a resource. The list is closed: every edge (JSON-RPC, HTTP, exit code) maps it once, by an
 * exhaustive switch, and maps every error that is not a {@link ResourceError} to `internal`.
 *
 * - `invalid`: the request itself is wrong (a malformed URI, cursor, range, argument). A retry cannot help.
 * - `not-found`: nothing exists there, or the principal may not see it. Clients can never tell the two apart.
 * - `too-large`: it exists, and is larger than the limit; a range of it can be read.
 * - `unavailable`: the source does not answer at the moment. A later retry can help.
 * - `internal`: a fault of the server.
 */
export type ErrorKind = 'invalid' | 'not-found' | 'too-large' | 'unavailable' | 'internal'

/** Reason of an error: a short, stable, machine-readable word. It is sent as `data.reason`, so a client may depend on it. */
export type ErrorReason =
  | 'abusive'
  | 'address'
  | 'after'
  | 'allow'
  | 'allowed-hosts'
  | 'ambiguous-ref'
  | 'anonymous'
  | 'archived'
  | 'argument'
  | 'as'
  | 'attach'
  | 'audit'
  | 'author'
  | 'authority'
  | 'authorization'
  | 'away'
  | 'backslash'
  | 'basket'
  | 'binary'
  | 'bucket'
  | 'budget'
  | 'busy'
  | 'columns'
  | 'content'
  | 'contents'
  | 'control-character'
  | 'cursor'
  | 'damaged'
  | 'damaged-object'
  | 'data-uri'
  | 'database'
  | 'denied'
  | 'direct'
  | 'display'
  | 'dot-segment'
  | 'drives'
  | 'empty'
  | 'empty-prompt'
  | 'empty-segment'
  | 'encoded-slash'
  | 'encoding'
  | 'encrypted'
  | 'ended'
  | 'ending'
  | 'endpoint'
  | 'expires'
  | 'export-limit'
  | 'file'
  | 'foreign'
  | 'form'
  | 'format'
  | 'fragment'
  | 'full'
  | 'git'
  | 'glob'
  | 'gone'
  | 'handler'
  | 'id'
  | 'insecure'
  | 'interval'
  | 'invalid-params'
  | 'json'
  | 'key'
  | 'keys'
  | 'lang'
  | 'later'
  | 'limit'
  | 'link'
  | 'links'
  | 'listen'
  | 'lock-file'
  | 'manifest'
  | 'match'
  | 'max-bytes'
  | 'maxBytes'
  | 'maxFiles'
  | 'memory'
  | 'missing-argument'
  | 'missing-object'
  | 'mode'
  | 'name'
  | 'newer'
  | 'no-text'
  | 'not-a-directory'
  | 'not-built'
  | 'not-unicode'
  | 'number'
  | 'options'
  | 'output'
  | 'overlapping-addresses'
  | 'package'
  | 'pages'
  | 'params'
  | 'path'
  | 'percent-encoding'
  | 'pins'
  | 'platform'
  | 'pointer'
  | 'poll'
  | 'prefix'
  | 'program'
  | 'prompt'
  | 'prompt-resource'
  | 'public'
  | 'query'
  | 'range'
  | 'read-only'
  | 'reconcile'
  | 'record'
  | 'refused'
  | 'repository'
  | 'resource'
  | 'root'
  | 'route'
  | 'rules'
  | 'samples'
  | 'schema'
  | 'search'
  | 'secret'
  | 'settings'
  | 'sheet'
  | 'similar-addresses'
  | 'slash'
  | 'stale'
  | 'step'
  | 'syntax'
  | 'tail'
  | 'taskType'
  | 'template'
  | 'template-value'
  | 'term'
  | 'terms'
  | 'text'
  | 'time'
  | 'timeout'
  | 'tls'
  | 'tokens'
  | 'too-far'
  | 'too-large'
  | 'too-long'
  | 'too-many'
  | 'too-many-subscriptions'
  | 'ttl'
  | 'type'
  | 'unavailable'
  | 'unknown-argument'
  | 'unknown-prompt'
  | 'unknown-template'
  | 'unknown-tool'
  | 'uri-too-long'
  | 'url'
  | 'userinfo'
  | 'weight'
  | 'white-space'

/** Facts about a failure that a client can act on, such as `reason`, `limit`, `size`. They are sent unchanged. */
export type ErrorDetail = Readonly<Record<string, string | number>> & { readonly reason?: ErrorReason }

const brand: unique symbol = Symbol.for('hikidashi.ResourceError') as never

/**
 * The only error that crosses a module boundary.
 *
 * The message and detail of `invalid` and `too-large` are shown to the client, so they name only what the client sent or may see:
 * no path of this machine, host name, SQL or text of another library. For the other kinds both stay in the log, and the client
 * gets a fixed sentence. `cause` is never sent.
 */
export class ResourceError extends Error {
  /** Whether a value is an error of this class, or of the same class in another copy of this package, which a source from outside may use. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && brand in value
  }

  readonly [brand] = true
  readonly kind: ErrorKind
  readonly detail: ErrorDetail

  constructor(kind: ErrorKind, message: string, detail: ErrorDetail = {}, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ResourceError'
    this.kind = kind
    this.detail = detail
  }
}

/** Returns the error that a provider throws when no entry exists at a path. The message goes only to the log. */
export function notFound(message = 'not found'): ResourceError {
  return new ResourceError('not-found', message)
}

/** Returns the error for a path that the rules of a mount deny. A client cannot tell it from `not found`; the audit log can. */
export function denied(): ResourceError {
  return new ResourceError('not-found', 'denied', { reason: 'denied' })
}

/** Marks an error of a source as denied. It does not create a new error: the time for that would reveal the denial. */
export function asDenied(error: ResourceError): ResourceError {
  return Object.create(error, { detail: { value: { reason: 'denied' } } })
}

/**
 * Returns the error that a provider throws when a content is larger than `most` of the context, the current limit. The catalog then
 * retries without a limit.
 */
export function later(size?: number): ResourceError {
  const known = size === undefined ? {} : { size }
  return new ResourceError('too-large', 'It will be requested again in a moment.', { reason: 'later', ...known })
}

/** Whether an error is that of {@link later}: the read is retried without a limit. */
export function isLater(error: unknown): boolean {
  return isResourceError(error, 'too-large') && error.detail.reason === 'later'
}

/** Whether a later retry may succeed, so that the error must not be cached. */
export function isTransient(error: unknown): boolean {
  return isLater(error) || isResourceError(error, 'unavailable') || isResourceError(error, 'internal')
}

/** Returns the error of a source that does not answer at the moment. The message and the detail go only to the log. */
export function unavailable(message: string, detail: ErrorDetail = {}, cause?: unknown): ResourceError {
  return new ResourceError('unavailable', message, detail, cause === undefined ? {} : { cause })
}

/** Returns the error of a content above a limit. Its reason is `too-large`, unless the detail has another. */
export function tooLarge(message: string, detail: ErrorDetail = {}): ResourceError {
  return new ResourceError('too-large', message, { reason: 'too-large', ...detail })
}

/** Returns the error of a malformed request. */
export function invalid(message: string, reason: ErrorReason, detail: ErrorDetail = {}): ResourceError {
  return new ResourceError('invalid', message, { reason, ...detail })
}

/** The error for a cursor that the listing did not give to this principal. */
export function foreignCursor(): ResourceError {
  return invalid('The cursor is not one that this listing gave to you. Begin again.', 'cursor')
}

/** Returns the reason that other code (another server, or a provider made with the toolkit) has chosen, unchanged, as an {@link ErrorReason}. */
export function foreignReason(reason: string): ErrorReason {
  return reason as ErrorReason
}

/** Returns the error of a malformed request. `reason` is a short, stable, machine-readable word of the provider, sent as `data.reason`. */
export function invalidRequest(message: string, reason: string, detail: ErrorDetail = {}): ResourceError {
  return invalid(message, foreignReason(reason), detail)
}

/** Returns the code of an error of the system or of a library, such as `ENOENT`. Undefined when it has none. */
export function errorCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether an error is a {@link ResourceError}, and of the given kind if one is given. */
export function isResourceError(error: unknown, kind?: ErrorKind): error is ResourceError {
  return error instanceof ResourceError && (kind === undefined || error.kind === kind)
}

/** For `catch`: returns a value instead of a {@link ResourceError}, of the given kind if one is given, and throws every other error. */
export function fallbackTo<T>(value: T, kind?: ErrorKind): (error: unknown) => T {
  return (error) => {
    if (isResourceError(error, kind)) return value
    throw error
  }
}

/** Returns the result of `work`; if it throws, that of `fallback`, which gets the error. */
export function attempt<T, F>(work: () => T, fallback: (error: unknown) => F): T | F {
  try {
    return work()
  } catch (error) {
    return fallback(error)
  }
}
