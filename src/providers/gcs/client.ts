import { Agent as HttpAgent, get as httpGet, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, get as httpsGet } from 'node:https'
import { Storage } from '@google-cloud/storage'
import { type Endpoint, guardedLookup } from '../objects/endpoint.ts'
import { mayAskMachine } from '../objects/machine.ts'
import { retrying } from '../objects/retry.ts'

export interface ClientOptions {
  readonly endpoint: Endpoint | undefined
  readonly keyFile: string | undefined
  readonly anonymous: boolean
  readonly timeoutMs: number
  /** How many connections there are at once. */
  readonly sockets: number
}

export interface GcsClient {
  readonly storage: Storage
  /**
   * Sends a GET to the JSON API, again where that may help. Whatever the status, it is an answer: a redirect too, which nothing
   * follows. An answer that nobody reads has to be let go of.
   */
  send(path: string, params: Params, signal: AbortSignal, headers?: Headers): Promise<IncomingMessage>
  close(): void
}

type Params = Readonly<Record<string, string | number | undefined>>
type Headers = Readonly<Record<string, string>>

/** What Google's client throws where it finds no credentials, or none that can be used. */
export const noCredentials = Symbol('no credentials')

/**
 * The official client gives credentials, signs links and knows checksums. Its requests are sent here: those of its own methods
 * cannot be aborted, follow redirects to anywhere, and hold whatever they are answered. See docs/decisions.
 */
export function createClient(options: ClientOptions): GcsClient {
  const { endpoint, keyFile, anonymous, timeoutMs, sockets } = options
  const url = endpoint?.url ?? 'https://storage.googleapis.com'
  const secure = endpoint?.secure ?? true
  const storage = new Storage({
    apiEndpoint: url,
    // Nothing that is asked for here takes a project; the client would look for one otherwise.
    projectId: 'hikidashi',
    ...(keyFile === undefined ? {} : { keyFilename: keyFile }),
  })
  Object.assign(storage.authClient, {
    // The key of a service account signs for itself: no other host has to be asked for a token.
    useJWTAccessWithScope: true,
    ...(mayAskMachine() ? {} : { checkIsGCE: false }),
  })
  const agentOptions = { keepAlive: true, maxSockets: sockets, maxFreeSockets: sockets, lookup: guardedLookup }
  const agent = secure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  const attemptMs = Math.max(100, Math.floor(timeoutMs / 3))

  const authorize = async (): Promise<Headers> => {
    if (anonymous) return {}
    try {
      return await storage.authClient.getRequestHeaders(url)
    } catch {
      throw noCredentials
    }
  }

  const sendOnce = async (target: string, given: Headers, signal: AbortSignal): Promise<IncomingMessage> => {
    // What is stored compressed is served as it is stored; nothing here unpacks it.
    const headers = { ...(await authorize()), 'accept-encoding': 'gzip', ...given }
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const request = (secure ? httpsGet : httpGet)(target, { headers, agent, signal }, (response) => {
        clearTimeout(timer)
        resolve(response)
      })
      const timer = setTimeout(
        () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
        attemptMs,
      )
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }

  return {
    storage,
    send: (path, params, signal, headers = {}) => {
      const query = Object.entries(params).flatMap(([name, value]) =>
        value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
      )
      return retrying(
        () => sendOnce(`${url}/storage/v1/${path}?${query.join('&')}`, headers, signal),
        (outcome) => {
          if ('error' in outcome) return isPassing(outcome.error)
          const { statusCode = 0 } = outcome.value
          return statusCode === 408 || statusCode === 429 || statusCode >= 500
        },
        signal,
        release,
      )
    },
    close: () => agent.destroy(),
  }
}

/** Lets go of an answer that nobody reads. */
export function release(answer: IncomingMessage): void {
  answer.on('error', () => {})
  answer.destroy()
}

/** Whether what went wrong on the way may go well the next time. */
function isPassing(error: unknown): boolean {
  return /^(?:ECONNRESET|ECONNREFUSED|EPIPE|ETIMEDOUT|EAI_AGAIN)$/.test(codeOf(error) ?? '')
}

/** The code of the system in an error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
