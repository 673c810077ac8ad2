import { completeFromValues } from '../../core/completion.ts'
import { invalid } from '../../core/errors.ts'
import { compileGlob } from '../../core/glob.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import type { Audience, Completion, CompletionRequest, Params } from '../../core/provider.ts'
import { parseAddress } from '../../core/uri.ts'
import { isInMount } from '../../search/feed-documents.ts'
import type { Allows, SearchFilter, SearchIndex, Suggestion } from '../../search/search-index.ts'

export interface SearchCall {
  readonly text: string
  readonly where: SearchFilter
  readonly limit: number
  /** Number of hits to skip. */
  readonly after: number
  readonly as: 'json' | 'markdown'
  /** Whether to wait until earlier changes are in the index. */
  readonly fresh: boolean
}

const maxLength = 1000
const maxGlobLength = 256
const defaultLimit = 20
const maxLimit = 100
/** Maximum of the parameter `after`: how many hits may come before a page. */
export const maxAfter = 1000

export const searchParameters = [
  'limit',
  'mount',
  'mime',
  'since',
  'minPriority',
  'audience',
  'path',
  'after',
  'fresh',
  'as',
] as const

/** @throws ResourceError `invalid`, which names the parameter in `detail.parameter`. */
export function parseSearch(text: string, params: Params, now = Date.now()): SearchCall {
  if (text.length > maxLength) throw parameterError('q', `The query must have at most ${maxLength} characters.`)
  const plain = text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').trim()
  if (plain === '') throw parameterError('q', 'The query is empty. Write at least one word.')
  if (!plain.isWellFormed())
    throw parameterError('q', 'The query contains a lone surrogate, which is not valid Unicode.')
  const get = <T>(name: (typeof searchParameters)[number], parse: (value: string) => T): T | undefined => {
    const value = params.get(name)
    return value === undefined || value === '' ? undefined : parse(value)
  }
  const where = {
    mounts: get('mount', parseMount),
    mimeType: get('mime', parseMime),
    audience: get('audience', parseAudience),
    minPriority: get('minPriority', parsePriority),
    since: get('since', (value) => parseSince(value, now)),
    path: get('path', parsePath),
  }
  return {
    text: plain,
    where: Object.fromEntries(Object.entries(where).filter(([, value]) => value !== undefined)),
    limit: get('limit', (value) => parseCount('limit', value, 1, maxLimit)) ?? defaultLimit,
    after: get('after', (value) => parseCount('after', value, 0, maxAfter)) ?? 0,
    as: get('as', parseForm) ?? 'json',
    fresh: get('fresh', parseFresh) ?? false,
  }
}

function parameterError(parameter: string, message: string) {
  return invalid(message, 'parameter', { parameter })
}

function parseCount(name: string, value: string, least: number, most: number): number {
  const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw parameterError(name, `${name} must be a whole number from ${least} to ${most}.`)
}

function parseMount(value: string): readonly string[] {
  try {
    return [parseAddress(value).text]
  } catch {
    throw parameterError('mount', 'mount must be the address of a mount, such as file:///docs.')
  }
}

function parseMime(value: string): string {
  const type = value.toLowerCase()
  if (/^[\w.+-]{1,100}\/(?:\*|[\w.+-]{1,100})$/.test(type)) return type
  throw parameterError('mime', 'mime must be a MIME type, such as text/markdown, or text/* for all texts.')
}

function parseAudience(value: string): Audience {
  if (value === 'user' || value === 'assistant') return value
  throw parameterError('audience', 'audience must be user or assistant.')
}

function parsePriority(value: string): number {
  const number = /^\d(?:\.\d{1,9})?$|^\.\d{1,9}$/.test(value) ? Number(value) : Number.NaN
  if (number >= 0 && number <= 1) return number
  throw parameterError('minPriority', 'minPriority must be a number from 0 to 1.')
}

function parsePath(value: string): string {
  if (value.length > maxGlobLength) throw parameterError('path', `path must have at most ${maxGlobLength} characters.`)
  try {
    compileGlob(value)
    return value
  } catch {
    throw parameterError('path', 'path must be a glob over the paths below a mount, such as guides/**/*.md.')
  }
}

