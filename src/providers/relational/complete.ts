import type { Completion, CompletionRequest } from '../../core/provider.ts'
import { behind } from './documents.ts'
import type { ObjectName } from './model.ts'
import { nameOf, rowSegmentOf, segmentOf } from './names.ts'
import type { Table } from './rows.ts'
import type { Listed, Source, SourceContext } from './source.ts'

const maxValues = 100
/** Maximum number of objects examined for one completion. */
const maxLooks = 4000
const pageLength = 500
/** Maximum number of keys examined: keys that begin with the same digits are not adjacent. */
const maxKeys = 1000
const nothing: Completion = { values: [], total: 0, hasMore: false }

export interface CompleterOptions {
  readonly source: Source
  /** A table whose rows may be read, `undefined` where there is none. */
  readonly tableOf: (name: ObjectName, context: SourceContext) => Promise<Table | undefined>
}

/** Completes names of tables, enums and functions, columns and keys. Schemas are completed from the tree. */
export function createCompleter({ source, tableOf }: CompleterOptions) {
  const names = async (
    head: string,
    typed: string,
    isWanted: (item: Named) => boolean,
    context: SourceContext,
  ): Promise<Completion> => {
    const values: string[] = []
    let looks = 0
    for (let from = `${head}${typed}`; ; ) {
      const page = await source.page({ from, prefix: head, limit: pageLength }, context)
      for (const item of page) {
        if (!item.key.startsWith(`${head}${typed}`)) return { values, total: values.length, hasMore: false }
        if (!('name' in item) || !isWanted(item)) continue
        if (values.length === maxValues) return { values, hasMore: true }
        values.push(item.key.slice(head.length, -1))
      }
      const last = page.at(-1)
      if (last === undefined || page.length < pageLength) return { values, total: values.length, hasMore: false }
      looks += page.length
      if (looks >= maxLooks) return { values, hasMore: true }
      from = behind(last.key)
    }
  }

  const columns = ({ access }: Table, typed: string): Completion => {
    const comma = typed.lastIndexOf(',') + 1
    const [before, started] = [typed.slice(0, comma), typed.slice(comma).toLowerCase()]
    const taken = new Set(before.split(','))
    const left = access.readable
      .map((column) => rowSegmentOf([column]))
      .filter((column) => !taken.has(column) && column.toLowerCase().startsWith(started))
    return {
      values: left.slice(0, maxValues).map((column) => before + column),
      total: left.length,
      hasMore: left.length > maxValues,
    }
  }

  const keys = async ({ relation, access }: Table, typed: string, context: SourceContext): Promise<Completion> => {
    if (source.rows === undefined || access.key.length === 0) return nothing
    const first = nameOf(typed.split(',')[0] ?? '') ?? ''
    const found = await source.rows.keys(
      { relation: { ...relation, rows: access }, typed: typed === '' ? '' : first, limit: maxKeys },
      context,
    )
    const values = found.map(rowSegmentOf).filter((key) => key.startsWith(typed))
    return { values: values.slice(0, maxValues), hasMore: values.length > maxValues }
  }

  return async (
    { argument, arguments: filled }: CompletionRequest,
    context: SourceContext,
  ): Promise<Completion | undefined> => {
    const { name, value } = argument
    if (name === 'schema' || name === 'path') return undefined
    if (name === 'format') return chosen(['mermaid'], value)
    const given = filled.get('schema') ?? ''
    const schema = source.schema ?? nameOf(given)
    if (schema === undefined || (source.schema === undefined && given === '')) return nothing
    const head = source.schema === undefined ? `${segmentOf(schema)}/` : ''
    const isWanted = wanted[name]
    if (isWanted !== undefined) return value.includes('/') ? nothing : names(head, value, isWanted, context)
    if (name !== 'columns' && name !== 'key') return nothing
    const named = nameOf(filled.get('table') ?? '')
    const table = named === undefined ? undefined : await tableOf({ schema, name: named }, context)
    if (table === undefined) return nothing
    return name === 'columns' ? columns(table, value) : keys(table, value, context)
  }
}

type Named = Extract<Listed, { name: string }>

const wanted: Readonly<Record<string, (item: Named) => boolean>> = {
  table: (item) => item.relation !== undefined,
  enum: (item) => item.isEnum === true,
  function: (item) => item.isRoutine === true,
}

function chosen(values: readonly string[], typed: string): Completion {
  const matching = values.filter((value) => value.startsWith(typed))
  return { values: matching, total: matching.length, hasMore: false }
}
