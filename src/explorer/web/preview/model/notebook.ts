import { isObject } from '../../../../core/kit/object.ts'

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
