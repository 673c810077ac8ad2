import { invalid, notFound, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { replaced, torn, unsatisfiable } from '../objects/store.ts'
import { silent, wayFault } from '../objects/ways.ts'

/** What an error of the client tells that is told on: never its text, which the store may have written. */
interface Failure {
  /** The code of the S3 API, or the name of the error. */
  readonly code: string
  readonly status: number | undefined
  /** The code of the system. */
  readonly system: string | undefined
}

/** What the credentials lack, by the code that says so. */
const credentials: ReadonlyMap<string, string> = new Map(
  Object.entries({
    InvalidAccessKeyId: 'The store does not know the access key. Correct it, or ask for a new one.',
    SignatureDoesNotMatch: 'The secret key is not that of the access key. Correct it.',
    ExpiredToken: 'The credentials have expired. Renew them.',
    ExpiredTokenException: 'The credentials have expired. Renew them.',
    TokenRefreshRequired: 'The credentials have expired. Renew them.',
    InvalidToken: 'The session token is not valid. Renew the credentials.',
    InvalidClientTokenId: 'The credentials are not valid. Renew them.',
    RequestTimeTooSkewed: 'The clock of this machine differs from that of the store by too much. Set it.',
    RequestExpired: 'The clock of this machine differs from that of the store by too much. Set it.',
    AccountProblem: 'The account of the store is blocked. Look at it there.',
    NotSignedUp: 'The account of the store is not signed up. Look at it there.',
    CredentialsProviderError:
      'There are no credentials, or they cannot be used. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a "profile", or say ' +
      '"anonymous": true for a public bucket. Those of an EC2 machine are only asked for with AWS_EC2_METADATA_DISABLED=false.',
  }),
)

/** What is wrong with where the bucket is looked for. */
const places = {
  NoRegion: 'There is no region. Set "region", or AWS_REGION for the process that runs hikidashi.',
  NoSuchBucket: 'There is no such bucket at the endpoint. Correct "bucket", "endpoint" or "region".',
  InvalidBucketName: 'There is no such bucket at the endpoint. Correct "bucket".',
  PermanentRedirect: 'The bucket is in another region. Set "region" to that; nothing is followed there.',
  TemporaryRedirect: 'The bucket is elsewhere just now. Nothing is followed there.',
  AuthorizationHeaderMalformed: 'The bucket is in another region. Set "region" to that.',
  IllegalLocationConstraintException: 'The bucket is in another region. Set "region" to that.',
  MethodNotAllowed: 'What answers at the endpoint is no S3. Correct "endpoint".',
  NotImplemented: 'The store does not know a request that takes. Name another endpoint.',
}

const placeFault = (code: string) => new Map<string, string>(Object.entries(places)).get(code)

/** Whether an error says that the store refused the caller for a reason that only its answer to a GET can tell. */
export function isMute(error: unknown): boolean {
  const { code, status } = failureOf(error)
  return (status === 403 || status === 400) && !isCode(code)
}

/** Codes that stand for a status when there is no body that would say more. */
function isCode(code: string): boolean {
  return !/^(?:\d+|Forbidden|BadRequest|Unknown|UnknownError|Error|S3ServiceException)$/.test(code)
}

/**
 * What an error of the client means for who asked. What the operator has to know, and who asked must not, goes to the log.
 *
 * @param about What was asked for: `list`, or one object.
 */
export function translate(error: unknown, about: 'list' | 'object', log: Log): unknown {
  if (typeof error === 'symbol' || error instanceof ResourceError) return error
  const { code, status, system } = failureOf(error)
  const unavailable = (message: string) =>
    new ResourceError('unavailable', message, {}, { cause: new Error(`${shown(code)} ${status ?? ''}`.trim()) })
  if (code === 'PreconditionFailed' || status === 412) return replaced
  if (code === 'InvalidRange' || status === 416) return unsatisfiable
  if (code === 'InvalidObjectState')
    return invalid(
      'The object is archived. Restore it in the store first; it can be read once that is done.',
      'archived',
    )
  if (code === 'ObjectIsEncrypted' || (about === 'object' && code === 'InvalidRequest'))
    return invalid('The object is encrypted with a key that only its owner has. It cannot be read here.', 'encrypted')
  // It is the client that says so, before it asks.
  if (error instanceof Error && error.message === 'Region is missing') return unavailable(places.NoRegion)
  const known = credentials.get(code) ?? placeFault(code) ?? wayFault(system)
  if (known !== undefined) return unavailable(known)
  if (code === 'NoSuchKey' || code === 'NotFound' || code === 'NoSuchVersion' || code === 'KeyTooLongError')
    return notFound()
  if (status === 403 || code === 'AccessDenied') {
    if (about === 'list')
      return unavailable('The credentials may not list the bucket. Give them the right s3:ListBucket.')
    log('warn', 'the store refuses to give an object: it counts as absent', { code: shown(code) })
    return notFound('the store refuses it')
  }
  if (status === 404) return about === 'list' ? unavailable(places.NoSuchBucket) : notFound()
  if (status === 503 || status === 429 || code === 'SlowDown')
    return unavailable('The store asks for fewer requests. Try again later.')
  if (status !== undefined && status >= 300 && status < 400) return unavailable(places.PermanentRedirect)
  if (status === 405 || status === 501) return unavailable(places.MethodNotAllowed)
  if (code === 'TooLong')
    return unavailable('The store answers with more than there can be. Look at what answers at the endpoint.')
  if (status === 200 || code === 'SyntaxError')
    return unavailable('What the store answers is not what S3 answers. Look at what answers at the endpoint.')
  return unavailable(silent)
}

/** What went wrong while a body was fetched: it came in part only, or is not what the store has a sum of. */
export function translateBody(error: unknown, log: Log): unknown {
  const { code, system } = failureOf(error)
  if (code === 'TimeoutError' && system === undefined) return translate(error, 'object', log)
  return torn
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: 'Unknown', status: undefined, system: undefined }
  const facts = error as Error & {
    readonly code?: unknown
    readonly $metadata?: { readonly httpStatusCode?: number }
    readonly $response?: { readonly statusCode?: number }
  }
  const system = typeof facts.code === 'string' ? facts.code : undefined
  return { code: error.name, status: facts.$metadata?.httpStatusCode ?? facts.$response?.statusCode, system }
}

/** A code as a log may have it: what is none is not repeated. */
function shown(code: string): string {
  return /^[A-Za-z][\w.]{0,63}$/.test(code) ? code : 'unknown'
}
