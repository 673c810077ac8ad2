import { defined } from '../core/kit/object.ts'
import type { Audience, Description } from '../core/provider.ts'

/** Maximum number of bytes of a file that are searched for front matter. */
export const frontMatterBytes = 8192
const [maxTitle, maxDescription] = [200, 1000]

export type FrontMatter = Pick<Description, 'title' | 'description' | 'priority' | 'audience'>

/**
 * Parses the YAML between `---` and `---` at the beginning of a text: `title`, `description`, `priority` (from 0 to 1) and `audience`
 * (`user`, `assistant`, or a list of them). Other keys and invalid values are ignored. Only `key: value` at the beginning of a line is
 * read, with a value that is plain, quoted, or a list in either form: a full parser could be kept busy by malicious input.
 */
export function frontMatterOf(start: string): FrontMatter {
  const lines = (splitFrontMatter(start).head ?? '').split(/\r?\n/)
  let frontMatter: FrontMatter = {}
  for (const [i, line] of lines.entries()) {
    const [, key, rest = ''] = /^([A-Za-z]+)[ \t]*:(?:[ \t]+(.*))?$/.exec(line) ?? []
    if (key === 'title') frontMatter = { ...frontMatter, ...defined({ title: parseShortText(rest, maxTitle) }) }
    else if (key === 'description')
      frontMatter = { ...frontMatter, ...defined({ description: parseShortText(rest, maxDescription) }) }
    else if (key === 'priority') frontMatter = { ...frontMatter, ...defined({ priority: priorityOf(rest) }) }
    else if (key === 'audience')
      frontMatter = { ...frontMatter, ...defined({ audience: audienceOf(listOf(rest, lines, i + 1)) }) }
  }
  return frontMatter
}

