import { invalid, isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import type { Content, Params } from '../../core/provider.ts'
import { once } from '../../store/index.ts'
import type { Collection, Store } from '../../store/store.ts'
import { findRecord } from './list.ts'
import { findExact, formatJson, formatMatch, look, type Question, summaryOf } from './lookup.ts'
import type { Place } from './places.ts'
import { type Analysis, type NewAnalysis, taskTypes } from './record.ts'
import { formatReport, reportLanguageOf, reportLanguages } from './report.ts'
import { type Found, hashTerm, parseRow, sha256, tagTerm } from './row.ts'
import type { Writer } from './write.ts'

const json = 'application/json'
/** Maximum number of results per list. */
const listed = { recent: 50, tag: 200 }

/** Reads what a place names. */
export async function readPlace(place: Place, params: Params, records: Collection): Promise<Content> {
  switch (place.kind) {
    case 'recent':
      return { mimeType: json, text: await formatList(records, { limit: listed.recent }) }
    case 'tag': {
      const query = { term: tagTerm(place.tag), limit: listed.tag }
      if ((await records.list({ ...query, limit: 1 })).length === 0) throw notFound('no result with the tag')
      return { mimeType: json, text: await formatList(records, query) }
    }
    case 'lookup': {
      const question = questionIn(params)
      return { mimeType: json, text: formatMatch(question, await look(records, question)) }
    }
    case 'record':
    case 'report':
    case 'vote': {
      const found = await findRecord(records, place.id)
      if (found === undefined) throw notFound('no such result')
      return { ...bodyOf(found, place, params), version: String(found.row.revision) }
    }
  }
}

function bodyOf(found: Found, place: Extract<Place, { readonly id: string }>, params: Params): Content {
  if (place.kind === 'record') return { mimeType: json, text: found.json(), size: found.head.size }
  const analysis = found.analysis()
  if (place.kind === 'report') {
    const language = reportLanguageIn(params) ?? reportLanguageOf(analysis.language)
    return { mimeType: 'text/markdown', text: formatReport(analysis, language) }
  }
  const vote = analysis.votes.find(({ provider }) => provider === place.provider)
  if (vote === undefined) throw notFound('no such vote')
  return { mimeType: json, text: formatJson(vote) }
}

async function formatList(
  records: Collection,
  { term, limit }: { readonly term?: string; readonly limit: number },
): Promise<string> {
  const query = term === undefined ? {} : { term }
  const rows = await records.list({ ...query, newest: true, limit: limit + 1, values: true })
  const results = rows.slice(0, limit).map((row) => summaryOf(parseRow(row)))
  return formatJson({ results, ...(rows.length > limit ? { more: true } : {}) })
}

function reportLanguageIn(params: Params) {
  const given = params.get('lang')
  const language = reportLanguages.find((known) => known === given)
  if (given !== undefined && language === undefined)
    throw invalid('A report is written in ja or en: write ?lang=ja or ?lang=en.', 'lang')
  return language
}

function questionIn(params: Params): Question {
  const prompt = params.get('prompt')
  if (prompt === undefined || prompt.trim() === '')
    throw invalid('Say what is looked for: lookup?prompt=…, and &taskType=… where it matters.', 'prompt')
  const given = params.get('taskType')
  const taskType = taskTypes.find((known) => known === given)
  if (given !== undefined && taskType === undefined)
    throw invalid(`There are these task types: ${taskTypes.join(', ')}.`, 'taskType')
  return taskType === undefined ? { prompt } : { prompt, taskType }
}

export interface ComputeOptions {
  /** For how long somebody who has died while computing keeps others from it, in milliseconds. Default 10,000. */
  readonly ttlMs?: number
  /** How long to wait for the computation of another caller, in milliseconds. Default 300,000. */
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

interface Parts {
  readonly store: Store
  readonly collection: string
  readonly records: Collection
  readonly writer: Pick<Writer, 'put' | 'prepare'>
}

/** How long a computed result is handed to waiting callers, in milliseconds. After that it must be looked up. */
const handover = 60_000
const attempts = 4

/** See `Results.getOrCompute`. */
export async function computeOnce(
  { store, collection, records, writer }: Parts,
  question: Required<Question>,
  compute: (signal: AbortSignal) => Promise<Omit<NewAnalysis, 'prompt' | 'taskType'>>,
  options: ComputeOptions = {},
): Promise<Analysis> {
  const handed = `${collection}/computed`
  const key = sha256(`${question.taskType} ${hashTerm(question.prompt)}`)
  const make = async (signal: AbortSignal): Promise<Analysis> => {
    const known = await newest(records, question)
    if (known !== undefined) return known
    const made = { ...(await compute(signal)), prompt: question.prompt, taskType: question.taskType }
    return keep(writer, made)
  }
  for (let attempt = 0; attempt < attempts; attempt++) {
    const known = await newest(records, question)
    if (known !== undefined) return known
    const { value, row, computed } = await once(
      store,
      handed,
      key,
      async (signal) => ({
        value: Buffer.from(JSON.stringify(await make(signal))),
        expires: Date.now() + handover,
      }),
      options,
    )
    const analysis = JSON.parse(Buffer.from(value).toString()) as Analysis
    if (computed || row === undefined || (await isKept(records, analysis.id))) return analysis
    // If it was removed in the meantime, the copy for waiting callers is dropped too.
    await store.collection(handed).delete(key, { revision: row.revision })
  }
  throw new ResourceError('unavailable', 'A result is removed as fast as it is computed.', { reason: 'busy' })
}

/** Stores a computed result. If the store does not answer, the result is still returned. */
async function keep(writer: Parts['writer'], made: NewAnalysis): Promise<Analysis> {
  const prepared = writer.prepare(made)
  try {
    await writer.put(prepared)
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) throw error
  }
  return prepared
}

async function newest(records: Collection, question: Question): Promise<Analysis | undefined> {
  try {
    return (await findExact(records, question, 1))[0]?.analysis()
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return undefined
    throw error
  }
}

async function isKept(records: Collection, id: string): Promise<boolean> {
  try {
    return (await records.get(id)) !== undefined
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return true
    throw error
  }
}
