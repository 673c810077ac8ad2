import { isResourceError, ResourceError } from '../../core/errors.ts'
import { codeOf } from '../files/pool.ts'

/** Converts an error of the file system into one with a message for clients. */
export function explained(error: unknown): unknown {
  const code = codeOf(error)
  if (isResourceError(error) || code === undefined) return error
  return new ResourceError('unavailable', `The file system says ${code}.`, {}, { cause: error })
}