function parseFresh(value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true'
  throw parameterError('fresh', 'fresh must be true or false.')
}

function parseForm(value: string): SearchCall['as'] {
  if (value === 'json' || value === 'markdown') return value
  throw parameterError('as', 'as must be json or markdown.')
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/** Parses a date, a time in RFC 3339, or a maximum age. Returns milliseconds since 1970. */
function parseSince(value: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(value) ?? []
  if (count !== undefined) return now - Number(count) * (units[unit] ?? 0)
  const isDate = /^\d{4}-\d\d-\d\d(?:[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d))?$/.test(value)
  const time = isDate ? Date.parse(value) : Number.NaN
  if (Number.isFinite(time)) return time
  throw parameterError(
    'since',
    'since must be a date (2026-01-31), a time (2026-01-31T09:00:00Z), or an age (12h, 7d).',
  )
}

const mostValues = 100
/** Maximum number of suggestions examined. */
const maxSuggestions = 2000
/** Maximum number of documents examined to find one that the principal may see. */
const mostDocuments = 200

interface SearchableMounts {
  readonly index: SearchIndex
  readonly mounts: ReadonlyMap<string, MountReader>
  readonly allows: Allows
  readonly signal: AbortSignal
}

const fixed: Readonly<Record<string, readonly string[]>> = {
  limit: ['10', '20', '50', '100'],
  since: ['1d', '7d', '30d', '365d'],
  minPriority: ['0.25', '0.5', '0.75', '1'],
  audience: ['assistant', 'user'],
  fresh: ['true', 'false'],
  as: ['json', 'markdown'],
}

export async function completeSearch({ argument }: CompletionRequest, mounts: SearchableMounts): Promise<Completion> {
  const { name, value } = argument
  if (name === 'query' || name === 'q') return completeText(value, mounts)
  if (name === 'mount') return completeFromValues(await visibleMounts(value, mounts))
  if (name === 'mime') return completeFromValues(await mounts.index.mimeTypes(mounts), value.toLowerCase())
  return completeFromValues(fixed[name] ?? [], value)
}

/** Completes the last word; also titles that begin with the whole text. */
async function completeText(value: string, mounts: SearchableMounts): Promise<Completion> {
  const { index, allows, signal } = mounts
  const text = value.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').slice(0, 200)
  const [, head = '', last = ''] = /^(.*\s)?(\S*)$/su.exec(text) ?? []
  const whole = await take(index.suggest({ prefix: text, allows, signal }), mounts)
  if (head.trim() === '' || last === '') return whole
  const words = await take(index.suggest({ prefix: last, allows, signal }), mounts)
  const values = new Set([...whole.values, ...words.values.map((word) => head + word)])
  return {
    values: [...values].slice(0, mostValues),
    hasMore: values.size > mostValues || whole.hasMore === true || words.hasMore === true,
  }
}

/** Takes the suggestions with a visible document, in their order. */
async function take(suggestions: AsyncIterable<Suggestion>, mounts: SearchableMounts): Promise<Completion> {
  const values = new Set<string>()
  let looks = 0
  for await (const { text, uris } of suggestions) {
    mounts.signal.throwIfAborted()
    if (++looks > maxSuggestions) return { values: [...values], hasMore: true }
    if (values.has(text) || !isVisible(uris, mounts)) continue
    if (values.size === mostValues) return { values: [...values], hasMore: true }
    values.add(text)
  }
  return completeFromValues([...values])
}

function isVisible(uris: readonly string[], { mounts, allows }: SearchableMounts): boolean {
  return uris.slice(0, mostDocuments).some((uri) => {
    const mount = [...mounts.keys()].find((address) => isInMount(uri, address))
    return mount !== undefined && allows({ uri, mount })
  })
}

/** Returns the mounts with an indexed document that the caller may see. */
function visibleMounts(typed: string, { index, mounts, allows, signal }: SearchableMounts): Promise<readonly string[]> {
  const matches = [...mounts.keys()].filter((address) => address.startsWith(typed))
  return index.mounts(matches, { allows, signal })
}
