import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { isResourceError } from '../core/errors.ts'
import { codes, memoryReason, streamEnded } from './errors.ts'

/** Whether a server said that it does not know a method. */
export function isUnknownMethod(error: unknown): boolean {
  return isResourceError(error, 'internal') && error.detail.code === codes.methodNotFound
}

/** Whether a failure is what the server answered, and not one of the way to it. */
export function isAnswer(error: unknown): boolean {
  return isResourceError(error) && error.cause instanceof ProtocolError && error.cause.code !== streamEnded
}

/** Whether a request is worth asking again on another connection: this one has ended, or the server knows nothing of it any more. */
export function isLost(error: unknown): boolean {
  if (!isResourceError(error, 'unavailable') || isAnswer(error)) return false
  // Asked again, it would take as much memory again.
  if (error.detail.reason === memoryReason) return false
  const { cause } = error
  if (cause instanceof SdkHttpError) return [400, 404].includes(cause.status)
  return !(cause instanceof SdkError && cause.code === SdkErrorCode.RequestTimeout)
}
