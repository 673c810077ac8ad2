import { type ErrorReason, invalid, ResourceError } from '../../core/errors.ts'

/** Error answer of the API of Prometheus. */
export interface ApiError {
  readonly errorType?: unknown
  readonly error?: unknown
}

/** Maximum length of Prometheus' error text that is shown, in characters. */
const maxSaid = 300

/**
 * Converts a failed request to an error in hikidashi's own words.
 *
 * @param body The answer, if it was JSON.
 * @param query The caller's query, if it wrote one: only then are Prometheus' own words shown, because they locate the mistake in the query.
 */
export function faultOf(status: number, body: ApiError | undefined, query: string | undefined): ResourceError {
  const type = body?.errorType
  const said = typeof body?.error === 'string' ? body.error : ''
  if (type === 'bad_data' && query !== undefined) return badQuery(said)
  if (type === 'execution') return failedQuery(said)
  if (type === 'timeout') return tooMuch('takes longer than Prometheus lets it', 'timeout')
  if (status >= 300 && status < 400)
    return unavailable('Prometheus redirects elsewhere, which is not followed: set "url" to where it leads.')
  if (status === 401 || status === 403)
    return unavailable('Prometheus refuses the credentials: set "bearer" or "basic" to those that it takes.')
  if (status === 404 || status === 405) return unavailable(noApi)
  if (body === undefined && status < 500) return unavailable(noApi)
  return unavailable(`Prometheus answers with the status ${status}: it may be starting, stopping or overloaded.`)
}

const noApi = 'There is no API of Prometheus at "url": look whether a path such as /prometheus belongs to it.'

/** Returns the error for an answer that is not in the format of the API, whatever its status. */
export function noAnswer(): ResourceError {
  return unavailable(
    'What answers at "url" does not speak as Prometheus does: its answer is cut off, or no JSON of the API.',
  )
}

function unavailable(message: string): ResourceError {
  return new ResourceError('unavailable', message)
}

function badQuery(said: string): ResourceError {
  if (/invalid expression type/.test(said))
    return invalid(
      'The query has no one value at each step: put a function such as rate(…) around a range such as x[5m], and leave texts out.',
      'query',
    )
  // `invalid parameter "query": 1:5: parse error: …`
  const words = /parse error: ([\s\S]*)$/.exec(said)?.[1]
  const place = /(\d+):(\d+): parse error/.exec(said)
  const where = place === null ? '' : ` (line ${place[1]}, column ${place[2]})`
  if (words === undefined)
    return invalid(
      'Prometheus does not take this query, or these times: look at "query", "start", "end" and "step".',
      'query',
    )
  return invalid(`The query is not valid PromQL${where}: ${cleaned(words)}`, 'query')
}

function failedQuery(said: string): ResourceError {
  if (/too many samples|exceeds? (?:the )?limit|maximum/i.test(said))
    return tooMuch('needs more samples than Prometheus lets it', 'samples')
  if (/many-to-many|multiple matches|duplicate series/i.test(said))
    return invalid(
      'The query joins series that do not match one to one: add on(…) or ignoring(…), and group_left or group_right.',
      'query',
    )
  if (/same labelset/i.test(said))
    return invalid('The query makes several series with the same labels: keep a label that tells them apart.', 'query')
  return invalid(
    'Prometheus could not evaluate the query: look at its functions, labels and regular expressions.',
    'query',
  )
}

function tooMuch(what: string, reason: ErrorReason): ResourceError {
  const advice = 'ask for a shorter range, a larger step or fewer series'
  return new ResourceError('too-large', `The query ${what}: ${advice}.`, { reason })
}

/** Cleans a text to one bounded line of printable characters. */
function cleaned(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  return line.length > maxSaid ? `${line.slice(0, maxSaid).toWellFormed()}…` : line
}
