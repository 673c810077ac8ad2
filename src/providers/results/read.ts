import { fallbackTo, invalid, isResourceError, notFound, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Content, Params } from '../../core/provider.ts'
import { type OnceOptions, once } from '../../store/index.ts'
import type { Collection, Store } from '../../store/store.ts'
import { findRecord } from './list.ts'
import { type ResultPath, recordPath } from './paths.ts'
import { type Analysis, type NewAnalysis, type TaskType, taskTypes } from './record.ts'
import { formatReport, reportLanguageOf, reportLanguages } from './report.ts'
import {
  gramsOf,
  gramTerms,
  hashTerm,
  maxGrams,
  type ParsedRow,
  parseRow,
  sha256,
  similarityOf,
  tagTerm,
} from './row.ts'
import type { ResultWriter } from './write.ts'

export interface Question {
  /** The prompt as a person writes it. */
  readonly prompt: string
  /** Undefined: analyses of any task type match. */
  readonly taskType?: TaskType
}

interface ResultMatch {
  /** `exact`: the same normalized prompt, newest first. `similar`: other prompts, the closest first. */
  readonly match: 'exact' | 'similar' | 'none'
  readonly found: readonly { readonly record: ParsedRow; readonly similarity: number }[]
}

/** Maximum numbers of exact and similar matches, and of the rows that are examined for each: `same` and `candidates`. */
const most = { exact: 20, same: 1000, similar: 5, candidates: 16 }

/** Minimum similarity of a similar prompt, from 0 to 1. */
const leastSimilarity = 0.5

export async function findMatch(records: Collection, question: Question): Promise<ResultMatch> {
  const exact = await findExact(records, question)
  if (exact.length > 0) return { match: 'exact', found: exact.map((record) => ({ record, similarity: 1 })) }
  const similar = await findSimilar(records, question)
  return { match: similar.length > 0 ? 'similar' : 'none', found: similar }
}

async function findExact(
  records: Collection,
  question: Question,
  limit: number = most.exact,
): Promise<readonly ParsedRow[]> {
  const term = hashTerm(question.prompt)
  // Few rows have the term, so sorting them here costs less than in the store.
  const rows = await records.list({ term, limit: most.same, values: false })
  const newest = [...rows].sort((a, b) => b.revision - a.revision).map(({ key }) => key)
  const parsedRows: ParsedRow[] = []
  for (const key of newest) {
    const row = await records.get(key)
    // The row may have changed since the list was read.
    if (row?.terms.includes(term)) parsedRows.push(...[parseRow(row)].filter(isOf(question)))
    if (parsedRows.length === limit) break
  }
  return parsedRows
}

async function findSimilar(records: Collection, question: Question): Promise<ResultMatch['found']> {
  const grams = gramsOf(question.prompt)
  const candidates = await records.similar(gramTerms(grams, maxGrams.asked), most.candidates)
  const rows = await Promise.all(candidates.map(({ key }) => records.get(key)))
  return rows
    .flatMap((row) => (row === undefined ? [] : [parseRow(row)]))
    .filter(isOf(question))
    .map((record) => ({ record, similarity: similarityOf(grams, gramsOf(record.analysis().prompt)) }))
    .filter(({ similarity }) => similarity >= leastSimilarity)
    .sort((a, b) => b.similarity - a.similarity || b.record.row.revision - a.record.row.revision)
    .slice(0, most.similar)
}

function isOf({ taskType }: Question): (found: ParsedRow) => boolean {
  return ({ head }) => taskType === undefined || head.taskType === taskType
}

function summarizeResult({ id, head }: ParsedRow) {
  const { digest: _, size: __, met, ...facts } = head
  return { id, path: recordPath(id), ...facts, thresholdsMet: met }
}

