import { isObject, nonEmptyText, parseIsoTime, stringItems } from '../../../../core/kit/object.ts'
import { encodePath, encodeSegment } from '../../../../core/uri.ts'

/** An analysis in a list of a results mount (`recent`, `by-tag/…`). Times are in milliseconds since 1970. */
export interface ListedAnalysis {
  readonly uri: string
  readonly report: string
  readonly title: string
  readonly confidence: number | undefined
  readonly thresholdsMet: boolean | undefined
  readonly cost: number | undefined
  /** Names of the models' providers. */
  readonly providers: readonly string[]
  readonly created: number | undefined
  readonly expires: number | undefined
  readonly tags: readonly { readonly name: string; readonly uri: string }[]
}

/** Returns the analyses in a list of a results mount, in the order of the list. Undefined for any other document. */
export function analysesOf(value: unknown, uri: string): readonly ListedAnalysis[] | undefined {
  const [, mount] = /^([^?#]*\/)(?:recent|by-tag\/[^/?#]+)$/.exec(uri) ?? []
  if (mount === undefined || !isObject(value) || !Array.isArray(value.results)) return undefined
  const listed: ListedAnalysis[] = []
  for (const result of value.results) {
    if (!isObject(result) || typeof result.path !== 'string' || !result.path.startsWith('results/')) return undefined
    const at = `${mount}${encodePath(result.path)}`
    listed.push({
      uri: at,
      report: `${at}/report`,
      title: nonEmptyText(result.title) ?? String(result.id ?? result.path),
      confidence: optionalNumber(result.confidence),
      thresholdsMet: typeof result.thresholdsMet === 'boolean' ? result.thresholdsMet : undefined,
      cost: optionalNumber(result.totalCost),
      providers: stringItems(result.providers),
      created: parseIsoTime(result.created),
      expires: parseIsoTime(result.expires),
      tags: stringItems(result.tags).map((name) => ({ name, uri: tagUri(mount, name) })),
    })
  }
  return listed
}

/** Returns the URI of a tag. Its last segment escapes `~` as `~0`, `/` as `~1`, and the first dot of `.` or `..` as `~2` (docs/providers/results.md). */
function tagUri(mount: string, tag: string): string {
  const name = tag
    .replaceAll('~', '~0')
    .replaceAll('/', '~1')
    .replace(/^\.(?=\.?$)/, '~2')
  return `${mount}by-tag/${encodeSegment(name)}`
}

const optionalNumber = (value: unknown) => (typeof value === 'number' ? value : undefined)

/** Maximum number of cells of a notebook that a preview draws. */
export const maxCells = 500
/** Maximum number of outputs of a cell that a preview draws. */
const maxOutputs = 50
/** Maximum length of an output, in characters. */
const maxOutputText = 50_000
/** Maximum length of an image in base64, in characters. */
const maxImageText = 10_000_000

/** One stored output of a cell. */
export type NotebookOutput =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'image'; readonly base64: string }

interface Cell {
  /** Markdown to lay out: the text of the cell, or its code in a fence. */
  readonly markdown: string
  /** The execution count of a code cell. */
  readonly count?: number
  readonly outputs: readonly NotebookOutput[]
}

export interface Notebook {
  readonly cells: readonly Cell[]
  readonly isCut: boolean
}

/** Parses a Jupyter notebook of format 4 or later. Returns `undefined` for other values. */
export function notebookOf(value: unknown): Notebook | undefined {
  if (!isObject(value) || !Array.isArray(value.cells) || typeof value.nbformat !== 'number') return undefined
  const metadata = isObject(value.metadata) ? value.metadata : {}
  const info = isObject(metadata.language_info) ? metadata.language_info : {}
  const language = typeof info.name === 'string' && /^[\w+#-]{1,40}$/.test(info.name) ? info.name : 'python'
  let isCut = value.cells.length > maxCells
  const cells = value.cells.slice(0, maxCells).flatMap((cell: unknown): Cell[] => {
    if (!isObject(cell)) return []
    const source = notebookText(cell.source)
    if (cell.cell_type === 'markdown') return [{ markdown: source, outputs: [] }]
    if (cell.cell_type !== 'code') return [{ markdown: fenced(source, ''), outputs: [] }]
    const all: readonly unknown[] = Array.isArray(cell.outputs) ? cell.outputs : []
    const outputs = all.slice(0, maxOutputs).flatMap((output) => outputOf(output) ?? [])
    if (outputs.length < all.length) isCut = true
    // Jupyter puts an empty cell below the last one, so empty cells are left out.
    if (source.trim() === '' && all.length === 0) return []
    const count = typeof cell.execution_count === 'number' ? { count: cell.execution_count } : {}
    return [{ markdown: fenced(source, language), outputs, ...count }]
  })
  return { cells, isCut }
}

/** Returns an output of a code cell as an image or a text. Other forms, such as HTML, are ignored. */
function outputOf(output: unknown): NotebookOutput | undefined {
  if (!isObject(output)) return undefined
  if (output.output_type === 'stream') return textOutput(notebookText(output.text))
  if (output.output_type === 'error')
    return { ...textOutput(`${notebookText(output.ename)}: ${notebookText(output.evalue)}`), kind: 'error' }
  const data = isObject(output.data) ? output.data : {}
  for (const type of ['image/png', 'image/jpeg', 'image/gif']) {
    const base64 = notebookText(data[type]).replace(/\s+/g, '')
    if (base64 !== '' && base64.length <= maxImageText) return { kind: 'image', base64 }
  }
  const text = notebookText(data['text/plain'])
  return text === '' ? undefined : textOutput(text)
}

function textOutput(text: string): Exclude<NotebookOutput, { kind: 'image' }> {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters set the colours of a terminal.
  const plain = text.replace(/\u001b\[[0-9;]*m/g, '')
  return { kind: 'text', text: plain.length > maxOutputText ? `${plain.slice(0, maxOutputText)}…` : plain }
}

function notebookText(value: unknown): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.filter((line) => typeof line === 'string').join('') : ''
}

/** Puts code into a fence that is longer than any fence in the code. */
function fenced(code: string, language: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${code}\n${fence}\n`
}

/** A table, as in the overview of a database (docs/providers/sqlite.md). */
export interface SchemaTable {
  readonly id: string
  readonly schema: string | undefined
  readonly name: string
  readonly comment: string | undefined
  readonly columns: number
  readonly keys: readonly string[]
  /** Names of the columns that refer to another table and are not in `keys`, the primary key. */
  readonly foreign: readonly string[]
}

export interface SchemaLink {
  readonly from: string
  readonly to: string
  readonly columns: readonly string[]
}

export interface DatabaseOverview {
  readonly schema: string | undefined
  readonly tables: readonly SchemaTable[]
  readonly links: readonly SchemaLink[]
}

/** Parses the overview of a database. Returns `undefined` for other documents. */
export function overviewOf(value: unknown): DatabaseOverview | undefined {
  if (!isObject(value) || !Array.isArray(value.tables) || !Array.isArray(value.relations)) return undefined
  const links = value.relations.flatMap((one: unknown): readonly SchemaLink[] => {
    if (!isObject(one) || !isObject(one.from) || !isObject(one.to)) return []
    const [from, to] = [one.from, one.to]
    if (typeof from.table !== 'string' || typeof to.table !== 'string') return []
    return [{ from: tableId(from), to: tableId(to), columns: stringItems(from.columns) }]
  })
  const tables = value.tables.flatMap((one: unknown): readonly SchemaTable[] => {
    if (!isObject(one) || typeof one.table !== 'string') return []
    const id = tableId(one)
    const keys = stringItems(one.primaryKey)
    const foreign = links.filter(({ from }) => from === id).flatMap(({ columns }) => columns)
    return [
      {
        id,
        schema: typeof one.schema === 'string' ? one.schema : undefined,
        name: one.table,
        comment: typeof one.comment === 'string' ? one.comment : undefined,
        columns: typeof one.columns === 'number' ? one.columns : 0,
        keys,
        foreign: [...new Set(foreign)].filter((name) => !keys.includes(name)),
      },
    ]
  })
  const ids = new Set(tables.map(({ id }) => id))
  return {
    schema: typeof value.schema === 'string' ? value.schema : undefined,
    tables,
    links: links.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  }
}

function tableId({ schema, table }: Readonly<Record<string, unknown>>): string {
  return typeof schema === 'string' ? `${schema}\n${String(table)}` : String(table)
}

/**
 * Returns the path segment for a name in a database. `~`, `/`, control characters and line separators are written as `~` and two
 * hexadecimal digits for each byte, and so are the names `.` and `..`. The empty name is `~`.
 */
function encodeDatabaseName(name: string): string {
  if (name === '') return '~'
  const isDots = name === '.' || name === '..'
  const bytes = (text: string) =>
    Array.from(new TextEncoder().encode(text), (byte) => `~${byte.toString(16).padStart(2, '0')}`).join('')
  return encodeSegment(isDots ? bytes(name) : name.replace(/[~/\p{Cc}\u2028\u2029]/gu, bytes))
}

/**
 * Returns the URI of the definition of a table, relative to an overview: below its folder, and below the schema unless that is `only`,
 * the schema of the whole overview.
 */
export function tableUri(
  overview: string,
  { schema, name }: Pick<SchemaTable, 'schema' | 'name'>,
  only: string | undefined,
): string {
  const base = overview.replace(/[?#].*$/s, '').replace(/[^/]*$/, '')
  const middle = schema === undefined || schema === only ? '' : `${encodeDatabaseName(schema)}/`
  return `${base}${middle}${encodeDatabaseName(name)}/schema`
}

/**
 * Returns the URI of the definition of a table, relative to the definition of another table: `…/orders/schema` or
 * `…/public/orders/schema`.
 */
export function siblingTableUri(
  own: { readonly uri: string; readonly schema: string | undefined },
  other: { readonly schema: string | undefined; readonly name: string },
): string {
  const base = own.uri.replace(/[?#].*$/s, '').replace(/[^/]*\/[^/]*$/, '')
  const folder = own.schema === undefined ? undefined : `${encodeDatabaseName(own.schema)}/`
  const isNamed = folder !== undefined && base.endsWith(`/${folder}`)
  if (other.schema === undefined || other.schema === own.schema || !isNamed)
    return `${base}${encodeDatabaseName(other.name)}/schema`
  return `${base.slice(0, -folder.length)}${encodeDatabaseName(other.schema)}/${encodeDatabaseName(other.name)}/schema`
}
