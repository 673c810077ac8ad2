import { type ErrorReason, invalid, ResourceError } from '../core/errors.ts'

/** Why a store could not do an operation, as `detail.reason`. */
export type Reason = 'gone' | 'busy' | 'full' | 'read-only' | 'damaged'

const sentences: Readonly<Record<Reason, string>> = {
  gone: 'The store does not answer. It is asked again the next time.',
  busy: 'The store is busy with others for too long. Try again.',
  full: 'The store has no room left. Free some space where it lies: it goes on by itself.',
  'read-only': 'The store may not be written to. Let this user write where it lies: it goes on by itself.',
  damaged: 'The store is damaged, and could not be begun anew.',
}

/** @param code The code of the cause in the engine's own list, such as `SQLITE_FULL`: never text of the engine. */
export function failure(reason: Reason, code?: string): ResourceError {
  const text = code === undefined ? sentences[reason] : `${sentences[reason]} (${code})`
  return new ResourceError(reason === 'damaged' ? 'internal' : 'unavailable', text, { reason })
}

/** A bug in our code: the engine rejects the request as invalid. */
export function fault(code: string): ResourceError {
  return new ResourceError('internal', `The store does not understand what is asked of it. (${code})`)
}

/** Returns the error for a value that cannot be stored, or a query that cannot be answered. */
export function refused(message: string, reason: ErrorReason): ResourceError {
  return invalid(message, reason)
}