/** Splits a text into its front matter (`head`, without the lines of `---`, if there is any) and the rest (`body`). */
export function splitFrontMatter(text: string): { readonly head?: string; readonly body: string } {
  const whole = text.replace(/^\ufeff/, '')
  // The flag `y` holds the match at the beginning.
  const [block = '', head] = /---[ \t]*\r?\n([\s\S]*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/my.exec(whole) ?? []
  return { ...defined({ head }), body: whole.slice(block.length) }
}

/** Returns the value of a scalar: the text between its quotes, or the text before a comment; undefined for blocks, references and tags. */
function scalarOf(source: string): string | undefined {
  const text = source.trim()
  const quoted = /^'((?:[^']|'')*)'[ \t]*(?:#.*)?$/.exec(text)
  if (quoted !== null) return quoted[1]?.replaceAll("''", "'")
  const escaped = /^("(?:[^"\\]|\\.)*")[ \t]*(?:#.*)?$/.exec(text)
  if (escaped !== null) return unquote(escaped[1] ?? '')
  if (/^[|>&*!%@`"'{[\]},#]/.test(text) || /:[ \t]/.test(text)) return undefined
  const comment = text.search(/[ \t]#/)
  return comment === -1 ? text : text.slice(0, comment).trimEnd()
}

/** People write only the escapes that YAML shares with JSON. */
function unquote(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return undefined
  }
}

function parseShortText(source: string, most: number): string | undefined {
  const text = scalarOf(source)
    ?.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  if (text === undefined || text === '' || !text.isWellFormed()) return undefined
  return Array.from(text).slice(0, most).join('')
}

function priorityOf(source: string): number | undefined {
  const text = scalarOf(source) ?? ''
  const value = /^\d?(?:\.\d{1,10})?$/.test(text) && text !== '' ? Number(text) : Number.NaN
  return value >= 0 && value <= 1 ? value : undefined
}

/** Returns the items of a list: of a scalar, of `[a, b]`, or of `- a` in the lines that follow. */
function listOf(source: string, lines: readonly string[], next: number): readonly (string | undefined)[] {
  const flow = /^\[([^[\]{}]*)\][ \t]*(?:#.*)?$/.exec(source.trim())
  if (flow !== null) return (flow[1] ?? '').split(',').map(scalarOf)
  if (source.trim() !== '') return [scalarOf(source)]
  const items: (string | undefined)[] = []
  for (let i = next; i < lines.length; i++) {
    const item = /^[ \t]*-[ \t]+(.*)$/.exec(lines[i] ?? '')
    if (item === null) break
    items.push(scalarOf(item[1] ?? ''))
  }
  return items
}

function audienceOf(items: readonly (string | undefined)[]): readonly Audience[] | undefined {
  const audiences = items.filter((item) => item === 'user' || item === 'assistant')
  return audiences.length === 0 || audiences.length !== items.length ? undefined : [...new Set(audiences)]
}

/**
 * Returns the index at which YAML is nested deeper than a limit: in brackets, or by `-` or `?` at the beginning of one line; undefined if
 * it is not. Call it before a recursive parser: if the stack ends while V8 compiles a regular expression, V8 ends the process instead of
 * throwing an error. Brackets in strings and comments count, too, unless they are closed.
 *
 * @param limit At most 1000.
 */
export function deepNestingIn(text: string, limit: number): number | undefined {
  let depth = 0
  for (const { 0: bracket, index } of text.matchAll(/[[{\]}]|(?:^|(?<=\n))[ \t]*(?:[-?][ \t]+){1,1001}/g)) {
    if (bracket === '[' || bracket === '{') depth++
    else if (bracket === ']' || bracket === '}') depth = Math.max(0, depth - 1)
    else if ((bracket.match(/[-?]/g)?.length ?? 0) > limit) return index
    if (depth > limit) return index
  }
  return undefined
}

/** Returns a function that takes the lines of Markdown one after the other, and returns whether the line belongs to a fenced block of code. */
export function createFence(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence === undefined) fence = mark
    else if (mark?.startsWith(fence) === true && line.trim() === mark) {
      fence = undefined
      return true
    }
    return fence !== undefined
  }
}

/** Number of bytes of a file that are read for its heading. */
export const headingBytes = 8192
/** The longest title, in characters. */
const maxHeading = 200

/**
 * The first heading in the beginning of a Markdown file, of any level, as plain text: `# …`, or a paragraph with `===`
 * or `---` below it. Front matter, code blocks and comments are skipped. Undefined without a heading.
 */
export function headingIn(start: string): string | undefined {
  const lines = start.replace(/^\ufeff/, '').split(/\r?\n/)
  let paragraph: string[] = []
  const isFenced = createFence()
  for (let i = afterFrontMatter(lines); i < lines.length; i++) {
    const line = lines[i] ?? ''
    if (isFenced(line)) {
      paragraph = []
      continue
    }
    if (/^ {0,3}<!--/.test(line)) {
      while (i < lines.length && !lines[i]?.includes('-->')) i++
      paragraph = []
      continue
    }
    const heading = /^ {0,3}#{1,6}(?:[ \t]+(.*))?$/.exec(line)
    if (heading !== null) {
      const title = stripMarkup((heading[1] ?? '').slice(0, maxHeading * 10).replace(/(?:^|[ \t]+)#+[ \t]*$/, ''))
      if (title !== undefined) return title
      paragraph = []
    } else if (paragraph.length > 0 && /^ {0,3}(?:=+|-+)[ \t]*$/.test(line)) {
      const title = stripMarkup(paragraph.join(' '))
      if (title !== undefined) return title
      paragraph = []
    } else if (line.trim() === '' || /^(?: {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?: |$))/.test(line)) paragraph = []
    else paragraph.push(line.trim())
  }
  return undefined
}

/** The index of the line after the front matter (YAML or TOML). Unterminated front matter leaves no lines. */
function afterFrontMatter([first = '', ...lines]: readonly string[]): number {
  const mark = first.trimEnd()
  if (mark !== '---' && mark !== '+++') return 0
  const end = lines.findIndex((line) => line.trimEnd() === mark || (mark === '---' && line.trimEnd() === '...'))
  return end === -1 ? lines.length + 1 : end + 2
}

/** Removes Markdown and HTML from a heading, and cuts it to the longest title. `undefined` if nothing is left. */
function stripMarkup(markdown: string): string | undefined {
  const text = markdown
    .slice(0, maxHeading * 10)
    .replace(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?/g, '$1')
    .replace(/<[^<>]*>/g, '')
    .replace(/[`*]|(?<!\w)_+|_+(?!\w)/g, '')
    .replace(/\\(?=[!-/:-@[-`{-~])/g, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  return text === '' ? undefined : [...text].slice(0, maxHeading).join('')
}
