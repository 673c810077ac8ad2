/**
 * Prints nothing: a process that reads documents with libraries of others, for `documents.ts`. It gets the folder of their
 * `node_modules` as its argument, and a message for each document.
 */

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

export interface LibraryJob {
  readonly library: string
  readonly file: string
}

type Reader = (file: string) => string | Promise<string>

const run = promisify(execFile)
const require = createRequire(join(process.argv[2] ?? '.', 'x.js'))
// biome-ignore lint/suspicious/noExplicitAny: the libraries are not installed here, so their types are unknown.
const load = async (name: string): Promise<any> => import(pathToFileURL(require.resolve(name)).href)

const readers: Readonly<Record<string, Reader>> = {
  'pdfjs-dist': async (file) => {
    const { getDocument } = await load('pdfjs-dist/legacy/build/pdf.mjs')
    const opening = getDocument({ data: new Uint8Array(readFileSync(file)), verbosity: 0 })
    const document = await opening.promise
    let text = ''
    for (let number = 1; number <= document.numPages; number++) {
      const { items } = await (await document.getPage(number)).getTextContent()
      for (const { str = '', hasEOL = false } of items) text += hasEOL ? `${str}\n` : str
      text += '\n'
    }
    await opening.destroy()
    return text
  },
  mammoth: async (path) => (await (await load('mammoth')).default.extractRawText({ path })).value,
  officeparser: async (path) =>
    (await (await load('officeparser')).parseOffice(path, { ignoreSlideMasters: true })).toText(),
  xlsx: async (path) => {
    const { default: library } = await load('xlsx')
    const { SheetNames, Sheets, Workbook } = library.readFile(path, { cellNF: true })
    const date1904 = Workbook?.WBProps?.date1904 === true
    for (const sheet of Object.values<Record<string, Cell>>(Sheets))
      for (const cell of Object.values(sheet)) if (cell.t === 'n') cell.w = shownIn(cell, library.SSF, date1904)
    return SheetNames.map((name: string) => `${name}\n${library.utils.sheet_to_csv(Sheets[name])}`).join('\n')
  },
  '@kenjiuno/msgreader': async (path) => {
    const { default: library } = await load('@kenjiuno/msgreader')
    const Reader = library.default ?? library
    const { subject = '', body = '' } = new Reader(readFileSync(path)).getFileData()
    return `${subject}\n${body}`
  },
  // The page of the message that msgconvert (Debian: libemail-outlook-message-perl) makes, or else its text.
  msgconvert: async (file) => {
    const { stdout } = await run('msgconvert', ['--outfile', '-', file], { encoding: 'latin1', maxBuffer: 2 ** 26 })
    const { default: PostalMime } = await load('postal-mime')
    // The name of the code page in the encodings of the web.
    const source = Buffer.from(stdout.replaceAll(/charset="?CP950/gi, 'charset=big5'), 'latin1')
    const { html, text = '' } = await PostalMime.parse(source)
    return html === undefined ? text : textOfPage(html)
  },
  'word-extractor': async (path) => {
    const Extractor = (await load('word-extractor')).default
    const document = await new Extractor().extract(path)
    return [document.getBody(), document.getFootnotes(), document.getEndnotes()].join('\n')
  },
  unrtf: async (path) => {
    const { stdout } = await run('unrtf', ['--nopict', path], { maxBuffer: 2 ** 26 })
    return textOfPage(stdout).replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
  },
  'postal-mime': async (path) => {
    const { subject = '', text = '' } = await (await load('postal-mime')).default.parse(readFileSync(path))
    return `${subject}\n${text}`
  },
}

function textOfPage(html: string): string {
  return html.replaceAll(/<(style|script|title)\b[\s\S]*?<\/\1>|<!--[\s\S]*?-->|<[^>]*>|&nbsp;/gi, ' ')
}

/** A cell of SheetJS: its type, its value, its number format, and the value in that format. */
interface Cell {
  readonly t?: string
  readonly v?: unknown
  readonly z?: string
  w?: string
}

/** Functions of SheetJS for number formats. */
interface Formats {
  is_date: (format: string) => boolean
  parse_date_code: (
    days: number,
    options: { readonly date1904: boolean },
  ) => Record<'y' | 'm' | 'd' | 'H' | 'M' | 'S', number>
}

/** The value in the form that readings have: dates in ISO 8601, and all digits of numbers without a format or with an exponent. */
function shownIn({ v, z = 'General', w = '' }: Cell, formats: Formats, date1904: boolean): string {
  if (typeof v !== 'number') return w
  if (/general|E[+-]/i.test(z)) return String(Number(v.toPrecision(15)))
  if (/\[[hms]+\]/i.test(z) || !formats.is_date(z) || v < 0) return w
  const { y, m, d, H, M, S } = formats.parse_date_code(Math.round(v * 86_400) / 86_400, { date1904 })
  const two = (part: number) => String(part).padStart(2, '0')
  const time = [H, M, ...(S === 0 ? [] : [S])].map(two).join(':')
  const date = `${y}-${two(m)}-${two(d)}`
  if (v < 1) return time
  return H + M + S === 0 ? date : `${date} ${time}`
}

process.on('message', async ({ library, file }: LibraryJob) => {
  try {
    process.send?.({ text: await readers[library]?.(file) })
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND'
    process.send?.({ text: undefined, isMissing })
  }
})