function formatMatch({ prompt, taskType }: Question, { match, found }: ResultMatch): string {
  const [first] = match === 'exact' ? found : []
  const analysis: Analysis | undefined = first?.record.analysis()
  return formatJson({
    prompt,
    ...defined({ taskType }),
    match,
    results: found.map(({ record, similarity }) => ({
      similarity: Math.round(similarity * 1000) / 1000,
      ...summarizeResult(record),
    })),
    ...defined({ analysis }),
  })
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

const json = 'application/json'
const pageSizes = { recent: 50, tag: 200 }

/** @throws ResourceError `not-found`, or `invalid` for a wrong parameter. */
export async function readPath(path: ResultPath, params: Params, records: Collection): Promise<Content> {
  switch (path.kind) {
    case 'recent':
      return { mimeType: json, text: await formatList(records, { limit: pageSizes.recent }) }
    case 'tag': {
      const query = { term: tagTerm(path.tag), limit: pageSizes.tag }
      if ((await records.list({ ...query, limit: 1 })).length === 0) throw notFound('no result with the tag')
      return { mimeType: json, text: await formatList(records, query) }
    }
    case 'lookup': {
      const question = questionIn(params)
      return { mimeType: json, text: formatMatch(question, await findMatch(records, question)) }
    }
    case 'record':
    case 'report':
    case 'vote': {
      const record = await findRecord(records, path.id)
      if (record === undefined) throw notFound('no such result')
      return { ...resultContent(record, path, params), version: String(record.row.revision) }
    }
  }
}

function resultContent(record: ParsedRow, path: Extract<ResultPath, { readonly id: string }>, params: Params): Content {
  if (path.kind === 'record') return { mimeType: json, text: record.json(), size: record.head.size }
  const analysis = record.analysis()
  if (path.kind === 'report') {
    const language = reportLanguageIn(params) ?? reportLanguageOf(analysis.language)
    return { mimeType: 'text/markdown', text: formatReport(analysis, language) }
  }
  const vote = analysis.votes.find(({ provider }) => provider === path.provider)
  if (vote === undefined) throw notFound('no such vote')
  return { mimeType: json, text: formatJson(vote) }
}

async function formatList(
  records: Collection,
  { term, limit }: { readonly term?: string; readonly limit: number },
): Promise<string> {
  const query = term === undefined ? {} : { term }
  const rows = await records.list({ ...query, newest: true, limit: limit + 1, values: true })
  const results = rows.slice(0, limit).map((row) => summarizeResult(parseRow(row)))
  return formatJson({ results, ...(rows.length > limit ? { more: true } : {}) })
}

function reportLanguageIn(params: Params) {
  const value = params.get('lang')
  const language = reportLanguages.find((one) => one === value)
  if (value !== undefined && language === undefined)
    throw invalid('The parameter "lang" must be ja or en. Write ?lang=ja or ?lang=en.', 'parameter', {
      parameter: 'lang',
    })
  return language
}

function questionIn(params: Params): Question {
  const prompt = params.get('prompt')
  if (prompt === undefined || prompt.trim() === '')
    throw invalid(
      'The parameter "prompt" is missing. Write lookup?prompt=…, and &taskType=… for results of one type only.',
      'parameter',
      {
        parameter: 'prompt',
      },
    )
  const value = params.get('taskType')
  const taskType = taskTypes.find((one) => one === value)
  if (value !== undefined && taskType === undefined)
    throw invalid(`The parameter "taskType" must be one of ${taskTypes.join(', ')}.`, 'parameter', {
      parameter: 'taskType',
    })
  return taskType === undefined ? { prompt } : { prompt, taskType }
}

export type ComputeOptions = OnceOptions

interface Parts {
  readonly store: Store
  readonly collection: string
  readonly records: Collection
  readonly writer: Pick<ResultWriter, 'put' | 'prepare'>
}

/** Lifetime of the copy of a computed result for waiting callers, in milliseconds. */
const handoverMs = 60_000
const attempts = 4

export async function computeOnce(
  { store, collection, records, writer }: Parts,
  question: Required<Question>,
  compute: (signal: AbortSignal) => Promise<Omit<NewAnalysis, 'prompt' | 'taskType'>>,
  options: ComputeOptions = {},
): Promise<Analysis> {
  const handed = `${collection}/computed`
  const key = sha256(`${question.taskType} ${hashTerm(question.prompt)}`)
  const make = async (signal: AbortSignal): Promise<Analysis> => {
    const cachedAnalysis = await newest(records, question)
    if (cachedAnalysis !== undefined) return cachedAnalysis
    const analysis = { ...(await compute(signal)), prompt: question.prompt, taskType: question.taskType }
    return storeAnalysis(writer, analysis)
  }
  for (let attempt = 0; attempt < attempts; attempt++) {
    const latest = await newest(records, question)
    if (latest !== undefined) return latest
    const { value, row, computed } = await once(
      store,
      handed,
      key,
      async (signal) => ({
        value: Buffer.from(JSON.stringify(await make(signal))),
        expires: Date.now() + handoverMs,
      }),
      options,
    )
    const analysis = JSON.parse(Buffer.from(value).toString()) as Analysis
    if (computed || row === undefined || (await isKept(records, analysis.id))) return analysis
    // The result was removed in the meantime: drop the copy for waiting callers, too.
    await store.collection(handed).delete(key, { revision: row.revision })
  }
  throw unavailable('The result was removed while it was read. Try again.', { reason: 'busy' })
}

/** If the store does not answer, the result is still returned. */
async function storeAnalysis(writer: Parts['writer'], analysis: NewAnalysis): Promise<Analysis> {
  const prepared = writer.prepare(analysis)
  try {
    await writer.put(prepared)
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) throw error
  }
  return prepared
}

async function newest(records: Collection, question: Question): Promise<Analysis | undefined> {
  const matches = await findExact(records, question, 1).catch(fallbackTo([], 'unavailable'))
  return matches[0]?.analysis()
}

async function isKept(records: Collection, id: string): Promise<boolean> {
  return records.get(id).then((row) => row !== undefined, fallbackTo(true, 'unavailable'))
}
