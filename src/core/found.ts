import { type Origin, originOf } from './origin.ts'
import type { Audience } from './provider.ts'
import { compileTemplate, type UriTemplate } from './template.ts'
import type { ResourceTemplate } from './view.ts'

/** The MIME type of an answer to a search. */
export const foundMimeType = 'application/json;format=hikidashi.SearchFound'
/** The MIME type of the status of a search. */
export const searchStatusMimeType = 'application/json;format=hikidashi.SearchStatus'

/** Where the status of a search is, below its address. */
export const searchStatusPath = 'status.json'

/** What a search answers, as JSON: what may be seen by whoever asks, and nothing that depends on the rest. */
export interface Found {
  readonly query: string
  /** Best first. */
  readonly hits: readonly FoundHit[]
  /** How many hits there are in all, where all were looked at. */
  readonly total?: number
  /** What `after` has to be for the next ones. Absent where there are no more. */
  readonly next?: string
  /** Why there may be more to find than this: the index is being made, a source does not answer, too much was looked at. */
  readonly notes: readonly string[]
  /** No passage has the words, and the hits have only single characters of them: a sentence that stands above the hits. */
  readonly fallback?: string
}

/** A part of a document, with the link and the revision of it where its source tells them. */
export interface FoundHit extends Origin {
  /** Opens the part that was found. */
  readonly uri: string
  /** The whole document, as it is listed. */
  readonly document: string
  /** The address of the mount that it is of. */
  readonly mount: string
  readonly title?: string
  readonly mimeType?: string
  /** What the part stands under. */
  readonly heading?: string
  /** Lines of the document as text, from 1, both inclusive. */
  readonly lines: { readonly start: number; readonly end: number }
  /** From 0 to 1, which the best hit has. */
  readonly score: number
  /** When it was modified, as in RFC 3339. */
  readonly modified?: string
  readonly priority?: number
  readonly audience?: readonly Audience[]
  readonly snippet: FoundSnippet
}

export interface FoundSnippet {
  readonly text: string
  /** Where in `text` something matches: half-open, in UTF-16 units, in order, not overlapping. */
  readonly marks: readonly (readonly [start: number, end: number])[]
}

/** The MIME type of rows of a database: a hit leads to the row as a whole, and to no lines of it. */
export const rowsMimeType = 'application/json;format=hikidashi.DatabaseRows'

/** What is asked of a search. What is left out does not narrow it. */
export interface FoundQuery {
  readonly query: string
  readonly limit?: number
  /** The address of a mount. */
  readonly mount?: string
  /** A MIME type, or `text/*`. */
  readonly mime?: string
  /** A date or a time as in RFC 3339, or how long ago at most: `7d`. */
  readonly since?: string
  readonly minPriority?: number
  readonly audience?: Audience
  /** A glob over the paths below the mounts. */
  readonly path?: string
  /** `next` of the answer before. */
  readonly after?: string
}

/** One place to search at, of this server or another. */
export interface SearchPlace {
  /** Its template, by which it is known. */
  readonly uriTemplate: string
  /** The address of the search, or what stands for it on another server. */
  readonly address: string
  /** The URI of its status, which {@link parseSearchStatus} takes. */
  readonly status: string
  readonly title?: string
  readonly description?: string
  /** The URI to read for the answer, which {@link parseFound} takes. Any text can be searched for. */
  uriOf(query: FoundQuery): string
}

/** The places to search at, among the templates of a view. */
export function searchPlaces(templates: readonly ResourceTemplate[]): readonly SearchPlace[] {
  return templates.flatMap(({ uriTemplate, title, description, mimeType }) => {
    if (mimeType !== foundMimeType) return []
    const compiled = compiledOf(uriTemplate)
    // There is another template too, in which the text is a path: that cannot hold every text.
    if (compiled === undefined || !compiled.variables.includes('q')) return []
    const place: SearchPlace = {
      uriTemplate,
      address: compiled.literalPrefix,
      status: `${compiled.literalPrefix}/${searchStatusPath}`,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      uriOf: ({ query, ...rest }) => compiled.expand({ q: query, ...rest }),
    }
    return [place]
  })
}

function compiledOf(template: string): UriTemplate | undefined {
  try {
    return compileTemplate(template)
  } catch {
    return undefined
  }
}

/** What a search answered. `undefined`: this is no answer of a search. What is not known in it is left out. */
export function parseFound(text: string): Found | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value) || typeof value.query !== 'string' || !Array.isArray(value.hits)) return undefined
  const hits = value.hits.map(parseHit)
  if (!hits.every((hit) => hit !== undefined)) return undefined
  const { query, total, next } = value
  return {
    query,
    hits,
    ...(isCount(total) ? { total } : {}),
    ...(typeof next === 'string' ? { next } : {}),
    notes: stringsIn(value.notes),
    ...textsOf(value, ['fallback']),
  }
}

