import type { Description } from './entry.ts'
import { invalid } from './errors.ts'
import { defined, isCount, isObject, jsonIn, stringItems } from './kit/object.ts'
import { type DocumentOrigin, parseDocumentOrigin } from './meta.ts'
import type { Audience } from './provider.ts'
import { compileTemplate, type UriTemplate } from './template.ts'
import type { IndexGaps } from './tool.ts'
import { maxUriBytes } from './uri.ts'
import type { Resource, ResourceTemplate } from './view.ts'

export const foundMimeType = 'application/json;format=hikidashi.SearchFound'
export const searchStatusMimeType = 'application/json;format=hikidashi.SearchStatus'

/** Path of the status of a search, relative to the address of the search. */
export const searchStatusPath = 'status.json'

/** The answer of a search, as JSON. It has only hits that the caller may see, and nothing in it depends on other hits. */
export interface SearchAnswer {
  readonly query: string
  /** The hits, best first. */
  readonly hits: readonly FoundHit[]
  /** Number of all hits; undefined when the search did not count them all. */
  readonly total?: number
  /** Value of `after` for the next page; undefined on the last one. */
  readonly next?: string
  /** Reasons why the answer may be incomplete: the index is being built, a source does not answer, a limit was reached. */
  readonly notes: readonly string[]
  /** Sentence to show above the hits when no passage has the words of the query and the hits match only single characters of them. */
  readonly fallback?: string
  /** Time until which all changes that the sources reported are in the index (RFC 3339). Undefined: not known. */
  readonly asOf?: string
  /** Number of known changes that are not in the index yet. Undefined: not known. */
  readonly pending?: number
  /** Whether every change before the call was in the index, if the call asked for that. */
  readonly fresh?: boolean
  /** The mounts of which only a part is searched. */
  readonly partial?: readonly PartialMount[]
}

/** A mount of which only a part is searched. */
export interface PartialMount extends IndexGaps {
  readonly mount: string
  /** Number of documents that are compared with the index so far, out of `of`. */
  readonly looked?: number
  readonly of?: number
  readonly firstPages?: number
}

/** A hit: a part of a document, with the link and the revision of the document if its source provides them. */
export interface FoundHit extends DocumentOrigin, Pick<Description, 'title' | 'mimeType' | 'priority' | 'audience'> {
  /** URI of the matching part of the document. */
  readonly uri: string
  /** URI of the whole document, as it is listed. */
  readonly document: string
  /** Address of the document's mount. */
  readonly mount: string
  /** Heading above the matching part. */
  readonly heading?: string
  /** Lines of the document's text, from 1, both inclusive. */
  readonly lines: { readonly start: number; readonly end: number }
  /** Relevance of the hit, from 0 to 1. */
  readonly score: number
  /** Time of the last modification (RFC 3339). */
  readonly modified?: string
  readonly snippet: FoundSnippet
}

/** Returns the resource of a hit, with the metadata that the hit has. `uri` is that of the part, or of its document. */
export function resourceOfHit(hit: FoundHit, uri: string, name: string): Resource {
  const { title, mimeType, priority, audience } = hit
  const time = Date.parse(hit.modified ?? '')
  const modified = Number.isNaN(time) ? undefined : time
  return { uri, name, ...defined({ title, mimeType, modified, priority, audience }) }
}

interface FoundSnippet {
  readonly text: string
  /** Ranges of `text` that match: half-open, in UTF-16 units, in order, not overlapping. */
  readonly marks: readonly (readonly [start: number, end: number])[]
  /** Number of the document's line in which the text begins. */
  readonly line?: number
}

/** The MIME type of rows of a database. */
export const rowsMimeType = 'application/json;format=hikidashi.DatabaseRows'

