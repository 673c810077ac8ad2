import { defined } from '../core/kit/object.ts'
import { oneLine, shorten } from './excerpt.ts'
import { createFence } from './front-matter.ts'

const most = { lines: 80, line: 160, heading: 120, json: 262_144, depth: 2 }
const longestStart = 500

/** Modifiers and keywords of declarations in most languages, as parts of a regular expression. */
const modifiers =
  'export|default|declare|public|private|protected|internal|static|abstract|final|async|unsafe|open|override|sealed|inline|' +
  'pub(?:\\([a-z]+\\))?|virtual|extern'
const declarators =
  'function|class|interface|type|enum|struct|trait|impl|fn|func|def|defp|defmodule|mod|module|namespace|object|record|protocol|' +
  'extension|message|service|create (?:or replace )?(?:table|view|function)|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION)'

/** The beginnings of lines that declare something in most languages. Some other lines match, too. */
const declaration = new RegExp(
  `^\\s{0,4}(?:(?:${modifiers})\\s+){0,6}(?:${declarators})\\b[ *]*[(\\w$"\`<]|^export (?:const|let|default|[*{])|` +
    '^(?:const|let|var) [\\w$]+ *(?::[^=]{0,100})?= *(?:async *)?(?:\\(|function|[\\w$]+ *=>)',
)

/** Japanese headings without markup. */
const japaneseHeading = /^(?:第[0-9０-９一二三四五六七八九十百]{1,5}[章節条編部]|[■◆●▼]\s*\S)/

