import { comparePaths } from '../../core/path.ts'
import type { Completion, CompletionRequest } from '../../core/provider.ts'
import type { Collection } from '../../store/store.ts'
import { taskTypes } from './analysis.ts'
import { findRecord } from './list.ts'
import { nameFault, segmentOf } from './names.ts'
import { reportLanguages } from './report.ts'
import { parseRow } from './row.ts'
import type { Tags } from './tags.ts'

const mostValues = 100
/** Maximum number of results examined for names of providers. */
const looked = 100

/** Completes ids, tags, names of providers, task types and languages of reports. */
export async function completeResults(
  { argument: { name, value }, arguments: filled }: CompletionRequest,
  records: Collection,
  tags: Tags,
  signal: AbortSignal,
): Promise<Completion | undefined> {
  switch (name) {
    case 'taskType':
      return among(taskTypes, value)
    case 'lang':
      return among(reportLanguages, value)
    case 'id': {
      if (!/^[A-Za-z0-9._~-]{0,128}$/.test(value)) return { values: [] }
      const rows = await records.list({ prefix: value, limit: mostValues + 1 })
      return firstOf(rows.map(({ key }) => key))
    }
    case 'tag': {
      if (value.length > 200 || nameFault(value.trim()) !== undefined) return { values: [] }
      const found: string[] = []
      for await (const tag of tags.list({ prefix: value }, signal)) if (found.push(segmentOf(tag)) > mostValues) break
      return firstOf(found)
    }
    case 'provider':
      return among(await providersOf(records, filled.get('id')), value)
    case 'path':
      return undefined
    default:
      return { values: [] }
  }
}

/** The segments of the providers of one result, else of the latest. */
async function providersOf(records: Collection, id: string | undefined): Promise<readonly string[]> {
  const one = id === undefined ? undefined : await findRecord(records, id)
  const heads =
    id === undefined
      ? (await records.list({ newest: true, limit: looked, values: true })).map((row) => parseRow(row).head)
      : one === undefined
        ? []
        : [one.head]
  return [...new Set(heads.flatMap(({ providers }) => providers.map(segmentOf)))].sort(comparePaths)
}

function among(words: readonly string[], value: string): Completion {
  return firstOf(words.filter((word) => word.startsWith(value)))
}

function firstOf(values: readonly string[]): Completion {
  if (values.length > mostValues) return { values: values.slice(0, mostValues), hasMore: true }
  return { values, total: values.length, hasMore: false }
}