/** The parameters of a search. Undefined ones do not narrow it. */
export interface FoundQuery {
  readonly query: string
  readonly limit?: number
  /** Address of the mount to search. */
  readonly mount?: string
  /** MIME type of the documents to find, or `text/*`. */
  readonly mime?: string
  /** Earliest modification of the documents to find: a date or a time (RFC 3339), or a maximum age such as `7d`. */
  readonly since?: string
  readonly minPriority?: number
  readonly audience?: Audience
  /** A glob over the paths below the mounts. */
  readonly path?: string
  /** Whether to wait until every change before the call is in the index. */
  readonly fresh?: boolean
  /** The `next` of the previous answer, to get the page after it. */
  readonly after?: string
}

/** A search that this server or another one offers. */
export interface SearchMount {
  /** URI template of the search, which identifies it. */
  readonly uriTemplate: string
  /** Address of the search. For a search of another server, it lies in the mount of that server. */
  readonly address: string
  /** URI of the status of the search, whose content {@link parseSearchStatus} parses. */
  readonly status: string
  readonly title?: string
  readonly description?: string
  /**
   * Returns the URI of the answer to a query, whose content {@link parseSearchAnswer} parses. The query may be any text.
   *
   * @throws ResourceError `invalid` if the URI would be too long.
   */
  uriOf(query: FoundQuery): string
}

/** Returns the searches among the templates of a view. */
export function findSearchMounts(templates: readonly ResourceTemplate[]): readonly SearchMount[] {
  return templates.flatMap(({ uriTemplate, title, description, mimeType }) => {
    if (mimeType !== foundMimeType) return []
    const compiled = compiledOf(uriTemplate)
    // Skip the second template of a search: it has the query in its path, which cannot hold every text.
    if (compiled === undefined || !compiled.variables.includes('q')) return []
    const mount: SearchMount = {
      uriTemplate,
      address: compiled.literalPrefix,
      status: `${compiled.literalPrefix}/${searchStatusPath}`,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      uriOf: ({ query, ...rest }) => {
        const uri = compiled.expand({ q: query, ...rest })
        if (uri.length <= maxUriBytes) return uri
        const limit = `1000 characters, and ${maxUriBytes} bytes in a URI, where a Japanese character takes nine`
        throw invalid(`The query is too long. It may have at most ${limit}.`, 'parameter', { parameter: 'q' })
      },
    }
    return [mount]
  })
}

function compiledOf(template: string): UriTemplate | undefined {
  try {
    return compileTemplate(template)
  } catch {
    return undefined
  }
}

/** Parses the answer of a search; undefined for any other text. Unknown members are left out. */
export function parseSearchAnswer(text: string): SearchAnswer | undefined {
  const value = jsonIn(text)
  if (!isObject(value) || typeof value.query !== 'string' || !Array.isArray(value.hits)) return undefined
  const hits = value.hits.map(parseHit)
  if (!hits.every((hit) => hit !== undefined)) return undefined
  const { query, total, next } = value
  return {
    query,
    hits,
    ...(isCount(total) ? { total } : {}),
    ...(typeof next === 'string' ? { next } : {}),
    notes: stringItems(value.notes),
    ...pickStrings(value, ['fallback', 'asOf']),
    ...countsOf(value, ['pending']),
    ...(typeof value.fresh === 'boolean' ? { fresh: value.fresh } : {}),
    ...partialIn(value.partial),
  }
}

/** JSON Schema of the members of an answer that say how fresh it is. */
export const freshnessSchema = {
  asOf: { type: 'string', description: 'Time (RFC 3339) until which all reported changes are in the index.' },
  pending: { type: 'integer', description: 'Number of known changes that are not in the index yet.' },
  fresh: {
    type: 'boolean',
    description: 'Whether every change before the call is in the index. Present only if the call asked for it.',
  },
  partial: {
    type: 'array',
    items: { type: 'object' },
    description: 'The mounts of which only a part is searched, and how much of each.',
  },
}

const partialCounts = [
  'looked',
  'of',
  'entries',
  'limit',
  'texts',
  'maxBytes',
  'scans',
  'waitingScans',
  'firstPages',
] as const