/** Of the answers of several searches those to show: hits of single characters only where no search has found the words. */
export function withWords<Answer extends Pick<Found, 'hits' | 'fallback'>>(
  answers: readonly Answer[],
): readonly Answer[] {
  const hasWords = answers.some(({ hits, fallback }) => hits.length > 0 && fallback === undefined)
  return hasWords ? answers.filter(({ fallback }) => fallback === undefined) : answers
}

/** What is to be said above the hits: first that they are a fallback, where they are. */
export function saidOf({ fallback, notes }: Pick<Found, 'fallback' | 'notes'>): readonly string[] {
  return fallback === undefined ? notes : [fallback, ...notes]
}

function parseHit(value: unknown): FoundHit | undefined {
  if (!isRecord(value)) return undefined
  const { uri, document, mount, lines, score, snippet, priority } = value
  const isWhole = typeof uri === 'string' && typeof document === 'string' && typeof mount === 'string'
  if (!isWhole || typeof score !== 'number' || !isRecord(lines) || !isRecord(snippet)) return undefined
  const { start, end } = lines
  if (!isCount(start) || !isCount(end) || typeof snippet.text !== 'string') return undefined
  const audience = stringsIn(value.audience).filter((name) => name === 'user' || name === 'assistant')
  return {
    uri,
    document,
    mount,
    ...textsOf(value, ['title', 'mimeType', 'heading', 'modified']),
    lines: { start, end },
    score,
    ...(typeof priority === 'number' ? { priority } : {}),
    ...(audience.length === 0 ? {} : { audience }),
    ...originOf(value),
    snippet: { text: snippet.text, marks: marksIn(snippet.marks, snippet.text.length) },
  }
}

/** The marks that lie in the text, in order: whoever cuts the text at them need not look again. */
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

function textsOf<K extends string>(value: Readonly<Record<string, unknown>>, keys: readonly K[]) {
  const texts: Partial<Record<K, string>> = {}
  for (const key of keys) {
    const text = value[key]
    if (typeof text === 'string') texts[key] = text
  }
  return texts
}

function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A snippet cut where its marks begin and end: whoever shows it shows each piece in its way. */
export function piecesOf({
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

/** What the status of a search says of a mount: numbers only to who sees the whole mount. */
export interface SearchStatusMount {
  readonly address: string
  readonly title?: string
  /** `waiting` for its turn, `comparing` what is there with what is indexed, `current`, or `unavailable`. */
  readonly state: string
  /** Since when, as in RFC 3339. */
  readonly since?: string
  /** How many documents were looked at, of how many, as far as that is known; how many were indexed since it began. */
  readonly looked?: number
  readonly of?: number
  readonly indexed?: number
  /** How changes are heard of: `watched`, or `compared` now and then. */
  readonly changes?: string
  readonly degraded?: string
  /** Of so many tables, only so many rows each are indexed. */
  readonly partial?: { readonly entries: number; readonly limit: number }
}

export interface SearchStatus {
  /** `stopped`: no process keeps the index as the sources are. */
  readonly indexing: 'running' | 'stopped'
  readonly mounts: readonly SearchStatusMount[]
  readonly documents?: number
  readonly passages?: number
  /** How far vectors are, where there are to be some: how many passages wait for one, and why, if they wait for long. */
  readonly embedding?: { readonly waiting: number; readonly failing?: string }
}

/** The status of a search. `undefined`: this is none. */
export function parseSearchStatus(text: string): SearchStatus | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value) || !Array.isArray(value.mounts)) return undefined
  const mounts = value.mounts.flatMap((mount: unknown) => {
    if (!isRecord(mount) || typeof mount.address !== 'string' || typeof mount.state !== 'string') return []
    const { address, state } = mount
    const texts = textsOf(mount, ['title', 'since', 'changes', 'degraded'])
    const { entries, limit } = isRecord(mount.partial) ? countsOf(mount.partial, ['entries', 'limit']) : {}
    const partial = entries === undefined || limit === undefined ? {} : { partial: { entries, limit } }
    return [{ address, state, ...texts, ...countsOf(mount, ['looked', 'of', 'indexed']), ...partial }]
  })
  const { embedding } = value
  const waiting = isRecord(embedding) && isCount(embedding.waiting) ? embedding.waiting : undefined
  return {
    indexing: value.indexing === 'running' ? 'running' : 'stopped',
    mounts,
    ...countsOf(value, ['documents', 'passages']),
    ...(waiting === undefined || !isRecord(embedding)
      ? {}
      : { embedding: { waiting, ...textsOf(embedding, ['failing']) } }),
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

/** The note of an answer while no process feeds the index. */
export const idleNote = 'Nothing is being indexed just now: what is found may be old.'
