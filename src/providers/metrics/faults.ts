import { invalid, ResourceError } from '../../core/errors.ts'

/** What the API of Prometheus says when it does not do what it was asked for. */
export interface ApiError {
  readonly errorType?: unknown
  readonly error?: unknown
}

/** The longest part of what Prometheus says of a query that is shown, in characters. */
const maxSaid = 300

/**
 * What became of a request that failed, in our words.
 *
 * @param body What was answered, if that was JSON.
 * @param query The query of the caller, where it wrote one: of that alone Prometheus' own words are shown, since they tell where it
 * is wrong.
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

/** What came is no answer of the API, whatever its status said. */
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

function tooMuch(what: string, reason: string): ResourceError {
  const advice = 'ask for a shorter range, a larger step or fewer series'
  return new ResourceError('too-large', `The query ${what}: ${advice}.`, { reason })
}

/** One line of plain characters, not too long. */
function cleaned(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  return line.length > maxSaid ? `${line.slice(0, maxSaid).toWellFormed()}…` : line
}
