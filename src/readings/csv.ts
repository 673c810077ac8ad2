import { type SheetText, tooMuch } from './job.ts'
import type { Writer } from './writer.ts'

/** Writer of the sheets of a workbook, each as CSV. */
export type SheetWriter = Pick<Writer, 'plain' | 'heading' | 'row' | 'end'> & {
  readonly sheets: readonly SheetText[]
}

/** @param limit In characters. Beyond it every method throws ResourceError `too-large`. */
export function createSheetWriter(limit: number): SheetWriter {
  const sheets: { readonly name: string; text: string }[] = []
  let length = 0
  const add = (text: string) => {
    length += text.length
    if (length > limit) throw tooMuch(`The document has more than ${limit} characters of text.`)
    const sheet = sheets.at(-1)
    if (sheet !== undefined) sheet.text += text
  }
  return {
    sheets,
    plain: (text) => text,
    heading: (_, name) => {
      length += name.length
      sheets.push({ name, text: '' })
    },
    row: (cells) => add(`${cells.map(fieldOf).join(',')}\n`),
    // Between two tables of a sheet is an empty line.
    end: () => {
      if (sheets.at(-1)?.text !== '') add('\n')
    },
  }
}

function fieldOf(value: string): string {
  return /[",\r\n]|^\s|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
}
