import { isObject } from '../../../../core/kit/object.ts'
import { encodePath, encodeSegment } from '../../../../core/uri.ts'

/** An analysis in a list of a results mount (`recent`, `by-tag/…`). */
export interface ListedAnalysis {
  readonly uri: string
  readonly report: string
  readonly title: string
  readonly taskType: string | undefined
  readonly confidence: number | undefined
  readonly thresholdsMet: boolean | undefined
  readonly cost: number | undefined
  /** Names of the models' providers. */
  readonly providers: readonly string[]
  readonly created: number | undefined
  readonly expires: number | undefined
  readonly tags: readonly { readonly name: string; readonly uri: string }[]
}

/** The analyses in a list at a URI, newest first. Undefined when it is another document. */
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
      title: textIn(result.title) ?? String(result.id ?? result.path),
      taskType: textIn(result.taskType),
      confidence: numberOf(result.confidence),
      thresholdsMet: typeof result.thresholdsMet === 'boolean' ? result.thresholdsMet : undefined,
      cost: numberOf(result.totalCost),
      providers: textsIn(result.providers),
      created: timeOf(result.created),
      expires: timeOf(result.expires),
      tags: textsIn(result.tags).map((name) => ({ name, uri: tagUri(mount, name) })),
    })
  }
  return listed
}

/** A tag as a segment of a path (docs/providers/results.md): `~` is `~0`, `/` is `~1`, the dot of `.` and `..` is `~2`. */
function tagUri(mount: string, tag: string): string {
  const name = tag
    .replaceAll('~', '~0')
    .replaceAll('/', '~1')
    .replace(/^\.(?=\.?$)/, '~2')
  return `${mount}by-tag/${encodeSegment(name)}`
}

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
const textIn = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined)

/** A time in milliseconds since 1970, from its text (ISO 8601). */
export function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

/** Maximum number of cells and outputs that a preview draws. */
export const maxCells = 500
const maxOutputs = 50
/** Maximum length of an output, and of an image in base64, in characters. */
const maxOutputText = 50_000
const maxImageText = 10_000_000

export type Output =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly base64: string }

interface Cell {
  /** Markdown to lay out: the text of the cell, or its code in a fence. */
  readonly markdown: string
  /** The execution count of a code cell. */
  readonly count?: number
  readonly outputs: readonly Output[]
}

export interface Notebook {
  readonly cells: readonly Cell[]
  /** Whether something was left out. */
  readonly isCut: boolean
}

/** Parses a Jupyter notebook of format 4. Returns `undefined` if the value is not such a notebook. */
export function notebookOf(value: unknown): Notebook | undefined {
  if (!isObject(value) || !Array.isArray(value.cells) || typeof value.nbformat !== 'number') return undefined
  const metadata = isObject(value.metadata) ? value.metadata : {}
  const info = isObject(metadata.language_info) ? metadata.language_info : {}
  const language = typeof info.name === 'string' && /^[\w+#-]{1,40}$/.test(info.name) ? info.name : 'python'
  let isCut = value.cells.length > maxCells
  const cells = value.cells.slice(0, maxCells).flatMap((cell: unknown): Cell[] => {
    if (!isObject(cell)) return []
    const source = textOf(cell.source)
    if (cell.cell_type === 'markdown') return [{ markdown: source, outputs: [] }]
    if (cell.cell_type !== 'code') return [{ markdown: fenced(source, ''), outputs: [] }]
    const all: readonly unknown[] = Array.isArray(cell.outputs) ? cell.outputs : []
    const outputs = all.slice(0, maxOutputs).flatMap((output) => outputOf(output) ?? [])
    if (outputs.length < all.length) isCut = true
    const count = typeof cell.execution_count === 'number' ? { count: cell.execution_count } : {}
    return [{ markdown: fenced(source, language), outputs, ...count }]
  })
  return { cells, isCut }
}

/** Returns the output of a code cell. HTML and scripts are not shown: notebooks have plain text beside them. */
function outputOf(output: unknown): Output | undefined {
  if (!isObject(output)) return undefined
  if (output.output_type === 'stream') return textOutput(textOf(output.text))
  if (output.output_type === 'error') return textOutput(`${textOf(output.ename)}: ${textOf(output.evalue)}`)
  const data = isObject(output.data) ? output.data : {}
  for (const type of ['image/png', 'image/jpeg', 'image/gif']) {
    const base64 = textOf(data[type]).replace(/\s+/g, '')
    if (base64 !== '' && base64.length <= maxImageText) return { kind: 'image', base64 }
  }
  const text = textOf(data['text/plain'])
  return text === '' ? undefined : textOutput(text)
}

function textOutput(text: string): Output {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are told colours by them.
  const plain = text.replace(/\u001b\[[0-9;]*m/g, '')
  return { kind: 'text', text: plain.length > maxOutputText ? `${plain.slice(0, maxOutputText)}…` : plain }
}

/** Notebooks keep a text as one string or as its lines. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.filter((line) => typeof line === 'string').join('') : ''
}

/** Puts code into a fence that is longer than any fence in the code. */
function fenced(code: string, language: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${code}\n${fence}\n`
}
