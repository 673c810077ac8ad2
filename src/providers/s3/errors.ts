import { invalid, notFound, ResourceError, unavailable } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { connectionAdvice, invalidAnswerMessage } from '../objects/endpoint.ts'
import { ObjectFault } from '../objects/store.ts'

/** The facts of a client error that may be logged or shown. Its text may come from the store. */
interface Failure {
  /** The code of the S3 API, or the name of the error. */
  readonly code: string
  readonly status: number | undefined
  /** The error code of the system, such as `ECONNREFUSED`. */
  readonly system: string | undefined
}

const credentials: ReadonlyMap<string, string> = new Map(
  Object.entries({
    InvalidAccessKeyId: 'The store does not know the access key. Correct it, or ask for a new one.',
    SignatureDoesNotMatch: 'The secret key does not belong to the access key. Correct it.',
    ExpiredToken: 'The credentials have expired. Renew them.',
    ExpiredTokenException: 'The credentials have expired. Renew them.',
    TokenRefreshRequired: 'The credentials have expired. Renew them.',
    InvalidToken: 'The session token is not valid. Renew the credentials.',
    InvalidClientTokenId: 'The credentials are not valid. Renew them.',
    RequestTimeTooSkewed: 'The clock of this machine differs from that of the store by too much. Set it.',
    RequestExpired: 'The clock of this machine differs from that of the store by too much. Set it.',
    AccountProblem: 'The account of the store is blocked. Check it there.',
    NotSignedUp: 'The account of the store is not activated. Check it there.',
    CredentialsProviderError:
      'No usable credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, set a "profile", or set ' +
      '"anonymous": true for a public bucket. The credentials of an EC2 machine are used only with AWS_EC2_METADATA_DISABLED=false.',
  }),
)

const bucketFaults = {
  NoRegion: 'No region is set. Set "region", or the variable AWS_REGION for the process that runs hikidashi.',
  NoSuchBucket: 'There is no such bucket at the endpoint. Correct "bucket", "endpoint" or "region".',
  InvalidBucketName: 'There is no such bucket at the endpoint. Correct "bucket".',
  PermanentRedirect:
    'The bucket is in another region, and redirects are not followed. Set "region" to the region of the bucket.',
  TemporaryRedirect: 'The bucket redirects to another host for now, and redirects are not followed. Try again later.',
  AuthorizationHeaderMalformed: 'The bucket is in another region. Set "region" to the region of the bucket.',
  IllegalLocationConstraintException: 'The bucket is in another region. Set "region" to the region of the bucket.',
  MethodNotAllowed: 'The server at the endpoint is not S3. Correct "endpoint".',
  NotImplemented: 'The store does not support a request that hikidashi needs. Use another endpoint.',
}

const bucketFault = (code: string) => new Map<string, string>(Object.entries(bucketFaults)).get(code)

/** Whether the store refused a HEAD for a reason that only the answer to a GET can tell. */
export function isUnexplainedRefusal(error: unknown): boolean {
  const { code, status } = toFailure(error)
  return (status === 403 || status === 400) && !isCode(code)
}

/** Whether a code is specific, instead of a substitute for the status of an answer without body. */
function isCode(code: string): boolean {
  return !/^(?:\d+|Forbidden|BadRequest|Unknown|UnknownError|Error|S3ServiceException)$/.test(code)
}

/**
 * Converts an error of the client to one for the caller. Facts that the caller must not see go to the log.
 *
 * @param about Subject of the request: `list`, or one object.
 */
export function toCallerError(error: unknown, about: 'list' | 'object', log: Log): unknown {
  if (error instanceof ObjectFault || error instanceof ResourceError) return error
  const { code, status, system } = toFailure(error)
  const cause = new Error(`${sanitizeErrorCode(code)} ${status ?? ''}`.trim())
  const away = (message: string) => unavailable(message, {}, cause)
  if (code === 'PreconditionFailed' || status === 412) return new ObjectFault('replaced')
  if (code === 'InvalidRange' || status === 416) return new ObjectFault('unsatisfiable')
  if (code === 'InvalidObjectState')
    return invalid('The object is archived. Restore it in the store, and read it again afterwards.', 'withheld')
  if (code === 'ObjectIsEncrypted' || (about === 'object' && code === 'InvalidRequest'))
    return invalid('The object is encrypted with a key that only its owner has. It cannot be read here.', 'withheld')
  // The client itself throws this before it sends a request.
  if (error instanceof Error && error.message === 'Region is missing') return away(bucketFaults.NoRegion)
  const fault = credentials.get(code) ?? bucketFault(code) ?? connectionAdvice(system)
  if (fault !== undefined) return away(fault)
  if (code === 'NoSuchKey' || code === 'NotFound' || code === 'NoSuchVersion' || code === 'KeyTooLongError')
    return notFound()
  if (status === 403 || code === 'AccessDenied') {
    if (about === 'list') return away('The credentials may not list the bucket. Give them the right s3:ListBucket.')
    log('warn', 'the store refuses access to an object: it is treated as missing', { code: sanitizeErrorCode(code) })
    return notFound('the store refuses access to the object')
  }
  if (status === 404) return about === 'list' ? away(bucketFaults.NoSuchBucket) : notFound()
  if (status === 503 || status === 429 || code === 'SlowDown')
    return away('The store limits the rate of requests. Try again later.')
  if (status !== undefined && status >= 300 && status < 400) return away(bucketFaults.PermanentRedirect)
  if (status === 405 || status === 501) return away(bucketFaults.MethodNotAllowed)
  if (code === 'TooLong') return away('The answer of the store is too large. Check which server is at the endpoint.')
  if (status === 200 || code === 'SyntaxError')
    return away('The answer of the store is not one of S3. Check which server is at the endpoint.')
  return away(invalidAnswerMessage)
}

/** Converts an error while a body was read: a time-out for the caller; any other means that the body is incomplete, or not what was stored. */
export function toBodyError(error: unknown, log: Log): unknown {
  const { code, system } = toFailure(error)
  if (code === 'TimeoutError' && system === undefined) return toCallerError(error, 'object', log)
  return new ObjectFault('torn')
}

function toFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: 'Unknown', status: undefined, system: undefined }
  const facts = error as Error & {
    readonly code?: unknown
    readonly $metadata?: { readonly httpStatusCode?: number }
    readonly $response?: { readonly statusCode?: number }
  }
  const system = typeof facts.code === 'string' ? facts.code : undefined
  return { code: error.name, status: facts.$metadata?.httpStatusCode ?? facts.$response?.statusCode, system }
}

function sanitizeErrorCode(code: string): string {
  return /^[A-Za-z][\w.]{0,63}$/.test(code) ? code : 'unknown'
}