function partialIn(value: unknown): Pick<SearchAnswer, 'partial'> {
  if (!Array.isArray(value)) return {}
  const partial = value.flatMap((one: unknown) =>
    isObject(one) && typeof one.mount === 'string' ? [{ mount: one.mount, ...countsOf(one, partialCounts) }] : [],
  )
  return partial.length === 0 ? {} : { partial }
}

/**
 * Freshness of several answers together: the oldest time and the sum of the pending changes, if every answer has one; whether all are
 * fresh, if any was asked to be; and all partial mounts.
 */
export function freshnessOf(
  answers: readonly SearchAnswer[],
): Pick<SearchAnswer, 'asOf' | 'pending' | 'fresh' | 'partial'> {
  const times = answers.flatMap(({ asOf }) => asOf ?? [])
  const counts = answers.flatMap(({ pending }) => pending ?? [])
  const partial = answers.flatMap((answer) => answer.partial ?? [])
  const isAsked = answers.some(({ fresh }) => fresh !== undefined)
  return {
    ...(times.length === answers.length && times[0] !== undefined
      ? { asOf: times.reduce((oldest, time) => (Date.parse(time) < Date.parse(oldest) ? time : oldest)) }
      : {}),
    ...(counts.length === answers.length && counts.length > 0
      ? { pending: counts.reduce((sum, count) => sum + count, 0) }
      : {}),
    ...(isAsked ? { fresh: answers.every(({ fresh }) => fresh === true) } : {}),
    ...(partial.length === 0 ? {} : { partial }),
  }
}

/** Returns the answers to show: if any search has found the words, those with hits of single characters are left out. */
export function preferWordHits<Answer extends Pick<SearchAnswer, 'hits' | 'fallback'>>(
  answers: readonly Answer[],
): readonly Answer[] {
  const hasWords = answers.some(({ hits, fallback }) => hits.length > 0 && fallback === undefined)
  return hasWords ? answers.filter(({ fallback }) => fallback === undefined) : answers
}

/** Returns the sentences to show above the hits: first the fallback, if there is one. */
export function notesAboveHits({ fallback, notes }: Pick<SearchAnswer, 'fallback' | 'notes'>): readonly string[] {
  return fallback === undefined ? notes : [fallback, ...notes]
}

function parseHit(value: unknown): FoundHit | undefined {
  if (!isObject(value)) return undefined
  const { uri, document, mount, lines, score, snippet, priority } = value
  const isWhole = typeof uri === 'string' && typeof document === 'string' && typeof mount === 'string'
  if (!isWhole || typeof score !== 'number' || !isObject(lines) || !isObject(snippet)) return undefined
  const { start, end } = lines
  if (!isCount(start) || !isCount(end) || typeof snippet.text !== 'string') return undefined
  const audience = stringItems(value.audience).filter((name) => name === 'user' || name === 'assistant')
  return {
    uri,
    document,
    mount,
    ...pickStrings(value, ['title', 'mimeType', 'heading', 'modified']),
    lines: { start, end },
    score,
    ...(typeof priority === 'number' ? { priority } : {}),
    ...(audience.length === 0 ? {} : { audience }),
    ...parseDocumentOrigin(value),
    snippet: {
      text: snippet.text,
      marks: marksIn(snippet.marks, snippet.text.length),
      ...(isCount(snippet.line) ? { line: snippet.line } : {}),
    },
  }
}

/** Returns the marks that lie in the text and are in order, so callers can cut the text at them without further checks. */
function marksIn(value: unknown, length: number): FoundSnippet['marks'] {
  let last = 0
  return (Array.isArray(value) ? value : []).flatMap((mark: unknown) => {
    if (!Array.isArray(mark)) return []
    const [start, end] = mark as readonly unknown[]
    if (!isCount(start) || !isCount(end) || start < last || end <= start || end > length) return []
    last = end
    return [[start, end] as const]
  })
}

function pickStrings<K extends string>(value: Readonly<Record<string, unknown>>, keys: readonly K[]) {
  const texts: Partial<Record<K, string>> = {}
  for (const key of keys) {
    const text = value[key]
    if (typeof text === 'string') texts[key] = text
  }
  return texts
}

