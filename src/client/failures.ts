import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { isResourceError } from '../core/errors.ts'
import { memoryFault, printableText, rpcErrorCodes, streamEndedCode } from './errors.ts'
import { unreadableCode } from './messages.ts'

/** Whether the server answered that it does not know the method. */
export function isUnknownMethodError(error: unknown): boolean {
  return isResourceError(error, 'internal') && error.detail.code === rpcErrorCodes.methodNotFound
}

/** Whether the server refused a request, and did not run it, because its headers differ from its body. */
export function isHeaderMismatchError(error: unknown): boolean {
  return isResourceError(error, 'internal') && error.detail.code === rpcErrorCodes.headerMismatch
}

/** Whether the server itself answered with this failure, as opposed to a failure of the connection to it. */
export function isErrorAnswer(error: unknown): boolean {
  return isResourceError(error) && error.cause instanceof ProtocolError && error.cause.code !== streamEndedCode
}

/** Whether a failed request is worth a retry on another connection: this one failed, or its session is gone (HTTP 400 or 404). */
export function isConnectionLostError(error: unknown): boolean {
  if (!isResourceError(error, 'unavailable') || isErrorAnswer(error)) return false
  // A retry would take as much memory again.
  if (error.detail.fault === memoryFault) return false
  const { cause } = error
  if (cause instanceof SdkHttpError) return [400, 404].includes(cause.status)
  return !(cause instanceof SdkError && cause.code === SdkErrorCode.RequestTimeout)
}

/** Returns the message of a refused request, if a caller can act on it. Undefined for any other failure. */
export function refusalMessage(error: unknown): string | undefined {
  if (isResourceError(error, 'invalid')) return error.message
  if (!isResourceError(error, 'internal') || !(error.cause instanceof ProtocolError)) return undefined
  const { code, message } = error.cause
  const isOwn =
    code === unreadableCode || code === rpcErrorCodes.methodNotFound || code === rpcErrorCodes.headerMismatch
  return isOwn || message === '' ? undefined : printableText(message)
}
