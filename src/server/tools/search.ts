import { invalid, isResourceError } from '../../core/errors.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { foldText, splitFilterWords } from '../../core/kit/matching.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import {
  type FoundHit,
  type FoundQuery,
  findSearchMounts,
  freshnessOf,
  freshnessSchema,
  notesAboveHits,
  parseSearchAnswer,
  preferWordHits,
  type SearchAnswer,
  type SearchMount,
  staleNote,
} from '../../core/search-answer.ts'
import { createArgumentReader, type JsonObject, readOnlyHints, type Tool, type ToolAnswer } from '../../core/tool.ts'
import { decodeIfValid } from '../../core/uri.ts'
import type { Resource, View } from '../../core/view.ts'
import { oneLine } from '../../text/excerpt.ts'
import { decodeCursor, encodeCursor, limitSchema } from './shown.ts'

const limits = { least: 1, most: 50, otherwise: 10 }
/** Maximum number of searches that are queried at once. */
const maxMounts = 16
/** Maximum number of pages of a listing, and of words, for a search by name. */
const [maxPages, maxWords] = [12, 16]

const searchInput = objectSchema(['query'], {
  query: { type: 'string', description: 'Words to find, in any language.' },
  limit: {
    ...limitSchema(limits.otherwise, limits.most),
    description: `About the number of results to return. By default ${limits.otherwise}.`,
  },
  mount: { type: 'string', description: 'Only in this mount: an address that browse_directory shows.' },
  mime: { type: 'string', description: 'Only of this MIME type: "text/markdown", or "text/*".' },
  path: { type: 'string', description: 'Only at paths of this glob: "docs/**/*.md".' },
  since: { type: 'string', description: 'Only resources modified since: a date, or "7d".' },
  fresh: { type: 'boolean', description: 'Wait until every change before the call can be found. By default false.' },
  cursor: { type: 'string', description: 'The `next` of the previous answer.' },
})

const resultSchema = objectSchema(['uri', 'document', 'score'], {
  uri: { type: 'string', description: 'The URI of the part that was found.' },
  document: { type: 'string' },
  title: { type: 'string' },
  heading: { type: 'string' },
  mimeType: { type: 'string' },
  snippet: { type: 'string' },
  firstLine: { type: 'integer' },
  lastLine: { type: 'integer' },
  score: { type: 'number' },
  modified: { type: 'string' },
  link: { type: 'string', description: 'A URL at which people open the document at its source.' },
  revision: { type: 'string' },
})

export function searchTool(view: View): Tool {
  return {
    name: 'search_resources',
    title: 'Search resources',
    description:
      'Finds resources by words, best first, each with a snippet and a URI for read_resource. If nothing is indexed, it searches names, titles and descriptions.',
    inputSchema: searchInput,
    outputSchema: objectSchema(['query', 'results', 'notes'], {
      query: { type: 'string' },
      results: { type: 'array', items: resultSchema },
      notes: { type: 'array', items: { type: 'string' } },
      next: { type: 'string' },
      ...freshnessSchema,
    }),
    annotations: readOnlyHints,
    call: async (input, { signal }) => {
      const args = createArgumentReader(input, searchInput)
      const query = args.required('query', 1000)
      const limit = args.count('limit', limits)
      const [mount, mime, path, since] = ['mount', 'mime', 'path', 'since'].map((name) => args.text(name, 1000))
      const after = afterIn(args.text('cursor'))
      const all = await mountsIn(view, signal)
      const mounts = all.slice(0, maxMounts)
      if (mounts.length === 0)
        return formatSearchAnswer(query, await byName(view, query, limit, signal), [noIndex], undefined)
      // If only the stored results of tools have a search, nothing else is indexed: search names as well.
      const hasIndex = mounts.some(({ address }) => !address.startsWith(spillPrefix))
      const names = hasIndex || after !== undefined ? [] : await byName(view, query, limit, signal)
      const searchQuery: FoundQuery = {
        query,
        // The searches together return about `limit` hits.
        limit: Math.ceil(limit / mounts.length),
        ...defined({ mount, mime, path, since }),
        ...(args.flag('fresh') ? { fresh: true } : {}),
      }
      const searchAnswers = await Promise.all(
        mounts
          .filter(({ uriTemplate }) => after === undefined || uriTemplate in after)
          .map(async (mount) => ({
            mount,
            ...(await searchInMount(view, mount, searchQuery, after?.[mount.uriTemplate], signal)),
          })),
      )
      const [failure] = searchAnswers.filter(({ error }) => error !== undefined)
      if (failure !== undefined && searchAnswers.every(({ error }) => error !== undefined)) throw failure.error
      const answers = searchAnswers.flatMap(({ mount, found: one }) => (one === undefined ? [] : [{ mount, ...one }]))
      const result = preferWordHits(answers)
      const hits = unique(result.flatMap((one) => one.hits))
      const freshness = freshnessOf(answers)
      const notes = new Set([
        ...(searchQuery.fresh && freshness.fresh !== true ? [staleNote] : []),
        ...result.flatMap((one) => one.notes),
        ...(answers.length < searchAnswers.length ? [unavailableNote] : []),
        ...(all.length > mounts.length ? [tooManyNote] : []),
      ])
      const next = Object.fromEntries(
        result.flatMap((one) => (one.next === undefined ? [] : [[one.mount.uriTemplate, one.next]])),
      )
      const best = [...hits.sort((a, b) => b.score - a.score).map(resultOf), ...names].slice(
        0,
        hasIndex ? undefined : limit,
      )
      if (!hasIndex) notes.add(noIndex)
      const fallback = result.find((one) => one.fallback !== undefined)?.fallback
      const cursor = Object.keys(next).length === 0 ? undefined : encodeCursor(next)
      return formatSearchAnswer(query, best, [...notes], cursor, fallback, freshness)
    },
  }
}

