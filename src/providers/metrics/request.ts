import { createServiceGuard, type ServiceNetwork, sendGuarded } from '../../core/address-guard.ts'
import { invalid, isResourceError, type ResourceError, tooLarge, unavailable } from '../../core/errors.ts'
import { httpUrlBelow, parseHttpUrl } from '../../core/http-url.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { decompressBody, requestErrorReason } from '../http/client.ts'
import { apiAddress } from './source.ts'

export type Credentials = { readonly bearer: string } | { readonly user: string; readonly password: string }

export interface ClientOptions extends ServiceNetwork {
  /** Address of the API, without `/api/v1`. */
  readonly url: string
  readonly credentials?: Credentials | undefined
  readonly timeoutMs: number
  /** Maximum size of an unpacked answer, in bytes. */
  readonly maxBytes: number
}

export type FormFields = readonly (readonly [name: string, value: string])[]

export interface PrometheusRequest {
  /** Path below `/api/v1/`. */
  readonly path: string
  readonly fields?: FormFields
  readonly post?: boolean
  readonly signal: AbortSignal
}

/**
 * Creates a client that sends requests only to `url`. It follows no redirects.
 *
 * The client passes the body of an answer to a callback, and returns the status. It throws ResourceError `unavailable` when there is no
 * answer, and `too-large` for one that is too long.
 */
export function createPrometheusClient({ url, credentials, timeoutMs, maxBytes, ...network }: ClientOptions) {
  const base = parseHttpUrl(apiAddress(url))
  const guard = createServiceGuard(base, network)
  const credentialHeaders = credentials === undefined ? {} : { Authorization: authorizationOf(credentials) }

  const send = async (
    { path, fields = [], post = false, signal }: PrometheusRequest,
    take: (chunk: Uint8Array) => void,
  ) => {
    const encoded = new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value])).toString()
    const query = post || encoded === '' ? '' : `?${encoded}`
    const url = httpUrlBelow(base, `api/v1/${path}${query}`)
    const response = await sendGuarded(guard, {
      url: url,
      signal,
      headers: {
        Accept: 'application/json',
        'Accept-Encoding': 'gzip, br',
        ...credentialHeaders,
        ...(post ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
      },
      ...(post ? { body: encoded } : {}),
    })
    try {
      let length = 0
      for await (const chunk of decompressBody(response, url, maxBytes)) {
        length += chunk.length
        if (length > maxBytes) throw tooLong(maxBytes)
        take(chunk)
      }
      return { status: response.statusCode ?? 0 }
    } finally {
      response.destroy()
    }
  }

  return async (ask: PrometheusRequest, take: (chunk: Uint8Array) => void): Promise<{ readonly status: number }> => {
    const { signal, release } = followAbortFor(ask.signal, timeoutMs)
    try {
      return await send({ ...ask, signal }, take)
    } catch (error) {
      ask.signal.throwIfAborted()
      if (isResourceError(error)) throw error
      throw unreachable(signal.aborted ? `it took longer than ${timeoutMs} ms` : requestErrorReason(error), error)
    } finally {
      release()
    }
  }
}

function authorizationOf(credentials: Credentials): string {
  if ('bearer' in credentials) return `Bearer ${credentials.bearer}`
  return `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')}`
}

function unreachable(why: string, cause: unknown): ResourceError {
  return unavailable(`Prometheus does not answer: ${why}. Check that it runs, and that "url" is right.`, {}, cause)
}

function tooLong(limit: number): ResourceError {
  return tooLarge(
    `The answer is longer than ${limit} bytes: ask for a shorter range, a larger step or fewer series, or raise "maxBytes".`,
    { limit },
  )
}

/** The unchecked members of an error answer: a proxy may have answered. */
export interface PrometheusErrorAnswer {
  readonly errorType?: unknown
  readonly error?: unknown
}

/** Maximum length of Prometheus' error text that is shown, in characters. */
const maxErrorText = 300

