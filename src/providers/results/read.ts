import { invalid, notFound } from '../../core/errors.ts'
import type { Content, Params } from '../../core/provider.ts'
import type { Collection } from '../../store/store.ts'
import { taskTypes } from './analysis.ts'
import { findRecord } from './list.ts'
import { formatJson, formatMatch, look, type Question, summaryOf } from './lookup.ts'
import type { Place } from './places.ts'
import { formatReport, reportLanguageOf, reportLanguages } from './report.ts'
import { type Found, parseRow, tagTerm } from './row.ts'

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
