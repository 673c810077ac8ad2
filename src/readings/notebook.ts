import { isObject } from '../core/kit/object.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { createDocumentWriter } from './writer.ts'

/** Reads a Jupyter notebook of format 4: its cells, and their outputs as text. Pictures and HTML are left out. */
export function readNotebook(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  const cells = cellsIn(bytes)
  const writer = createDocumentWriter(form, limits.characters)
  for (const cell of cells) {
    if (!isObject(cell)) continue
    const source = multilineText(cell.source)
    if (cell.cell_type === 'markdown') writer.document(source)
    else writer.block(source)
    const outputs: readonly unknown[] = Array.isArray(cell.outputs) ? cell.outputs : []
    for (const output of outputs) writer.block(outputText(output))
  }
  return { text: writer.finish() }
}

function cellsIn(bytes: Uint8Array): readonly unknown[] {
  try {
    const notebook: unknown = JSON.parse(new TextDecoder().decode(bytes))
    if (isObject(notebook) && Array.isArray(notebook.cells)) return notebook.cells
  } catch {
    // The bytes are not JSON: throw the error below.
  }
  throw unreadableError('The document is damaged: it is not a notebook of format 4.')
}

function outputText(output: unknown): string {
  if (!isObject(output)) return ''
  const data = isObject(output.data) ? output.data : {}
  const text =
    output.output_type === 'error'
      ? `${multilineText(output.ename)}: ${multilineText(output.evalue)}`
      : multilineText(output.output_type === 'stream' ? output.text : data['text/plain'])
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour sequence of a terminal begins with ESC.
  return text.replace(/\u001b\[[0-9;]*m/g, '')
}

/** Returns a text that is one string or an array of lines. */
function multilineText(value: unknown): string {
  const lines: readonly unknown[] = Array.isArray(value) ? value : [value]
  return lines.filter((line) => typeof line === 'string').join('')
}
