import { randomBytes } from 'node:crypto'
import { invalid, notFound } from '../core/errors.ts'
import { foldText, splitFilterWords } from '../core/kit/matching.ts'
import { defined } from '../core/kit/object.ts'
import { comparePaths } from '../core/path.ts'
import type { Content, Entry, Params, Principal, Provider, Template } from '../core/provider.ts'
import { type FoundHit, foundMimeType, type SearchAnswer } from '../core/search-answer.ts'
import {
  type LongResult,
  type LongResultBounds,
  type LongResults,
  type ResultFile,
  type ResultFileMetadata,
  resultFileMetadata,
  resultsToRemove,
  totalFileBytes,
} from '../core/shared.ts'
import { formatUri, parseAddress } from '../core/uri.ts'

interface SpillOptions extends Partial<LongResultBounds> {
  readonly address?: string
  /** Creates the storage of the results, within the limits. By default the memory of this process. */
  readonly keptIn?: (bounds: LongResultBounds) => LongResults
  /** The current time, in milliseconds since 1970, for results in memory. */
  readonly now?: () => number
}

export interface KeptResult {
  readonly uris: readonly string[]
  readonly expires: number
}

const mebibyte = 1024 * 1024
const defaults = {
  address: 'spill://results',
  keepMs: 3600_000,
  maxResults: 100,
  maxBytes: 16 * mebibyte,
  maxTotalBytes: 64 * mebibyte,
}

const searchPath = 'search'
const search: Template = {
  template: `${searchPath}{?q,limit}`,
  name: 'search',
  title: 'Search in long results',
  description: 'Finds lines in the results of tools that are kept for you, by words.',
  mimeType: foundMimeType,
  free: ['q', 'limit'],
}

/** Keeps long results of tools for a while, and serves them as resources to the principal that called the tool. */
export function createSpill(options: SpillOptions = {}) {
  const { address, ...bounds } = { ...defaults, ...options }
  const { keptIn = (bounds: LongResultBounds) => resultsInMemory(bounds, options.now) } = options
  const mountAddress = parseAddress(address)
  const results = keptIn(bounds)
  const { has } = results

  const find = async (path: string, { id: owner }: Principal) => {
    const [id, name] = parseResultFilePath(path) ?? []
    const result = id === undefined ? undefined : await results.get(owner, id)
    const file = result?.files.find((one) => one.name === name)
    if (result === undefined || file === undefined) throw absent()
    return { result, file }
  }
  const bodyOf = (path: string, { id: owner }: Principal) => {
    const [id = '', name = ''] = parseResultFilePath(path) ?? []
    return results.body(owner, id, name)
  }
  const entriesOf = async ({ id }: Principal): Promise<readonly Entry[]> => {
    const entries = (await results.list(id)).flatMap((result) =>
      result.files.map((file) => resultFileEntry(result, file)),
    )
    return entries.sort((a, b) => comparePaths(a.path, b.path))
  }
  const hasAny = async ({ id }: Principal) => (await results.list(id)).length > 0
  const textsOf = async (principal: Principal) => {
    const texts = []
    for (const result of await results.list(principal.id))
      for (const file of result.files.filter(({ isText }) => isText)) {
        const entry = resultFileEntry(result, file)
        const body = await bodyOf(entry.path, principal)
        if (typeof body === 'string') texts.push({ ...entry, uri: formatUri(mountAddress, entry.path), text: body })
      }
    return texts.sort((a, b) => comparePaths(a.path, b.path))
  }

  const provider: Provider = {
    list: async function* ({ prefix = '', after }, { principal }) {
      for (const entry of await entriesOf(principal))
        if (entry.path.startsWith(prefix) && (after === undefined || comparePaths(entry.path, after) > 0)) yield entry
    },
    stat: async (path, { principal }) => {
      const { result, file } = await find(path, principal)
      return resultFileEntry(result, file)
    },
    read: async ({ path, params }, { principal, signal }): Promise<readonly Content[]> => {
      if (path === searchPath && (await hasAny(principal))) {
        const answer = await searchFiles(await textsOf(principal), address, params, signal)
        return [{ text: JSON.stringify(answer), mimeType: foundMimeType }]
      }
      const { result, file } = await find(path, principal)
      const body = await bodyOf(path, principal)
      if (body === undefined) throw absent()
      const facts = { title: file.title, mimeType: file.mimeType, version: result.id }
      return [typeof body === 'string' ? { ...facts, text: body } : { ...facts, bytes: body }]
    },
    templates: async ({ principal }) => ((await hasAny(principal)) ? [search] : []),
    sees: ({ id: owner }, path) => {
      const parts = parseResultFilePath(path)
      // Without `has`, this method cannot know whether the path exists.
      return path === searchPath || (parts !== undefined && (has?.(owner, ...parts) ?? true))
    },
    close: () => results.close(),
  }

  return {
    address,
    provider,
    /**
     * Keeps a result. Undefined if it is too large.
     *
     * @throws ResourceError `unavailable` while the store of the results does not answer.
     */
    put: async ({ id: owner }: Principal, files: readonly ResultFile[]): Promise<KeptResult | undefined> => {
      const longResult = await results.put(owner, files)
      if (longResult === undefined) return undefined
      return {
        uris: files.map(({ name }) => formatUri(mountAddress, `${longResult.id}/${name}`)),
        expires: longResult.expires,
      }
    },
  }
}

