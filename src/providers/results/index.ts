import { completeFromValues } from '../../core/completion.ts'
import { notFound } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/object.ts'
import { comparePaths } from '../../core/path.ts'
import type { Completion, CompletionRequest, Content, Params, Provider, Template } from '../../core/provider.ts'
import type { RecordStore } from '../../core/tool.ts'
import type { Collection, Store } from '../../store/store.ts'
import {
  createTagList,
  findRecord,
  listEntries,
  recentEntry,
  recordEntry,
  reportEntry,
  type TagList,
  tagEntry,
  voteEntry,
} from './list.ts'
import { escapeName, nameFault, parsePath } from './paths.ts'
import { type ComputeOptions, computeOnce, findMatch, type Question, readPath } from './read.ts'
import { type Analysis, analysisJsonSchema, type NewAnalysis, taskTypes } from './record.ts'
import { reportLanguages } from './report.ts'
import { parseRow, tagTerm } from './row.ts'
import { watchResults } from './watch.ts'
import { createResultWriter, type StoreOutcome, type WriteOptions } from './write.ts'

export { openStore, type Store, type StoreOptions } from '../../store/index.ts'
export type { ComputeOptions, Question } from './read.ts'
export { type Analysis, analysisJsonSchema, type NewAnalysis, type TaskType, taskTypes, type Vote } from './record.ts'
export { formatReport, type ReportLanguage } from './report.ts'
export { hashPrompt, normalizePrompt } from './row.ts'
export type { ResultLimits, StoreOutcome } from './write.ts'

export interface ResultsOptions extends WriteOptions {
  /** Store of the results. The provider does not close it: others may use it. */
  readonly store: Store
  /** Name of the collection in the store, at most 200 bytes. Default `results`. */
  readonly collection?: string
}

export interface SimilarAnalysis {
  readonly analysis: Analysis
  /** From 0 to 1: 1 if both prompts are equal after normalization. */
  readonly similarity: number
}

/** Results of wall-bounce analyses: a provider that serves stored results, with methods that store them. */
export interface Results extends Omit<Provider, keyof RecordStore>, RecordStore {
  /** Stores an analysis, given as {@link NewAnalysis}. */
  put(value: unknown): Promise<StoreOutcome>
  get(id: string): Promise<Analysis | undefined>
  /** Finds results with the same prompt, newest first; if there are none, with similar prompts, the closest first. */
  lookup(
    question: Question,
  ): Promise<{ readonly match: 'exact' | 'similar' | 'none'; readonly found: readonly SimilarAnalysis[] }>
  /**
   * Returns the newest analysis of the same prompt and task type; when there is none, `compute` makes it, and it is stored. Concurrent
   * callers share one computation, also those in other processes; if the computing process dies, another takes over. An error of `compute`
   * is thrown here and not stored.
   */
  getOrCompute(
    key: Required<Question>,
    compute: (signal: AbortSignal) => Promise<Omit<NewAnalysis, 'prompt' | 'taskType'>>,
    options?: ComputeOptions,
  ): Promise<Analysis>
  /** Deletes a result. Resolves to `false` if there is no such result. */
  delete(id: string): Promise<boolean>
  /** Removes expired results, and results beyond the limits. Resolves to the removed ids. */
  evict(): Promise<readonly string[]>
}

const templates: readonly Template[] = [
  {
    template: 'results/{id}',
    name: 'Result',
    title: 'A wall-bounce analysis',
    description: 'The answers of several models to one question, and the consensus, as JSON.',
    mimeType: 'application/json',
  },
  {
    template: 'results/{id}/report{?lang}',
    name: 'Report',
    title: 'A wall-bounce analysis as a report',
    description: 'The analysis in Markdown, in the language lang (ja or en), by default in its own.',
    mimeType: 'text/markdown',
  },
  {
    template: 'results/{id}/votes/{provider}',
    name: 'Vote',
    title: 'The answer of one provider',
    mimeType: 'application/json',
  },
  {
    template: 'by-tag/{tag}',
    name: 'Results by tag',
    title: 'The results with a tag',
    description:
      'The list of the results with a tag, newest first. In {tag}, ~1 is a slash and ~0 a tilde; the tags . and .. are ~2 and ~2. there.',
    mimeType: 'application/json',
  },
  {
    template: 'lookup{?prompt,taskType}',
    free: ['prompt'],
    name: 'Lookup',
    title: 'A result for a question',
    description:
      'Looks for analyses of this prompt. "match" is exact (the same prompt: the newest analysis is in the answer), similar ' +
      '(other prompts, each with its "similarity" up to 1) or none. taskType is basic, premium or critical.',
    mimeType: 'application/json',
  },
]

