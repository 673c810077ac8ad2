import { isAnswer, isUnknownMethod } from '../../client/index.ts'
import {
  type ErrorDetail,
  type ErrorReason,
  invalid,
  isResourceError,
  notFound,
  ResourceError,
} from '../../core/errors.ts'

/** The reasons of a server that are known words: no other text of the server is passed on. */
const knownReasons = ['range', 'query', 'not-a-directory', 'unknown-template'] as const satisfies readonly ErrorReason[]

const knownReason = (reason: ErrorReason | undefined) => knownReasons.find((known) => known === reason)

/** Time after which a client should retry if the server says that it cannot answer now, in seconds. */
const retryAfter = 2

/**
 * Converts a failure of the server to an error of this process. Its message goes only to the log: it is untrusted text.
 *
 * An error answer does not make the connection unavailable: one failing resource does not affect the others.
 */
export function faultOf(error: unknown): ResourceError {
  if (!isResourceError(error)) return new ResourceError('internal', 'The client failed.', {}, { cause: error })
  const options = { cause: error }
  switch (error.kind) {
    case 'not-found':
      return new ResourceError('not-found', 'the server says that nothing is there', {}, options)
    case 'invalid': {
      const { reason } = error.detail
      const known = knownReason(reason) ?? 'refused'
      return invalid('The server behind this mount refuses what is asked of it.', known)
    }
    case 'too-large': {
      const { limit } = error.detail
      const told: ErrorDetail = { reason: 'too-large', ...(typeof limit === 'number' ? { limit } : {}) }
      return new ResourceError('too-large', 'This is longer than what is taken from the server.', told, options)
    }
    case 'unavailable':
      return new ResourceError('unavailable', error.message, isAnswer(error) ? { retryAfter } : {}, options)
    case 'internal':
      return new ResourceError('internal', error.message, {}, options)
  }
}

/** Converts a failure to read: for a single URI, "invalid" means that the server does not have it. */
export function readFaultOf(error: unknown, hasParams: boolean): ResourceError {
  if (isUnknownMethod(error)) return notFound('the server has no resources to read')
  const isForeign = isResourceError(error, 'invalid') && knownReason(error.detail.reason) === undefined
  if (isForeign && !hasParams) return new ResourceError('not-found', 'the server refuses the URI', {}, { cause: error })
  return faultOf(error)
}

/** Converts a failure to list to `unavailable`: the mount is left out for now, so that the others are listed. */
export function listFaultOf(error: unknown): ResourceError {
  if (isResourceError(error, 'unavailable')) return faultOf(error)
  const message = error instanceof Error ? error.message : String(error)
  return new ResourceError('unavailable', `The server cannot be listed: ${message}`, {}, { cause: error })
}
