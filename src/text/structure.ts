import { widthAt } from './analyser.ts'

/** Keywords of declarations in most languages, as a part of a regular expression. */
const declarators =
  'function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|object|record|protocol|extension|message|' +
  'service|create (?:or replace )?(?:table|view|function)|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION)'

/** Modifiers of declarations in most languages, as a part of a regular expression. */
const modifiers =
  'export|default|declare|public|private|protected|internal|static|abstract|final|async|unsafe|open|override|sealed|inline'

const most = { lines: 80, line: 160, heading: 120, json: 262_144, depth: 2 }

const declarations = new RegExp(`^\\s{0,4}(?:(?:${modifiers}|pub)\\s+){0,6}(?:${declarators})\\b.{0,400}$`)
const values = /^export (?:const|let|default|\{|\*).{0,400}$/

/** Tests have no declarations: each is a call with its name. */
const tests = /^\s{0,8}(?:test|it|describe|suite|bench)(?:\.\w+)*\(/

/** Returns for each line whether a heading, a declaration or a test begins there. */
export function sectionStartsIn(
  lines: readonly string[],
  path: string,
  mimeType: string | undefined,
): readonly boolean[] {
  const hasTests = !isProse(path, mimeType)
  const isStart = createStartTest(path, mimeType)
  return lines.map((line) => isStart(line) || (hasTests && line.length < 500 && tests.test(line)))
}

/** Returns a function that takes the lines one after the other, and returns whether a heading or a declaration begins there. */
function createStartTest(path: string, mimeType: string | undefined): (line: string) => boolean {
  if (!isProse(path, mimeType)) return (line) => line.length < 500 && (declarations.test(line) || values.test(line))
  const isFenced = createFence()
  return (line) => !isFenced(line) && /^(?:#{1,6}|={1,5}) +\S/.test(line)
}

/**
 * Returns the outline of a text: the headings of prose, the signatures of code, the columns and number of rows of a table, the
 * keys of JSON; of other texts the beginning. Each line has its number, so that the lines around it can be requested.
 */
export function outlineOf(text: string, path: string, mimeType: string | undefined): string {
  const lines = text.split('\n')
  const summary = `${lines.length} lines, ${Buffer.byteLength(text)} bytes`
  const body = outlineBody(lines, text, path, mimeType)
  const shown = body.slice(0, most.lines)
  return [summary, ...shown, ...(body.length > shown.length ? [`… ${body.length - shown.length} more`] : [])].join('\n')
}

function outlineBody(lines: readonly string[], text: string, path: string, mimeType = ''): readonly string[] {
  if (/\.(?:csv|tsv)$/i.test(path) || /^text\/(?:csv|tab-separated-values)/.test(mimeType)) return summarizeTable(lines)
  if (/\.json$/i.test(path) || /^application\/(?:.+\+)?json/.test(mimeType)) {
    const keys = keysIn(text)
    if (keys !== undefined) return keys
  }
  const starts = numbered(lines, createStartTest(path, mimeType))
  const found = isProse(path, mimeType) ? starts : starts.map((line) => line.replace(/\s*[{(=:]+\s*$/, ''))
  return found.length > 0 ? found : numbered(lines, (line) => line.trim() !== '').slice(0, 5)
}

function numbered(lines: readonly string[], isShown: (line: string) => boolean): readonly string[] {
  return lines.flatMap((line, index) => (isShown(line) ? [`${index + 1}: ${shortLine(line.trimEnd())}`] : []))
}

function summarizeTable(lines: readonly string[]): readonly string[] {
  const full = lines.filter((line) => line.trim() !== '')
  return [
    `columns: ${shortLine(full[0] ?? '')}`,
    `rows: ${Math.max(0, full.length - 1)}`,
    ...numbered(full.slice(0, 3), () => true).slice(1),
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
    yield shortLine(`${name}: array of ${value.length}`)
    if (depth < most.depth && value.length > 0) yield* described(`${path}[0]`, value[0], depth + 1)
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    yield shortLine(`${name}: object of ${entries.length}`)
    if (depth < most.depth)
      for (const [key, inner] of entries) yield* described(path === '' ? key : `${path}.${key}`, inner, depth + 1)
  } else yield shortLine(`${name}: ${value === null ? 'null' : typeof value}`)
}

function shortLine(line: string, units = most.line): string {
  return line.length <= units ? line : `${line.slice(0, units - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Files of prose, whose parts begin with headings. */
const proseNames = /\.(?:md|mdx|markdown|adoc|rst|org)$/i

function isProse(path: string, mimeType: string | undefined): boolean {
  return mimeType === 'text/markdown' || proseNames.test(path)
}

/** Returns a function that reads Markdown line by line, and returns whether the line is inside a code fence. The closing line is not. */
function createFence(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) {
      if (fence === undefined) fence = mark
      else if (mark.startsWith(fence)) fence = undefined
    }
    return fence !== undefined
  }
}

/** A part of a text that is found by itself. */
export interface Passage {
  readonly text: string
  /** Lines of the whole text, from 1, both inclusive. */
  readonly start: number
  readonly end: number
  readonly heading?: string
}

/**
 * Sizes of passages in UTF-16 units. A passage ends at the first border after `enough` units, and after `most` units in any case. A passage
 * shorter than `few` is merged with another.
 */
const usualSizes = { few: 200, enough: 800, most: 1600 }

/**
 * Number of passages of a text above which its passages become longer. All of them are written at once, which would otherwise take many
 * seconds. Headings that always begin a passage may lead to twice as many.
 */
const manyPassages = 8000

/**
 * Cuts a text at its natural borders: headings, declarations, empty lines. Each character is in exactly one passage, except
 * line breaks and the white space around a passage. Linear in its length.
 */
export function* passagesOf(text: string, kind: Kind): Generator<Passage> {
  const outline = headingsOf(kind)
  const sizes = sizesFor(text.length)
  let lines: string[] = []
  let start = 1
  let size = 0
  let number = 0
  let heading: Heading | undefined
  let next: Heading | undefined
  let made = 0

  const finish = function* (end: number): Generator<Passage> {
    const joined = lines.join('\n')
    if (joined.trim() !== '') {
      const named = heading === undefined ? {} : { heading: heading.text }
      for (const piece of splitLongLine(joined, sizes)) {
        made++
        const first = start + lineBreaks(joined, 0, piece.from)
        yield { text: piece.text, start: first, end: first + lineBreaks(piece.text, 0, piece.text.length), ...named }
      }
    }
    lines = []
    size = 0
    start = end + 1
    heading = next
  }

  for (const line of iterateLines(text)) {
    const found = outline(line)
    const isEmpty = line.trim() === ''
    const isFull = size + line.length > sizes.most && size > 0
    const isGap =
      (isEmpty && size >= sizes.enough) ||
      (found !== undefined && size >= (found.always && made < manyPassages ? 1 : sizes.few))
    if (found !== undefined) next = found
    if (isFull || isGap) yield* finish(number)
    else if (found !== undefined && lines.every((each) => each.trim() === '')) heading = found
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

function lineBreaks(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at !== -1 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
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
  return widthAt(text, end - 1) === 2 ? end - 1 : end
}

/** How a text is split. */
type Kind = 'markdown' | 'code' | 'table' | 'plain'

interface Heading {
  readonly text: string
  /** Whether a passage begins here even if the passage before is short. */
  readonly always: boolean
}

/** Takes the lines one after the other, and returns the heading if something with a name begins at the line. */
type Outline = (line: string) => Heading | undefined

const tableEndings = /\.(?:csv|tsv|jsonl|ndjson|log)$/i
const codeEndings =
  /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|kts|scala|swift|c|h|cc|cpp|cxx|hpp|cs|php|pl|lua|r|jl|ex|exs|erl|hs|ml|clj|dart|sh|bash|zsh|ps1|sql|proto|vue|svelte|zig|nim)$/i
const codeTypes =
  /^(?:text\/(?:x-|javascript|typescript|ecmascript)|application\/(?:javascript|typescript|x-(?:sh|python|ruby|perl|php|httpd-php)|sql))/

/** Returns the kind of a text by its MIME type, or else by the extension of its path. */
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

/** Headings under headings: `Install > On Linux`. Lines in a fenced block are not headings. */
function markdownOutline(): Outline {
  const stack: string[] = []
  const isFenced = createFence()
  return (line) => {
    const depth = isFenced(line) ? 0 : (/^ {0,3}(#{1,6})[ \t]/.exec(line)?.[1]?.length ?? 0)
    if (depth === 0) return undefined
    stack.length = Math.min(stack.length, depth - 1)
    stack.push(shortenHeading(line.trim().slice(depth).replace(/#+$/, '')))
    return { text: shortenHeading(stack.join(' > ')), always: true }
  }
}

/** Each passage of a table gets the column names as its heading. */
function tableOutline(): Outline {
  let isFirst = true
  return (line) => {
    const found =
      isFirst && line.trim() !== '' && !/^[[{]/.test(line) ? { text: shortenHeading(line), always: false } : undefined
    isFirst = false
    return found
  }
}

const declaration = new RegExp(
  `^ {0,4}(?:(?:${modifiers}|pub(?:\\([a-z]+\\))?|virtual|extern) ){0,6}(?:${declarators}|function\\*|defp|defmodule|mod) *[(\\w$"\`<*]`,
)
const named = /^(?:export )?(?:const|let|var) [\w$]+ *(?::[^=]{0,100})?= *(?:async *)?(?:\(|function|[\w$]+ *=>)/

/** A declaration, recognised by the beginning of its line: that is right often enough in most languages. */
function codeOutline(line: string): Heading | undefined {
  if (line.length > 500 || !(declaration.test(line) || named.test(line))) return undefined
  return { text: shortenHeading(line.replace(/[{:=(]?\s*$/, '')), always: false }
}

function shortenHeading(text: string): string {
  const bare = text
    .slice(0, 4 * most.heading)
    .replace(/\s+/g, ' ')
    .trim()
  return shortLine(bare, most.heading)
}
