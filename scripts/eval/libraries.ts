/**
 * Prints nothing: a process that reads documents with libraries of others, for `documents.ts`. It gets the folder of their
 * `node_modules` as its argument, and a message for each document.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export interface LibraryJob {
  readonly library: string
  readonly file: string
}

type Reader = (file: string) => string | Promise<string>

const require = createRequire(join(process.argv[2] ?? '.', 'x.js'))
// biome-ignore lint/suspicious/noExplicitAny: the libraries are not installed here, so their types are unknown.
const load = async (name: string): Promise<any> => import(pathToFileURL(require.resolve(name)).href)

const readers: Readonly<Record<string, Reader>> = {
  mammoth: async (path) => (await (await load('mammoth')).default.extractRawText({ path })).value,
  officeparser: async (path) =>
    (await (await load('officeparser')).parseOffice(path, { ignoreSlideMasters: true })).toText(),
  xlsx: async (path) => {
    const { default: library } = await load('xlsx')
    const { SheetNames, Sheets, Workbook } = library.readFile(path, { cellDates: true, cellNF: true })
    // Cells are compared in the form that readings have: dates in ISO 8601, numbers without a pattern with all digits.
    for (const sheet of Object.values<Record<string, Cell>>(Sheets))
      for (const cell of Object.values(sheet))
        if (cell.v instanceof Date) cell.w = isoOf(cell.v, Workbook?.WBProps?.date1904 === true)
        else if (typeof cell.v === 'number' && /^$|general|e[+-]/i.test(cell.z ?? ''))
          cell.w = String(Number(cell.v.toPrecision(15)))
    return SheetNames.map((name: string) => `${name}\n${library.utils.sheet_to_csv(Sheets[name])}`).join('\n')
  },
  '@kenjiuno/msgreader': async (path) => {
    const { default: library } = await load('@kenjiuno/msgreader')
    const Reader = library.default ?? library
    const { subject = '', body = '' } = new Reader(readFileSync(path)).getFileData()
    return `${subject}\n${body}`
  },
  'word-extractor': async (path) => {
    const Extractor = (await load('word-extractor')).default
    const document = await new Extractor().extract(path)
    return [document.getBody(), document.getFootnotes(), document.getEndnotes()].join('\n')
  },
  'postal-mime': async (path) => {
    const { subject = '', text = '' } = await (await load('postal-mime')).default.parse(readFileSync(path))
    return `${subject}\n${text}`
  },
}

/** A cell of SheetJS: its value, its pattern, and what is shown. */
interface Cell {
  readonly v?: unknown
  readonly z?: string
  w?: string
}

const [secondMs, dayMs] = [1000, 86_400_000]

/** A date as readings have it: rounded to a second, a day or a time only if there is one. SheetJS counts days from 1900 always. */
function isoOf(date: Date, since1904: boolean): string {
  const ms = Math.round(date.getTime() / secondMs) * secondMs
  if (Number.isNaN(ms)) return ''
  const isTime = ms < Date.UTC(1900, 0, 1)
  const [day = '', time = ''] = new Date(ms + (since1904 && !isTime ? 1462 * dayMs : 0)).toISOString().split('T')
  const shown = time.replace(/(?::00)?\.000Z$/, '')
  return isTime ? shown : shown === '00:00' ? day : `${day} ${shown}`
}

process.on('message', async ({ library, file }: LibraryJob) => {
  try {
    process.send?.({ text: await readers[library]?.(file) })
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND'
    process.send?.({ text: undefined, isMissing })
  }
})
