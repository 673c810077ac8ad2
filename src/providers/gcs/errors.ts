import { invalid, notFound, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { ObjectFault } from '../objects/store.ts'
import { silent, wayFault } from '../objects/ways.ts'
import { codeOf, NoCredentialsError } from './client.ts'

const unavailable = (message: string, cause?: unknown) =>
  new ResourceError('unavailable', message, {}, cause === undefined ? undefined : { cause })

/** Converts an error of the connection to one for the caller. */
export function translate(error: unknown): unknown {
  if (error instanceof ObjectFault || error instanceof ResourceError) return error
  if (error instanceof NoCredentialsError)
    return unavailable(
      'There are no credentials, or they cannot be used. Set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, ' +
        'name a "keyFile", or say "anonymous": true for a public bucket. Those of a machine of Google are only asked for with ' +
        'METADATA_SERVER_DETECTION=assume-present.',
    )
  const code = codeOf(error)
  return unavailable(wayFault(code) ?? silent, new Error(code ?? 'unknown'))
}

/**
 * Converts a status other than success to an error for the caller. Facts that the operator needs and the caller must not see go to the log.
 *
 * @param reason The `reason` in the answer: a single word.
 */
export function refusal(status: number, reason: string | undefined, about: 'list' | 'object', log: Log): unknown {
  if (status === 412) return new ObjectFault('replaced')
  if (status === 416) return new ObjectFault('unsatisfiable')
  if (reason === 'resourceIsEncryptedWithCustomerEncryptionKey')
    return invalid('The object is encrypted with a key that only its owner has. It cannot be read here.', 'encrypted')
  if (reason === 'userProjectMissing' || (status === 400 && reason === 'required'))
    return unavailable('The reader of this bucket pays for it. Name the project that pays in "userProject".')
  if (status === 401) return unavailable('The store does not know the credentials, or they have expired. Renew them.')
  if (status === 403 && reason !== undefined && /ratelimit|quota/i.test(reason))
    return unavailable('The store asks for fewer requests. Try again later.')
  if (status === 403 || status === 404) {
    if (about === 'list')
      return status === 403
        ? unavailable('The credentials may not list the bucket. Give them the right storage.objects.list.')
        : unavailable('There is no such bucket. Correct "bucket".')
    if (status === 403)
      log('warn', 'the store refuses to give an object: it counts as absent', { code: reason ?? 'forbidden' })
    return notFound()
  }
  if (status === 429 || status === 503) return unavailable('The store asks for fewer requests. Try again later.')
  if (status >= 300 && status < 400)
    return unavailable('The endpoint leads elsewhere. Nothing is followed there: correct "endpoint".')
  return unavailable(silent, new Error(`status ${status}`))
}
