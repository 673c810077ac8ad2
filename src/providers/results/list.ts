import { unavailable } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { comparePaths } from '../../core/path.ts'
import type { Context, Entry, ListQuery } from '../../core/provider.ts'
import { type Collection, rowsIn } from '../../store/store.ts'
import {
  escapeName,
  idPattern,
  recordPath,
  reportPath,
  resultFolders,
  tagPath,
  unescapeName,
  votePath,
} from './paths.ts'
import { reportLanguageOf } from './report.ts'
import { type ParsedRow, parseRow, tagTerm } from './row.ts'

const json = 'application/json'

const pageSize = 32
/** Upper bound of the length of an id, and of the segment of a tag, in characters. */
const longest = 300

export const recentEntry: Entry = {
  path: 'recent',
  title: 'Recent results',
  description: 'The results that were written last, newest first.',
  mimeType: json,
}

export function tagEntry(tag: string): Entry {
  return { path: tagPath(tag), title: tag, description: 'The results with this tag, newest first.', mimeType: json }
}

export function recordEntry({ id, head, row }: ParsedRow): Entry {
  const { title, taskType, providers, confidence, met } = head
  const description = `An analysis of the task type ${taskType}. Answers: ${providers.length}. Confidence: ${confidence}. Thresholds: ${met ? 'met' : 'not met'}.`
  return { path: recordPath(id), title, description, mimeType: json, size: head.size, ...modifiedAndVersion(row) }
}

export function reportEntry({ id, head, row }: ParsedRow): Entry {
  const description = 'The analysis as a report in Markdown.'
  return {
    path: reportPath(id),
    title: `${reportWord(head.language)}: ${head.title}`,
    description,
    mimeType: 'text/markdown',
    ...modifiedAndVersion(row),
  }
}

export function voteEntry({ id, head, row }: ParsedRow, provider: string): Entry {
  const description = `The answer of ${provider}.`
  return {
    path: votePath(id, provider),
    title: `${provider}: ${head.title}`,
    description,
    mimeType: json,
    ...modifiedAndVersion(row),
  }
}

function reportWord(language: string): string {
  return reportLanguageOf(language) === 'ja' ? 'レポート' : 'Report'
}

function modifiedAndVersion({ modified, revision }: ParsedRow['row']): Pick<Entry, 'modified' | 'version'> {
  return { modified, version: String(revision) }
}

function* analysisEntries(record: ParsedRow): Generator<Entry> {
  yield reportEntry(record)
  const votes = record.head.providers.map((provider) => voteEntry(record, provider))
  yield* votes.sort((a, b) => comparePaths(a.path, b.path))
}

export async function* listEntries(
  records: Collection,
  tags: TagList,
  query: ListQuery,
  { signal }: Context,
): AsyncGenerator<Entry> {
  const { prefix = '', after } = query
  const isLeft = ({ path }: Entry) => path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0)
  const inTags = sectionIn(resultFolders.tags, query)
  // Nothing is below a tag.
  if (inTags !== undefined && prefix.length <= resultFolders.tags.length)
    for await (const tag of tags.list(inTags, signal)) yield tagEntry(tag)
  signal.throwIfAborted()
  if (isLeft(recentEntry)) yield recentEntry
  const inRecords = sectionIn(resultFolders.records, query)
  if (inRecords === undefined) return
  for await (const entry of recordsIn(records, prefix, inRecords, signal)) if (isLeft(entry)) yield entry
}

/** Returns the path in a folder after which a listing begins. `undefined`: the listing covers nothing in the folder. */
function sectionIn(folder: string, { prefix = '', after }: ListQuery): { readonly after?: string } | undefined {
  if (!prefix.startsWith(folder) && !folder.startsWith(prefix)) return undefined
  if (after === undefined || comparePaths(after, folder) <= 0) return {}
  return after.startsWith(folder) ? { after: [...after.slice(folder.length)].slice(0, longest).join('') } : undefined
}