/** The beginnings of tests, which are calls such as `test('name', …)` and no declarations. */
const tests = /^\s{0,8}(?:test|it|describe|suite|bench)(?:\.\w+)*\(/

/** Returns for each line whether a heading, a declaration or a test begins there. */
export function sectionStartsIn(
  lines: readonly string[],
  path: string,
  mimeType: string | undefined,
): readonly boolean[] {
  const hasTests = !isProse(path, mimeType)
  const isStart = createStartTest(path, mimeType)
  return lines.map((line) => isStart(line) || (hasTests && line.length < longestStart && tests.test(line)))
}

function createStartTest(path: string, mimeType: string | undefined): (line: string) => boolean {
  if (!isProse(path, mimeType)) return (line) => isDeclaration(line) || japaneseHeading.test(line)
  const isFenced = createFence()
  return (line) => !isFenced(line) && (/^(?:#{1,6}|={1,5}) +\S/.test(line) || japaneseHeading.test(line))
}

function isDeclaration(line: string): boolean {
  return line.length < longestStart && declaration.test(line)
}

export interface OutlineEntry {
  /** Line number, from 1. */
  readonly line: number
  readonly text: string
}

/**
 * Returns at most `count` headings or declarations of a text. If there are more, they are evenly spread over the headings of the two
 * highest levels or, without such headings, over all entries.
 */
export function outlineEntries(
  lines: readonly string[],
  path: string,
  mimeType: string | undefined,
  count: number,
): readonly OutlineEntry[] {
  return chooseEntries(numbered(lines, createStartTest(path, mimeType)), count)
}

function chooseEntries(all: readonly OutlineEntry[], count: number): readonly OutlineEntry[] {
  if (all.length <= count) return all
  const highest = all.filter(({ text }) => /^[#=]{1,2} /.test(text))
  const some = highest.length > 0 ? highest : all
  const step = Math.max(1, some.length / count)
  return some.filter((_, index) => index === 0 || Math.floor(index / step) !== Math.floor((index - 1) / step))
}

function numbered(lines: readonly string[], isShown: (line: string) => boolean): readonly OutlineEntry[] {
  // The lines are cut first, because one may be as long as the text.
  const shownOf = (line: string) => shorten(line.slice(0, 4 * most.line).trimEnd(), most.line)
  return lines.flatMap((line, index) => (isShown(line) ? [{ line: index + 1, text: shownOf(line) }] : []))
}

/**
 * Returns the outline of a text: the headings of prose, the signatures of code, the columns and number of rows of a table, the keys of
 * JSON; of other texts the first lines.
 */
export function outlineOf(text: string, path: string, mimeType: string | undefined): string {
  const lines = text.split('\n')
  const summary = `${lines.length} lines, ${Buffer.byteLength(text)} bytes`
  const { shown, count } = outlineBody(lines, text, path, mimeType)
  return [summary, ...shown, ...(count > shown.length ? [`… ${count - shown.length} more`] : [])].join('\n')
}

interface OutlineBody {
  readonly shown: readonly string[]
  /** Number of lines of the outline, with those that are not shown. */
  readonly count: number
}

function outlineBody(lines: readonly string[], text: string, path: string, mimeType = ''): OutlineBody {
  const firstOf = (all: readonly string[]) => ({ shown: all.slice(0, most.lines), count: all.length })
  if (/\.(?:csv|tsv)$/i.test(path) || /^text\/(?:csv|tab-separated-values)/.test(mimeType))
    return firstOf(summarizeTable(lines))
  if (/\.json$/i.test(path) || /^application\/(?:.+\+)?json/.test(mimeType)) {
    const keys = keysIn(text)
    if (keys !== undefined) return firstOf(keys)
  }
  const starts = numbered(lines, createStartTest(path, mimeType))
  const all = starts.length > 0 ? starts : numbered(lines, (line) => line.trim() !== '').slice(0, 5)
  const entries = chooseEntries(all, most.lines)
  return {
    shown: entries.map(({ line, text: start }) => `${line}: ${start.replace(/\s*[{(=:]+$/, '')}`),
    count: all.length,
  }
}

function summarizeTable(lines: readonly string[]): readonly string[] {
  const full = lines.filter((line) => line.trim() !== '')
  return [
    `columns: ${shorten(full[0] ?? '', most.line)}`,
    `rows: ${Math.max(0, full.length - 1)}`,
    ...full.slice(1, 3).map((row, index) => `${index + 2}: ${shorten(row.trimEnd(), most.line)}`),
  ]
}

/** Returns the keys of the outer levels, with the kinds of their values. `undefined`: the text is not JSON, or is too long to be parsed. */
function keysIn(text: string): readonly string[] | undefined {
  if (text.length > most.json) return undefined
  try {
    return [...described('', JSON.parse(text), 0)]
  } catch {
    return undefined
  }
}

function* described(path: string, value: unknown, depth: number): Generator<string> {
  const name = path === '' ? 'value' : path
  if (Array.isArray(value)) {
    yield shorten(`${name}: array of ${value.length}`, most.line)
    if (depth < most.depth && value.length > 0) yield* described(`${path}[0]`, value[0], depth + 1)
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    yield shorten(`${name}: object of ${entries.length}`, most.line)
    if (depth < most.depth)
      for (const [key, inner] of entries) yield* described(path === '' ? key : `${path}.${key}`, inner, depth + 1)
  } else yield shorten(`${name}: ${value === null ? 'null' : typeof value}`, most.line)
}

const proseNames = /\.(?:md|mdx|markdown|adoc|rst|org)$/i

function isProse(path: string, mimeType: string | undefined): boolean {
  return mimeType === 'text/markdown' || proseNames.test(path)
}

/** A part of a text that a search finds by itself. */
export interface Passage {
  readonly text: string
  /** Lines of the whole text, from 1, both inclusive. */
  readonly start: number
  readonly end: number
  readonly heading?: string
}

/**
 * Sizes of passages in UTF-16 units. A passage ends at the first empty line after `enough` units, and after `most` units in any case. A
 * heading or a declaration also ends a passage; outside Markdown not one shorter than `few`.
 */
const usualSizes = { few: 200, enough: 800, most: 1600 }

/** About the maximum number of passages of a text: a longer text gets longer passages. A Markdown text may have twice as many. */
const manyPassages = 8000

export function* passagesOf(text: string, kind: Kind): Generator<Passage> {
  const outline = headingsOf(kind)
  const sizes = sizesFor(text.length)
  let lines: string[] = []
  let start = 1
  let size = 0
  let number = 0
  let heading: string | undefined
  let next: string | undefined
  let count = 0

  const finish = function* (end: number): Generator<Passage> {
    const joined = lines.join('\n')
    if (joined.trim() !== '') {
      for (const piece of splitLongLine(joined, sizes)) {
        count++
        const first = start + lineBreaks(joined.slice(0, piece.from))
        yield { text: piece.text, start: first, end: first + lineBreaks(piece.text), ...defined({ heading }) }
      }
    }
    lines = []
    size = 0
    start = end + 1
    heading = next
  }

  for (const line of iterateLines(text)) {
    const signature = outline(line)
    const isEmpty = line.trim() === ''
    const isFull = size + line.length > sizes.most && size > 0
    const least = kind === 'markdown' && count < manyPassages ? 1 : sizes.few
    const isGap = (isEmpty && size >= sizes.enough) || (signature !== undefined && size >= least)
    if (signature !== undefined) next = signature
    if (isFull || isGap) yield* finish(number)
    else if (signature !== undefined && lines.every((each) => each.trim() === '')) heading = signature
    number++
    lines.push(line)
    size += line.length + (isEmpty ? 0 : 1)
  }
  yield* finish(number)
}

function sizesFor(length: number): typeof usualSizes {
  const few = Math.max(usualSizes.few, Math.ceil(length / manyPassages))
  const enough = Math.max(usualSizes.enough, few)
  return { few, enough, most: Math.max(usualSizes.most, 2 * few) }
}

function* iterateLines(text: string): Generator<string> {
  for (let from = 0; from <= text.length; ) {
    const end = text.indexOf('\n', from)
    const line = text.slice(from, end === -1 ? text.length : end)
    yield line.endsWith('\r') ? line.slice(0, -1) : line
    if (end === -1) return
    from = end + 1
  }
}

function lineBreaks(text: string): number {
  return text.split('\n').length - 1
}

/** Cuts a line that is longer than a passage: after a sentence, else between words, else between characters. */
function* splitLongLine(
  text: string,
  sizes: typeof usualSizes,
): Generator<{ readonly text: string; readonly from: number }> {
  for (let from = 0; from < text.length; ) {
    if (text[from] === '\n') {
      from++
      continue
    }
    const end = text.length - from <= sizes.most ? text.length : endOfPiece(text, from, sizes)
    const piece = text.slice(from, end)
    if (piece.trim() !== '') yield { text: piece.trimEnd(), from }
    from = end
  }
}

function endOfPiece(text: string, from: number, sizes: typeof usualSizes): number {
  const window = text.slice(from, from + sizes.most)
  const least = sizes.enough
  const sentence = Math.max(...['。', '．', '！', '？', '. ', '! ', '? ', '\n'].map((mark) => window.lastIndexOf(mark)))
  if (sentence >= least) return from + sentence + 1
  const gap = Math.max(...[' ', '\t', ',', '、', ';', '>'].map((mark) => window.lastIndexOf(mark)))
  if (gap >= least) return from + gap + 1
  const end = from + sizes.most
  // Not within a surrogate pair.
  return /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end
}

type Kind = 'markdown' | 'code' | 'table' | 'plain'

/** Takes the lines one after the other, and returns the heading if something with a name begins at the line. */
type Outline = (line: string) => string | undefined

const tableEndings = /\.(?:csv|tsv|jsonl|ndjson|log)$/i
const codeEndings =
  /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|kts|scala|swift|c|h|cc|cpp|cxx|hpp|cs|php|pl|lua|r|jl|ex|exs|erl|hs|ml|clj|dart|sh|bash|zsh|ps1|sql|proto|vue|svelte|zig|nim)$/i
const codeTypes =
  /^(?:text\/(?:x-|javascript|typescript|ecmascript)|application\/(?:javascript|typescript|x-(?:sh|python|ruby|perl|php|httpd-php)|sql))/

/** Returns the kind of a text by its MIME type or the extension of its path. */
export function textKind(mimeType: string | undefined, path: string): Kind {
  if (isProse(path, mimeType)) return 'markdown'
  if (mimeType === 'text/csv' || mimeType === 'text/tab-separated-values' || tableEndings.test(path)) return 'table'
  return codeEndings.test(path) || codeTypes.test(mimeType ?? '') ? 'code' : 'plain'
}

function headingsOf(kind: Kind): Outline {
  if (kind === 'markdown') return markdownOutline()
  if (kind === 'table') return tableOutline()
  return kind === 'code' ? codeOutline : () => undefined
}

/** A heading below others contains them: `Install > On Linux`. Lines in a fenced block are not headings. */
function markdownOutline(): Outline {
  const stack: string[] = []
  const isFenced = createFence()
  return (line) => {
    const depth = isFenced(line) ? 0 : (/^ {0,3}(#{1,6})[ \t]/.exec(line)?.[1]?.length ?? 0)
    if (depth === 0) return undefined
    stack.length = Math.min(stack.length, depth - 1)
    stack.push(headingOf(line).slice(depth).replace(/#+$/, '').trim())
    return headingOf(stack.join(' > '))
  }
}

/** A passage of a table has the column names in its first line as its heading. Lines of JSON have none. */
function tableOutline(): Outline {
  let isFirst = true
  return (line) => {
    const heading = isFirst && line.trim() !== '' && !/^[[{]/.test(line) ? headingOf(line) : undefined
    isFirst = false
    return heading
  }
}

/** The heading of a declaration: its line without a bracket, colon or equals sign at the end. */
function codeOutline(line: string): string | undefined {
  return isDeclaration(line) ? headingOf(line.replace(/[{:=(]?\s*$/, '')) : undefined
}

function headingOf(line: string): string {
  return oneLine(line.slice(0, 4 * most.heading), most.heading)
}
