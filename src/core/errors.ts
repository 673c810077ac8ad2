/**
 * Why an operation on a resource failed. The list is closed: every edge (JSON-RPC, HTTP, exit code) maps it once, by an
 * exhaustive switch, and whatever is not a {@link ResourceError} becomes `internal` there.
 *
 * - `invalid`: the request itself is wrong (a malformed URI, cursor, range, argument). Retrying it cannot help.
 * - `not-found`: nothing is there, or the principal may not see it. The two are never told apart.
 * - `too-large`: it is there, and larger than the limit; a range of it can be read.
 * - `unavailable`: the source does not answer just now. Retrying later can help.
 * - `internal`: a fault of ours.
 */
export type ErrorKind = 'invalid' | 'not-found' | 'too-large' | 'unavailable' | 'internal'

/** Facts about a failure that a client can act on, such as `reason`, `limit`, `size`. They are sent as they are. */
export type ErrorDetail = Readonly<Record<string, string | number>>

/**
 * The one error that crosses a module boundary.
 *
 * The message and detail of `invalid` and `too-large` are shown to the client, so they name what the client sent or may
 * see, and nothing else: no path of this machine, host name, SQL or text of another library. For the other kinds both
 * stay in the log, and the client gets one fixed sentence. `cause` is never sent.
 */
export class ResourceError extends Error {
  readonly kind: ErrorKind
  readonly detail: ErrorDetail

  constructor(kind: ErrorKind, message: string, detail: ErrorDetail = {}, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ResourceError'
    this.kind = kind
    this.detail = detail
  }
}

/** What a provider throws when nothing is at a path. The message goes to the log alone. */
export function notFound(message = 'not found'): ResourceError {
  return new ResourceError('not-found', message)
}

/** What stands for what the rules of a mount deny. A client cannot tell it from `not found`; the audit log can. */
export function denied(): ResourceError {
  return new ResourceError('not-found', 'denied', { reason: 'denied' })
}

/** The same of an error that a source threw in its place. It is not made anew: that takes time, by which it could be told apart. */
export function asDenied(error: ResourceError): ResourceError {
  return Object.create(error, { detail: { value: { reason: 'denied' } } })
}

/** What a provider throws where a content is larger than what is asked for just now: `most` of the context. */
export function later(): ResourceError {
  return new ResourceError('too-large', 'It is asked for again in a moment.', { reason: 'later' })
}

/** Whether it is to be asked for again. */
export function isLater(error: unknown): boolean {
  return isResourceError(error, 'too-large') && error.detail.reason === 'later'
}

/** A malformed request. `reason` is a short, stable, machine-readable word, sent as `data.reason`. */
export function invalid(message: string, reason: string, detail: ErrorDetail = {}): ResourceError {
  return new ResourceError('invalid', message, { reason, ...detail })
}

/** Whether an error is a {@link ResourceError}, of the given kind where one is named. */
export function isResourceError(error: unknown, kind?: ErrorKind): error is ResourceError {
  return error instanceof ResourceError && (kind === undefined || error.kind === kind)
}