/**
 * @param body The answer, if it was an error of the API.
 * @param written What the caller wrote of the query: the whole or only the matchers. The parse error of Prometheus is shown only for a
 * whole query, because it locates the mistake in it.
 */
export function prometheusError(
  status: number,
  body: PrometheusErrorAnswer | undefined,
  written: 'query' | 'match' | undefined,
): ResourceError {
  const type = body?.errorType
  const message = typeof body?.error === 'string' ? body.error : ''
  if (type === 'bad_data' && written !== undefined) return written === 'query' ? badQuery(message) : badSelection()
  if (type === 'execution') return failedQuery(message)
  if (type === 'timeout') return queryTooLargeError('exceeds the time-out of Prometheus')
  if (status >= 300 && status < 400)
    return unavailable('Prometheus redirects, and redirects are not followed: set "url" to the target.')
  if (status === 401 || status === 403)
    return unavailable('Prometheus refuses the credentials: set "bearer" or "basic" to valid ones.')
  if (status === 404 || status === 405) return unavailable(noApi)
  if (body === undefined && status < 500 && status !== 429) return unavailable(noApi)
  if (status < 500 && status !== 429)
    return unavailable(
      `Prometheus rejects a request with the status ${status}. Check that "url" is that of Prometheus 2 or later.`,
    )
  return unavailable(`Prometheus answers with the status ${status}: it may be starting, stopping or overloaded.`)
}

const noApi = 'There is no API of Prometheus at "url". Check whether it needs a path such as /prometheus.'

export function malformedAnswerError(): ResourceError {
  return unavailable(
    'The server at "url" does not answer like Prometheus: its answer is cut off, or is not JSON of the API.',
  )
}

function badQuery(message: string): ResourceError {
  if (/invalid expression type/.test(message))
    return invalid(
      'The query does not give one number at each step. Put a function such as rate(…) around a range such as x[5m], and do not use strings.',
      'parameter',
      { parameter: 'query' },
    )
  // Prometheus writes `invalid parameter "query": 1:5: parse error: …`.
  const words = /parse error: ([\s\S]*)$/.exec(message)?.[1]
  const position = /(\d+):(\d+): parse error/.exec(message)
  const where = position === null ? '' : ` (line ${position[1]}, column ${position[2]})`
  if (words === undefined)
    return invalid(
      'Prometheus rejects the query or its times. Check "query", "start", "end" and "step".',
      'parameter',
      { parameter: 'query' },
    )
  return invalid(`The query is not valid PromQL${where}: ${cleaned(words)}`, 'parameter', { parameter: 'query' })
}

function badSelection(): ResourceError {
  return invalid(
    'Prometheus rejects the label matchers or the times. Check "match", "start", "end" and "step".',
    'parameter',
    { parameter: 'match' },
  )
}

function failedQuery(message: string): ResourceError {
  if (/too many samples|exceeds? (?:the )?limit|maximum/i.test(message))
    return queryTooLargeError('exceeds the limit of samples of Prometheus')
  if (/many-to-many|multiple matches|duplicate series/i.test(message))
    return invalid(
      'The query joins series that do not match one to one: add on(…) or ignoring(…), and group_left or group_right.',
      'parameter',
      { parameter: 'query' },
    )
  if (/same labelset/i.test(message))
    return invalid(
      'The query makes several series with the same labels: keep a label that tells them apart.',
      'parameter',
      { parameter: 'query' },
    )
  return invalid(
    'Prometheus could not evaluate the query. Check its functions, labels and regular expressions.',
    'parameter',
    { parameter: 'query' },
  )
}

function queryTooLargeError(what: string): ResourceError {
  const advice = 'ask for a shorter range, a larger step or fewer series'
  return tooLarge(`The query ${what}: ${advice}.`, { reason: 'too-much' })
}

function cleaned(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  return line.length > maxErrorText ? `${line.slice(0, maxErrorText).toWellFormed()}…` : line
}
