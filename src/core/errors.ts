/**
 * The kind of a failed operation on a resource.
 *
 * - `invalid`: the request itself is wrong (a malformed URI, cursor, range, argument).
 * - `not-found`: nothing exists there, or the principal may not see it. Clients cannot tell the two apart.
 * - `too-large`: the content or the answer is larger than a limit. A part of it may be readable.
 * - `unavailable`: the source does not answer at the moment. A later retry can help.
 * - `internal`: a fault of the server.
 */
export type ErrorKind = 'invalid' | 'not-found' | 'too-large' | 'unavailable' | 'internal'

/**
 * The way in which a client can act on an error. It is sent as `data.reason`.
 *
 * - `uri`: the URI is malformed. Correct its spelling.
 * - `cursor`: the cursor is not one that this listing gave to this caller. Begin the listing again.
 * - `range`: the part is malformed, begins after the end (`size`, `lines`), or needs an earlier part first (`place`). Ask for another part.
 * - `not-a-directory`: the resource is not a directory. Read it.
 * - `query`: the query of the URI is malformed, or no template declares it. Leave it out, or fill in a template.
 * - `parameter`: a parameter of a template has a wrong value (`parameter` names it). Correct it.
 * - `argument`: an argument of a tool, a prompt or a function is wrong, missing or unknown. Correct it.
 * - `params`: the params of the request have the wrong form. Correct the client.
 * - `unknown-name`: there is no such template, prompt or tool. List them again.
 * - `too-large`: the content is larger than a limit (`limit`, `size`). Read a part, or follow `link`.
 * - `too-many`: there are more of something than a limit (`limit`, `of`), such as subscriptions. Give some up.
 * - `too-much`: the answer takes too much time, memory or samples. Ask for less.
 * - `budget`: the required resources exceed the budget of a context. Raise it, or require less.
 * - `withheld`: the content exists, and is not given out: it is archived, encrypted, or cannot be searched for secrets. Follow the
 *   link of the resource, or ask its owner.
 * - `unreadable`: the content is damaged, or has no text. Read another form, or its bytes.
 * - `refused`: the mount does not serve such content, or the server behind it refuses the request. Ask for something else.
 * - `unavailable`: the source does not answer. Try again, after `retryAfter` seconds if it is given.
 * - `busy`: too many requests are in flight. Try again after `retryAfter` seconds.
 * - `rate`: this caller sends too many requests. Send fewer, after `retryAfter` seconds.
 * - `share`: this caller has its share of the requests in flight. Wait for an answer first.
 * - `timeout`: the request took too long. Ask for less, or try again.
 * - `ending`: the server is about to end. Connect again.
 * - `too-slow`: the client did not read its notifications in time. Read faster, and subscribe again.
 * - `configuration`: the configuration, or an option of a function, is wrong. Its author must correct it; a retry cannot help.
 */
export type ErrorReason =
  | 'uri'
  | 'cursor'
  | 'range'
  | 'not-a-directory'
  | 'query'
  | 'parameter'
  | 'argument'
  | 'params'
  | 'unknown-name'
  | 'too-large'
  | 'too-many'
  | 'too-much'
  | 'budget'
  | 'withheld'
  | 'unreadable'
  | 'refused'
  | 'unavailable'
  | 'busy'
  | 'rate'
  | 'share'
  | 'timeout'
  | 'ending'
  | 'too-slow'
  | 'configuration'

/**
 * Facts about a failure that a client can act on, such as `reason`, `limit`, `size`. Those of `invalid` and `too-large` are sent
 * unchanged, except `fault`: the cause, for code inside the server.
 */
export type ErrorDetail = Readonly<Record<string, string | number>> & { readonly reason?: ErrorReason }

const brand: unique symbol = Symbol.for('hikidashi.ResourceError') as never

/**
 * The failure of an operation on a resource.
 *
 * The message and detail of `invalid` and `too-large` are shown to the client, so they name only what the client sent or may see:
 * no path of this machine, host name, SQL or text of another library. For the other kinds the client gets a
 * fixed sentence, and `retryAfter` if it is given. `cause` is not sent.
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

/** Returns the error that a provider throws when no entry exists at a path. The message does not reach the client. */
export function notFound(message = 'not found'): ResourceError {
  return new ResourceError('not-found', message)
}

/** Returns the error for a path that the rules of a mount deny. A client cannot tell it from `not found`; the audit log can. */
export function denied(): ResourceError {
  return new ResourceError('not-found', 'denied', { fault: 'denied' })
}

/** Returns an error of a source, marked as denied. No new error is constructed: the time for that would reveal the denial. */
export function asDenied(error: ResourceError): ResourceError {
  return Object.create(error, { detail: { value: { fault: 'denied' } } })
}

/** Returns the error that a provider throws when a content is larger than `most` of the context, the current limit. */
export function overReadLimitError(size?: number): ResourceError {
  const sizeFact = size === undefined ? {} : { size }
  const message = 'The content is larger than the current limit. Request it again in a moment.'
  return new ResourceError('too-large', message, { fault: 'later', ...sizeFact })
}

/** Whether an error is that of {@link overReadLimitError}. */
export function isOverReadLimit(error: unknown): boolean {
  return isResourceError(error, 'too-large') && error.detail.fault === 'later'
}

/** Whether a later retry may succeed, so that the error must not be cached. */
export function isTransient(error: unknown): boolean {
  return isOverReadLimit(error) || isResourceError(error, 'unavailable') || isResourceError(error, 'internal')
}

/** Returns the error of a source that does not answer at the moment. Of the message and the detail, only `retryAfter` reaches the client. */
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

export function foreignCursorError(): ResourceError {
  return invalid('The cursor does not belong to this list. Begin again without it.', 'cursor')
}

/** Returns the code of an error of the system or of a library, such as `ENOENT`. */
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

/** Returns the result of `work`, or `value` if it throws a {@link ResourceError}, of the given kind if one is given. */
export function valueOr<T, V>(work: () => T, value: V, kind?: ErrorKind): T | V {
  try {
    return work()
  } catch (error) {
    return fallbackTo(value, kind)(error)
  }
}
