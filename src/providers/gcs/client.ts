import { Agent as HttpAgent, get as httpGet, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, get as httpsGet } from 'node:https'
import { Storage } from '@google-cloud/storage'
import { errorCodeOf, invalid, notFound, ResourceError, unavailable } from '../../core/errors.ts'
import { sleep } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { traceContext } from '../../core/trace.ts'
import {
  connectionAdvice,
  type Endpoint,
  guardedLookup,
  invalidAnswerMessage,
  mayUseMetadataService,
} from '../objects/endpoint.ts'
import { ObjectFault } from '../objects/store.ts'

interface GcsOptions {
  readonly endpoint: Endpoint | undefined
  readonly keyFile: string | undefined
  readonly anonymous: boolean
  readonly timeoutMs: number
}

const sockets = 32

export type GcsClient = ReturnType<typeof createGcsClient>

type Headers = Readonly<Record<string, string>>

class NoCredentialsError extends Error {}

/**
 * Uses the official client only for credentials, signed links and checksums, and sends the requests itself: the methods of that client cannot be
 * aborted, follow redirects anywhere, and buffer answers of any size. See docs/decisions/0008-object-storage.md.
 */
export function createGcsClient(options: GcsOptions) {
  const { endpoint, keyFile, anonymous, timeoutMs } = options
  const url = endpoint?.url ?? 'https://storage.googleapis.com'
  const secure = endpoint?.secure ?? true
  const storage = new Storage({
    apiEndpoint: url,
    // No request here needs a project; without one the client would search for it.
    projectId: 'hikidashi',
    ...defined({ keyFilename: keyFile }),
  })
  Object.assign(storage.authClient, {
    // The key of a service account signs its own tokens: no request to a token server.
    useJWTAccessWithScope: true,
    ...(mayUseMetadataService() ? {} : { checkIsGCE: false }),
  })
  const agentOptions = { keepAlive: true, maxSockets: sockets, maxFreeSockets: sockets, lookup: guardedLookup }
  const agent = secure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  const attemptTimeoutMs = Math.max(100, Math.floor(timeoutMs / 3))

  const authorize = async (): Promise<Headers> => {
    if (anonymous) return {}
    try {
      return await storage.authClient.getRequestHeaders(url)
    } catch {
      throw new NoCredentialsError()
    }
  }

  const sendOnce = async (target: string, requestHeaders: Headers, signal: AbortSignal): Promise<IncomingMessage> => {
    // Objects stored compressed are served compressed; nothing here unpacks them.
    const headers = { ...(await authorize()), ...traceContext(), 'accept-encoding': 'gzip', ...requestHeaders }
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const request = (secure ? httpsGet : httpGet)(target, { headers, agent, signal }, (response) => {
        clearTimeout(timer)
        resolve(response)
      })
      const timer = setTimeout(
        () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
        attemptTimeoutMs,
      )
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }

  return {
    storage,
    /**
     * Sends a GET request to the JSON API, with retries. Returns an answer of any status; a redirect is not followed. The caller must
     * release an answer that it does not read.
     */
    send: async (
      path: string,
      params: Readonly<Record<string, string | number | undefined>>,
      signal: AbortSignal,
      headers: Headers = {},
    ): Promise<IncomingMessage> => {
      const query = Object.entries(params).flatMap(([name, value]) =>
        value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
      )
      for (let attempt = 1; ; attempt++) {
        const mayRepeat = () => attempt < attempts && !signal.aborted
        try {
          const answer = await sendOnce(`${url}/storage/v1/${path}?${query.join('&')}`, headers, signal)
          const { statusCode = 0 } = answer
          const isTransient = statusCode === 408 || statusCode === 429 || statusCode >= 500
          if (!isTransient || !mayRepeat()) return answer
          discardAnswer(answer)
        } catch (error) {
          if (!isPassingError(error) || !mayRepeat()) throw error
        }
        await sleep(Math.random() * Math.min(firstWaitMs * 2 ** attempt, longestWaitMs), signal)
      }
    },
    close: () => agent.destroy(),
  }
}

export function discardAnswer(answer: IncomingMessage): void {
  answer.on('error', () => {})
  answer.destroy()
}

function isPassingError(error: unknown): boolean {
  return /^(?:ECONNRESET|ECONNREFUSED|EPIPE|ETIMEDOUT|EAI_AGAIN)$/.test(errorCodeOf(error) ?? '')
}

const attempts = 3
/** The wait after attempt n is random, below `firstWaitMs` · 2ⁿ and `longestWaitMs`, in milliseconds. */
const [firstWaitMs, longestWaitMs] = [200, 2000]

export function toCallerError(error: unknown): unknown {
  if (error instanceof ObjectFault || error instanceof ResourceError) return error
  if (error instanceof NoCredentialsError)
    return unavailable(
      'No usable credentials were found, or Google issued no token for them. Set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, ' +
        'set "keyFile", or set "anonymous": true for a public bucket. The credentials of a machine at Google are used only with ' +
        'METADATA_SERVER_DETECTION=assume-present.',
    )
  const code = errorCodeOf(error)
  return unavailable(connectionAdvice(code) ?? invalidAnswerMessage, {}, new Error(code ?? 'unknown'))
}

/**
 * Converts a status other than success to an error for the caller. Facts that the caller must not see go to the log.
 *
 * @param reason The `reason` in the answer: a single word.
 */
export function errorOfStatus(status: number, reason: string | undefined, about: 'list' | 'object', log: Log): unknown {
  if (status === 412) return new ObjectFault('replaced')
  if (status === 416) return new ObjectFault('unsatisfiable')
  if (reason === 'resourceIsEncryptedWithCustomerEncryptionKey')
    return invalid('The object is encrypted with a key that only its owner has. It cannot be read here.', 'withheld')
  if (reason === 'userProjectMissing' || (status === 400 && reason === 'required'))
    return unavailable('The reader of this bucket pays for requests. Set "userProject" to the project that pays.')
  if (status === 401)
    return unavailable('The store rejects the credentials: they are unknown, or have expired. Renew them.')
  if (status === 403 && reason !== undefined && /ratelimit|quota/i.test(reason))
    return unavailable('The store limits the rate of requests. Try again later.')
  if (status === 403 || status === 404) {
    if (about === 'list')
      return status === 403
        ? unavailable('The credentials may not list the bucket. Give them the right storage.objects.list.')
        : unavailable('There is no such bucket. Correct "bucket".')
    if (status === 403)
      log('warn', 'the store refuses access to an object: it is treated as missing', { code: reason ?? 'forbidden' })
    return notFound()
  }
  if (status === 429 || status === 503)
    return unavailable('The store is busy or limits the rate of requests. Try again later.')
  if (status >= 300 && status < 400)
    return unavailable('The endpoint redirects, and redirects are not followed: correct "endpoint".')
  return unavailable(invalidAnswerMessage, {}, new Error(`status ${status}`))
}
