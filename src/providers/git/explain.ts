import { isResourceError, ResourceError } from '../../core/errors.ts'
import { codeOf } from '../files/pool.ts'

/** What the file system says, as an error that can be told. */
export function explained(error: unknown): unknown {
  const code = codeOf(error)
  if (isResourceError(error) || code === undefined) return error
  return new ResourceError('unavailable', `The file system says ${code}.`, {}, { cause: error })
}