async function* recordsIn(
  records: Collection,
  prefix: string,
  { after }: { readonly after?: string },
  signal: AbortSignal,
): AsyncGenerator<Entry> {
  const [only = ''] = prefix.slice(resultFolders.records.length).split('/')
  if (only !== '') {
    const record = await findRecord(records, only)
    if (record !== undefined) yield* analysisEntries(record)
    return
  }
  // A result is listed at the position of its id, and its parts at the position of `id/`: `a`, `a-b`, `a-b/report`, `a/report`.
  // The results whose parts are still to come form a chain, in which each id begins with the previous one.
  const open: ParsedRow[] = []
  for (const id of chainOf(after ?? '')) {
    const record = await findRecord(records, id)
    if (record !== undefined) open.push(record)
  }
  for await (const record of rowsAfter(records, after, signal)) {
    for (let last = open.at(-1); last !== undefined && `${last.id}/` < record.id; last = open.at(-1)) {
      open.pop()
      yield* analysisEntries(last)
    }
    yield recordEntry(record)
    open.push(record)
  }
  for (const record of open.reverse()) yield* analysisEntries(record)
}

/** Returns the ids whose parts may come after a path, although the ids themselves come before it. */
function chainOf(path: string): readonly string[] {
  const [first = ''] = path.split('/', 1)
  const ids: string[] = []
  for (let end = 1; end <= first.length; end++) {
    const next = first[end]
    if ((next === undefined || next < '/') && idPattern.test(first.slice(0, end))) ids.push(first.slice(0, end))
  }
  return ids
}

async function* rowsAfter(
  records: Collection,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ParsedRow> {
  const query = { limit: pageSize, values: true, ...defined({ after: after === '' ? undefined : after }) }
  for await (const row of rowsIn(records, query, signal)) yield parseRow(row)
}

export async function findRecord(records: Collection, id: string): Promise<ParsedRow | undefined> {
  const row = idPattern.test(id) ? await records.get(id) : undefined
  return row === undefined ? undefined : parseRow(row)
}

export type TagList = ReturnType<typeof createTagList>

/** Additional lifetime of a tag beyond that of its results, because clocks differ, in milliseconds. */
const tagSlackMs = 60_000
const attempts = 16
const tagsPageSize = 100

/**
 * Creates the list of existing tags. Each tag has a row, which is written before any result with the tag, and expires no earlier
 * than its results. A tag may outlive its results, so `list` checks whether a result has it.
 */
export function createTagList(rows: Collection, records: Collection) {
  /** The expiry time of each tag, as far as this process knows. */
  const noted = createLruCache<number>(1000)

  const noteOne = async (tag: string, until: number): Promise<void> => {
    if ((noted.get(tag) ?? 0) >= until) return
    const key = escapeName(tag)
    const expires = until === Number.POSITIVE_INFINITY ? {} : { expires: until }
    for (let attempt = 0; attempt < attempts; attempt++) {
      const row = await rows.get(key)
      const expiry = row === undefined ? 0 : (row.expires ?? Number.POSITIVE_INFINITY)
      const isNoted =
        expiry >= until ||
        (await rows.put(
          { key, value: Buffer.from(tag), ...expires },
          row === undefined ? { absent: true } : { revision: row.revision },
        )) !== undefined
      if (isNoted) return noted.set(tag, Math.max(expiry, until))
    }
    throw unavailable('Too many callers write results with this tag at once. Try again later.', { reason: 'busy' })
  }

  return {
    /** Records the tags of a result before the result is written. They are kept at least until `expires`, or for ever without it. */
    note: async (tags: readonly string[], expires: number | undefined): Promise<void> => {
      for (const tag of tags)
        await noteOne(tag, expires === undefined ? Number.POSITIVE_INFINITY : expires + tagSlackMs)
    },
    /** Yields the tags that at least one result has, in path order of their segments. */
    list: async function* (
      query: { readonly after?: string; readonly prefix?: string },
      signal: AbortSignal,
    ): AsyncGenerator<string> {
      for await (const { key } of rowsIn(rows, { ...query, limit: tagsPageSize }, signal)) {
        const tag = unescapeName(key)
        if (tag !== undefined && (await records.list({ term: tagTerm(tag), limit: 1 })).length > 0) yield tag
      }
    },
  }
}