const noIndex = 'Nothing is indexed here: only names, titles and descriptions were looked at.'
const spillPrefix = 'spill://'
const tooManyNote = `This server has more than ${maxMounts} searches, and only the first ${maxMounts} were queried.`
const unavailableNote = 'At least one mount could not be searched now.'

function formatSearchAnswer(
  query: string,
  results: readonly Result[],
  notes: readonly string[],
  next: string | undefined,
  fallback?: string,
  freshness: ReturnType<typeof freshnessOf> = {},
): ToolAnswer {
  const lines = results.map(
    ({ uri, name, snippet }, index) =>
      `${index + 1}. ${uri}  ${oneLine(name, 120)}${snippet === '' ? '' : `\n   ${oneLine(snippet, 400)}`}`,
  )
  const parts = [
    ...(fallback === undefined ? [] : [`(${oneLine(fallback, 300)})`]),
    results.length === 0 ? 'Nothing was found.' : lines.join('\n'),
    ...notes.map((note) => `(${oneLine(note, 300)})`),
    ...(next === undefined ? [] : [`There are more: cursor ${next}`]),
  ]
  return {
    text: parts.join('\n'),
    structured: {
      query,
      results: results.map(({ uri, document, snippet, score, facts }) => ({
        uri,
        document,
        ...facts,
        ...(snippet === '' ? {} : { snippet }),
        score,
      })),
      notes: notesAboveHits({ notes, ...defined({ fallback }) }),
      ...defined({ next }),
      ...freshness,
    },
    resources: results.map(({ uri, name, snippet, facts }) => ({
      uri,
      name,
      ...(snippet === '' ? {} : { description: oneLine(snippet, 400) }),
      ...(typeof facts.mimeType === 'string' ? { mimeType: facts.mimeType } : {}),
    })),
  }
}

/** Keeps the best hit of each part: two searches can contain the same document. */
function unique(hits: readonly FoundHit[]): FoundHit[] {
  const best = new Map<string, FoundHit>()
  for (const hit of hits) if (hit.score > (best.get(hit.uri)?.score ?? -1)) best.set(hit.uri, hit)
  return [...best.values()]
}

function resultOf(hit: FoundHit): Result {
  const { uri, document, title, heading, mimeType, lines, score, modified, link, revision, snippet } = hit
  const name = title ?? document
  return {
    uri,
    document,
    name: heading === undefined ? name : `${name} › ${heading}`,
    snippet: snippet.text,
    score,
    facts: {
      ...defined({ title, heading, mimeType }),
      firstLine: lines.start,
      lastLine: lines.end,
      ...defined({ modified, link, revision }),
    },
  }
}

/** Returns the searches in the view: at least one more than are queried, if there are more. */
async function mountsIn(view: View, signal: AbortSignal): Promise<readonly SearchMount[]> {
  const mounts: SearchMount[] = []
  for await (const { items } of iteratePages((query) => view.templates(query, { signal }), { maxPages })) {
    mounts.push(...findSearchMounts(items))
    if (mounts.length > maxMounts) break
  }
  return mounts
}

/** Queries one search. Returns its failure as a value, so that the other searches still answer. */
async function searchInMount(
  view: View,
  mount: SearchMount,
  query: FoundQuery,
  after: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly found?: SearchAnswer; readonly error?: unknown }> {
  try {
    const uri = mount.uriOf(after === undefined ? query : { ...query, after })
    const { contents } = await view.read(uri, { signal })
    const [content] = contents
    const answer = content !== undefined && 'text' in content ? parseSearchAnswer(content.text) : undefined
    return answer === undefined
      ? { error: invalid('The search of the mount gave no valid answer.', 'unreadable') }
      : { found: answer }
  } catch (error) {
    signal.throwIfAborted()
    if (!isResourceError(error)) throw error
    return { error }
  }
}

function afterIn(cursor: string | undefined): Readonly<Record<string, string>> | undefined {
  if (cursor === undefined) return undefined
  return decodeCursor(cursor, (value) => {
    const isAfter =
      typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string')
    return isAfter ? (value as Readonly<Record<string, string>>) : undefined
  })
}

interface Result {
  readonly uri: string
  readonly document: string
  readonly name: string
  readonly snippet: string
  readonly score: number
  readonly facts: JsonObject
}

/** Returns the resources that have all the words in their name, title, description or URI, with matches in the name first. */
async function byName(view: View, query: string, limit: number, signal: AbortSignal): Promise<readonly Result[]> {
  const words = splitFilterWords(query).slice(0, maxWords)
  const results: Result[] = []
  for await (const { items } of iteratePages((page) => view.list(page, { signal }), { maxPages })) {
    for (const resource of items) {
      const score = scoreOf(resource, words)
      if (score === 0) continue
      const { uri, name, title, description, mimeType } = resource
      results.push({
        uri,
        document: uri,
        name: title ?? name,
        snippet: description ?? '',
        score,
        facts: defined({ title, mimeType }),
      })
    }
  }
  return results.sort((a, b) => b.score - a.score).slice(0, limit)
}

function scoreOf({ uri, name, title = '', description = '' }: Resource, words: readonly string[]): number {
  const mounts = [
    [foldText(name), 1],
    [foldText(title), 0.9],
    [foldText(decodeIfValid(uri)), 0.5],
    [foldText(description), 0.3],
  ] as const
  let sum = 0
  for (const word of words) {
    const [, worth] = mounts.find(([text]) => text.includes(word)) ?? []
    if (worth === undefined) return 0
    sum += worth
  }
  return words.length === 0 ? 0 : Math.round((sum / words.length) * 100) / 100
}