export type Spill = ReturnType<typeof createSpill>

function absent() {
  return notFound('no result is stored here for this principal')
}

function parseResultFilePath(path: string): readonly [id: string, name: string] | undefined {
  const [id = '', name = '', ...rest] = path.split('/')
  return id === '' || name === '' || rest.length > 0 ? undefined : [id, name]
}

function resultFileEntry(
  { id, made, expires }: LongResult,
  { name, title, mimeType, size }: ResultFileMetadata,
): Entry {
  return {
    path: `${id}/${name}`,
    title,
    description: `The long result of a tool. It is kept until ${new Date(expires).toISOString()}.`,
    mimeType,
    size,
    modified: made,
    version: id,
  }
}

interface SpilledResult extends LongResult {
  readonly owner: string
  readonly bytes: number
  readonly bodies: ReadonlyMap<string, ResultFile['body']>
}

export function resultsInMemory(bounds: LongResultBounds, now: () => number = Date.now): LongResults {
  const results = new Map<string, SpilledResult>()
  let timer: NodeJS.Timeout | undefined

  const sweep = (): void => {
    clearTimeout(timer)
    for (const { id, expires } of results.values()) {
      if (expires > now()) {
        timer = setTimeout(sweep, Math.min(expires - now() + 1, 2 ** 30))
        timer.unref()
        return
      }
      results.delete(id)
    }
  }
  const find = (owner: string, id: string): SpilledResult | undefined => {
    sweep()
    const result = results.get(id)
    return result?.owner === owner ? result : undefined
  }

  return {
    put: async (owner, files) => {
      sweep()
      const bytes = totalFileBytes(files)
      if (bytes > Math.min(bounds.maxBytes, bounds.maxTotalBytes)) return undefined
      for (const { id } of resultsToRemove([...results.values()], { owner, bytes }, bounds)) results.delete(id)
      const createdAt = now()
      const result = {
        ...{
          id: randomBytes(16).toString('base64url'),
          owner,
          bytes,
          made: createdAt,
          expires: createdAt + bounds.keepMs,
        },
        files: files.map(resultFileMetadata),
        bodies: new Map(files.map(({ name, body }) => [name, body])),
      }
      results.set(result.id, result)
      sweep()
      return result
    },
    list: async (owner) => {
      sweep()
      return [...results.values()].filter((result) => result.owner === owner)
    },
    get: async (owner, id) => find(owner, id),
    body: async (owner, id, name) => find(owner, id)?.bodies.get(name),
    has: (owner, id, name) => find(owner, id)?.bodies.has(name) ?? false,
    close: async () => {
      clearTimeout(timer)
      results.clear()
    },
  }
}

type SearchedFile = Pick<Entry, 'title' | 'mimeType'> & { readonly uri: string; readonly text: string }

const passageLines = 20
/** Maximum length of a query, in characters, and maximum number of its words. */
const [maxQuery, maxWords] = [1000, 16]
const limits = { most: 50, otherwise: 10 }
const maxSnippet = 300

/** Finds passages by the words of a query, also within other words, ignoring case and width. Passages with the most words come first. */
async function searchFiles(
  files: readonly SearchedFile[],
  mount: string,
  params: Params,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const query = params.get('q') ?? ''
  const words = [...new Set(splitFilterWords(query))].slice(0, maxWords)
  if (words.length === 0 || query.length > maxQuery)
    throw invalid(`The query must have at least one word, and at most ${maxQuery} characters.`, 'argument')
  const limit = Math.min(limits.most, Math.max(1, Number.parseInt(params.get('limit') ?? '', 10) || limits.otherwise))
  const hits: FoundHit[] = []
  for (const file of files) {
    // Yields to other requests between two files.
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
    const lines = file.text.split('\n')
    for (let start = 0; start < lines.length; start += passageLines) {
      const hit = hitIn(file, lines.slice(start, start + passageLines), start, words, mount)
      if (hit !== undefined) hits.push(hit)
    }
  }
  hits.sort((a, b) => b.score - a.score)
  const best = hits[0]?.score ?? 1
  const page = hits.slice(0, limit).map((hit) => ({ ...hit, score: hit.score / best }))
  return { query, hits: page, total: hits.length, notes: [] }
}

function hitIn(
  { uri, title, mimeType }: SearchedFile,
  lines: readonly string[],
  start: number,
  words: readonly string[],
  mount: string,
): FoundHit | undefined {
  const folded = lines.map(foldText)
  const whole = folded.join('\n')
  const matches = words.filter((word) => whole.includes(word))
  if (matches.length === 0) return undefined
  // The snippet is cut from the line with the most words of the query.
  const counts = folded.map((line) => matches.filter((word) => line.includes(word)).length)
  const best = counts.indexOf(Math.max(...counts))
  const line = lines[best] ?? ''
  const at = Math.max(0, (folded[best] ?? '').indexOf(matches[0] ?? '') - 80)
  const [first, last] = [start + 1, start + lines.length]
  return {
    uri: `${uri}?lines=${first}-${last}`,
    document: uri,
    mount,
    ...defined({ title, mimeType }),
    lines: { start: first, end: last },
    score: matches.length / words.length,
    snippet: { text: line.slice(at, at + maxSnippet).toWellFormed(), marks: [] },
  }
}