/** Cached results of wall-bounce analyses: records in a store, each as JSON, as a report, and vote by vote. */
export function results(options: ResultsOptions): Results {
  requireKeys('results({ store })', options, { store: 'an object' })
  const { store, collection = 'results', scrubber } = options
  const records = store.collection(collection)
  const tags = createTagList(store.collection(`${collection}/tags`), records)
  const writer = createResultWriter(records, tags, options)
  const clean = (text: string) => scrubber?.scrub(text) ?? text

  const findPath = (path: string) => {
    const resultPath = parsePath(path)
    if (resultPath === undefined) throw notFound('no result, list or lookup has this path')
    return resultPath
  }
  const foundAt = async (id: string) => {
    const record = await findRecord(records, id)
    if (record === undefined) throw notFound('no such result')
    return record
  }
  /** Secrets are removed from a prompt before it is stored, so it is looked up without them, too. */
  const cleanQuestion = <T extends Question>(question: T): T => ({ ...question, prompt: clean(question.prompt) })
  const lookup: Results['lookup'] = async (question) => {
    const { match, found } = await findMatch(records, cleanQuestion(question))
    return { match, found: found.map(({ record, similarity }) => ({ analysis: record.analysis(), similarity })) }
  }

  return {
    list: (query, context) => listEntries(records, tags, query, context),
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      const resultPath = findPath(path)
      switch (resultPath.kind) {
        case 'recent':
          return recentEntry
        case 'lookup':
          throw notFound('a lookup needs a prompt')
        case 'tag':
          if ((await records.list({ term: tagTerm(resultPath.tag), limit: 1 })).length === 0)
            throw notFound('no result with the tag')
          return tagEntry(resultPath.tag)
        case 'record':
          return recordEntry(await foundAt(resultPath.id))
        case 'report':
          return reportEntry(await foundAt(resultPath.id))
        case 'vote': {
          const record = await foundAt(resultPath.id)
          if (!record.head.providers.includes(resultPath.provider)) throw notFound('no such vote')
          return voteEntry(record, resultPath.provider)
        }
      }
    },
    read: async ({ path, params }, { signal }): Promise<readonly Content[]> => {
      signal.throwIfAborted()
      const content = await readPath(findPath(path), mapParams(params, clean), records)
      if (!('text' in content)) return [content]
      const text = clean(content.text)
      // Redaction may have changed the length of a text that was stored before the secret was known.
      const { size: _, ...rest } = content
      return [text === content.text ? content : { ...rest, text }]
    },
    templates: async () => templates,
    complete: (request, { signal }) => completeResults(request, records, tags, signal),
    watch: (signal) => watchResults(store, collection, records, signal),
    close: writer.close,
    put: writer.put,
    check: writer.check,
    schema: analysisJsonSchema(),
    get: async (id) => (await findRecord(records, id))?.analysis(),
    lookup,
    getOrCompute: (key, compute, computeOptions) =>
      computeOnce({ store, collection, records, writer }, cleanQuestion(key), compute, computeOptions),
    delete: writer.delete,
    evict: writer.evict,
  }
}

function mapParams(params: Params, change: (text: string) => string): Params {
  return new Map([...params].map(([name, value]) => [name, change(value)]))
}

const mostValues = 100
/** Maximum number of results examined for names of providers. */
const lookCount = 100

async function completeResults(
  { argument: { name, value }, arguments: filled }: CompletionRequest,
  records: Collection,
  tags: TagList,
  signal: AbortSignal,
): Promise<Completion | undefined> {
  switch (name) {
    case 'taskType':
      return completeFromValues(taskTypes, value)
    case 'lang':
      return completeFromValues(reportLanguages, value)
    case 'id': {
      if (!/^[A-Za-z0-9._~-]{0,128}$/.test(value)) return { values: [] }
      const rows = await records.list({ prefix: value, limit: mostValues + 1 })
      return toCompletion(rows.map(({ key }) => key))
    }
    case 'tag': {
      if (value.length > 200 || nameFault(value.trim()) !== undefined) return { values: [] }
      const ids: string[] = []
      for await (const tag of tags.list({ prefix: value }, signal)) if (ids.push(escapeName(tag)) > mostValues) break
      return toCompletion(ids)
    }
    case 'provider':
      return completeFromValues(await providersOf(records, filled.get('id')), value)
    case 'path':
      return undefined
    default:
      return { values: [] }
  }
}

/** Returns the path segments of the providers of a result; without an id, of the latest results. */
async function providersOf(records: Collection, id: string | undefined): Promise<readonly string[]> {
  const one = id === undefined ? undefined : await findRecord(records, id)
  const heads =
    id === undefined
      ? (await records.list({ newest: true, limit: lookCount, values: true })).map((row) => parseRow(row).head)
      : one === undefined
        ? []
        : [one.head]
  return [...new Set(heads.flatMap(({ providers }) => providers.map(escapeName)))].sort(comparePaths)
}

function toCompletion(values: readonly string[]): Completion {
  return values.length > mostValues
    ? { values: values.slice(0, mostValues), hasMore: true }
    : completeFromValues(values)
}