export function splitAtMarks({
  text,
  marks,
}: FoundSnippet): readonly { readonly text: string; readonly marked: boolean }[] {
  const pieces: { text: string; marked: boolean }[] = []
  let at = 0
  for (const [start, end] of marks) {
    pieces.push({ text: text.slice(at, start), marked: false }, { text: text.slice(start, end), marked: true })
    at = end
  }
  pieces.push({ text: text.slice(at), marked: false })
  return pieces.filter((piece) => piece.text !== '')
}

/** Default length of the indexed beginning of a text, in bytes. */
export const defaultIndexedBytes = 8 * 2 ** 20

/** A mount in the status of a search. The status gives numbers only to principals that may see the whole mount. */
export interface SearchStatusMount {
  readonly address: string
  readonly title?: string
  /** `waiting` for its turn, `comparing` the source with the index, `current`, or `unavailable`. */
  readonly state: string
  /** Time at which the mount entered this state (RFC 3339). */
  readonly since?: string
  /** Number of documents that are compared with the index so far, out of `of`. */
  readonly looked?: number
  readonly of?: number
  /** Number of documents that were indexed since the server began to index the mount. */
  readonly indexed?: number
  /** How the index learns of changes: `watched`, or `compared` periodically. */
  readonly changes?: string
  readonly degraded?: string
  /** Number of known changes that are not indexed yet. */
  readonly pending?: number
  /** Time until which all reported changes are indexed (RFC 3339). */
  readonly asOf?: string
  readonly partial?: IndexGaps
  /** Number of tables and views without a key of which only the first page of rows is indexed. */
  readonly firstPages?: number
}

export interface SearchStatus {
  /** `stopped`: no process keeps the index up to date. */
  readonly indexing: 'running' | 'stopped'
  readonly mounts: readonly SearchStatusMount[]
  readonly documents?: number
  readonly passages?: number
  /** Number of passages that wait for a vector, and the reason if they wait for long. Undefined for a search without vectors. */
  readonly embedding?: { readonly waiting: number; readonly failing?: string }
}

/** Parses the status of a search; undefined for any other text. */
export function parseSearchStatus(text: string): SearchStatus | undefined {
  const value = jsonIn(text)
  if (!isObject(value) || !Array.isArray(value.mounts)) return undefined
  const mounts = value.mounts.flatMap((mount: unknown) => {
    if (!isObject(mount) || typeof mount.address !== 'string' || typeof mount.state !== 'string') return []
    const { address, state } = mount
    const texts = pickStrings(mount, ['title', 'since', 'changes', 'degraded', 'asOf'])
    const gaps = isObject(mount.partial) ? countsOf(mount.partial, partialCounts) : {}
    const partial = Object.keys(gaps).length === 0 ? {} : { partial: gaps }
    return [
      {
        address,
        state,
        ...texts,
        ...countsOf(mount, ['looked', 'of', 'indexed', 'firstPages', 'pending']),
        ...partial,
      },
    ]
  })
  const { embedding } = value
  const waiting = isObject(embedding) && isCount(embedding.waiting) ? embedding.waiting : undefined
  return {
    indexing: value.indexing === 'running' ? 'running' : 'stopped',
    mounts,
    ...countsOf(value, ['documents', 'passages']),
    ...(waiting === undefined || !isObject(embedding)
      ? {}
      : { embedding: { waiting, ...pickStrings(embedding, ['failing']) } }),
  }
}

function countsOf<K extends string>(value: Readonly<Record<string, unknown>>, keys: readonly K[]) {
  const counts: Partial<Record<K, number>> = {}
  for (const key of keys) {
    const count = value[key]
    if (isCount(count)) counts[key] = count
  }
  return counts
}

export const staleNote = 'It is not certain that every change before the call was indexed: there may be more to find.'

export function pendingNote(count: number): string {
  return count === 1 ? 'One change is not searched yet.' : `${count.toLocaleString('en')} changes are not searched yet.`
}

export const idleNote = 'Nothing is being indexed now: the hits may be out of date.'
