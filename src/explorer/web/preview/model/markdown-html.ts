import { Marked, type MarkedExtension, type TokenizerAndRendererExtension, type Tokens } from 'marked'
import { escapeHtml, type MarkdownHtml, maxDepth, maxFormulaLength, plainHtml, truncateTokens } from './bounds.ts'

/**
 * Maximum length of plain text that is searched for the next formula, in characters. Without a limit the time would grow with the square of
 * the length.
 */
const maxFormulaSearch = 20_000

/** A formula, and whether it is drawn on a line of its own. */
interface FormulaToken extends Tokens.Generic {
  readonly tex: string
  readonly isDisplayed: boolean
}

const inlineFormulas: TokenizerAndRendererExtension = {
  name: 'formula',
  level: 'inline',
  start: (text) => {
    const at = text.slice(0, maxFormulaSearch).indexOf('$')
    return at === -1 ? undefined : at
  },
  tokenizer: (text) => inlineFormula(text),
  renderer: (token) => formulaHtml(token as FormulaToken),
}

const blockFormulas: TokenizerAndRendererExtension = {
  name: 'formulaBlock',
  level: 'block',
  start: (text) => {
    const at = text.slice(0, maxFormulaSearch).search(/^ {0,3}\$\$/m)
    // Dollar signs that do not begin a formula must not split a paragraph.
    return at === -1 || blockFormula(text.slice(at)) === undefined ? undefined : at
  },
  tokenizer: (text) => blockFormula(text),
  renderer: (token) => `<pre><code class="language-math">${escapeHtml(String(token.tex))}</code></pre>\n`,
}

/** Formulas in TeX as GitHub marks them: `$…$` in a line, `$$…$$` on lines of their own. A fence of the language `math` needs no extension. */
const formulas: MarkedExtension = { extensions: [inlineFormulas, blockFormulas] }

function blockFormula(text: string): FormulaToken | undefined {
  const [opening] = /^ {0,3}\$\$/.exec(text) ?? []
  if (opening === undefined) return undefined
  const end = text.slice(0, maxFormulaLength + 10).indexOf('$$', opening.length)
  const [rest] = end === -1 ? [] : (/^[ \t]*(?:\n+|$)/.exec(text.slice(end + 2, end + 200)) ?? [])
  const tex = text.slice(opening.length, end).trim()
  if (rest === undefined || tex === '' || /\n[ \t]*\n/.test(tex)) return undefined
  return { type: 'formulaBlock', raw: text.slice(0, end + 2 + rest.length), tex, isDisplayed: true }
}

/**
 * Parses a formula at the start of a text. It must end at the first dollar sign after the opening one, so that prices and shell variables
 * stay as written.
 */
function inlineFormula(text: string): FormulaToken | undefined {
  const mark = text.startsWith('$$') ? '$$' : text.startsWith('$') ? '$' : undefined
  if (mark === undefined) return undefined
  const end = findDollarSign(text, mark.length)
  if (end === undefined || !text.startsWith(mark, end)) return undefined
  const inner = text.slice(mark.length, end)
  const quoted = mark === '$' ? /^`([^`]+)`$/.exec(inner)?.[1] : undefined
  if (quoted === undefined && mark === '$' && /^\s|\s$|`/.test(inner)) return undefined
  const after = text.charAt(end + mark.length)
  if (inner.trim() === '' || /[A-Za-z0-9_$]/.test(after)) return undefined
  const raw = text.slice(0, end + mark.length)
  return { type: 'formula', raw, tex: (quoted ?? inner).trim(), isDisplayed: mark === '$$' }
}

/** Returns the index of the next dollar sign without a backslash before it; undefined if there is none within {@link maxFormulaLength}. */
function findDollarSign(text: string, from: number): number | undefined {
  const last = Math.min(text.length, from + maxFormulaLength)
  for (let at = from; at < last; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '$') return at
  }
  return undefined
}

function formulaHtml({ tex, isDisplayed }: FormulaToken): string {
  return `<code class="language-math-${isDisplayed ? 'displayed' : 'inline'}">${escapeHtml(tex)}</code>`
}

/** Maximum number of numbered footnotes in a document. Further footnotes are shown as written. */
const maxFootnotes = 2000

/**
 * Maximum length of a paragraph that is searched for the definition of a footnote that ends the paragraph, in characters. Without a limit
 * the time would grow with the square of the length.
 */
const maxLookAhead = 2000

/** The definition of a footnote begins at the start of a line. Its further lines are indented or follow directly. */
const definition =
  /^ {0,3}\[\^([^\]\s]{1,80})\]:[ \t]*([^\n]*(?:\n(?![ \t]*(?:\n|$)| {0,3}\[\^)[^\n]+|\n+(?: {4}|\t)[^\n]+)*)(?:\n+|$)/

/**
 * Footnotes as GitHub has them, of one document while it is rendered: `[^1]` in the text and `[^1]: …` anywhere. Numbers follow the order of
 * the definitions.
 */
function createFootnotes() {
  const numbers = new Map<string, number>()
  let names = new Set<string>()

  const mark: TokenizerAndRendererExtension = {
    name: 'footnoteMark',
    level: 'inline',
    // No `start` is needed, because the parser ends plain text before each bracket anyway.
    tokenizer: (text) => {
      const [raw, label] = /^\[\^([^\]\s]{1,80})\]/.exec(text) ?? []
      const number = label === undefined ? undefined : numbers.get(label.toLowerCase())
      if (raw === undefined || number === undefined) return undefined
      return { type: 'footnoteMark', raw, number }
    },
    renderer: (token) => {
      const number = Number(token.number)
      // The link back leads to the first mark, so only the first mark has an id.
      const id = names.has(String(number)) ? '' : ` id="footnote-mark-${number}"`
      names.add(String(number))
      return `<sup><a href="#footnote-${number}"${id}>${number}</a></sup>`
    },
  }
  const note: TokenizerAndRendererExtension = {
    name: 'footnote',
    level: 'block',
    start: (text) => {
      if (numbers.size === 0) return undefined
      const at = text.slice(0, maxLookAhead).search(/^ {0,3}\[\^/m)
      return at === -1 ? undefined : at
    },
    tokenizer(text) {
      const [raw, label, body] = definition.exec(text) ?? []
      const number = label === undefined ? undefined : numbers.get(label.toLowerCase())
      if (raw === undefined || body === undefined || number === undefined) return undefined
      const tokens = this.lexer.blockTokens(body.replace(/^(?: {4}|\t)/gm, ''), [])
      return { type: 'footnote', raw, number, tokens }
    },
    childTokens: ['tokens'],
    renderer(token) {
      const number = Number(token.number)
      const body = this.parser.parse(token.tokens ?? [])
      const back = `<a href="#footnote-mark-${number}" title="${number}">↩</a>`
      return `<section id="footnote-${number}"><ol start="${number}"><li>${withBack(body, back)}</li></ol></section>\n`
    },
  }

  return {
    extension: { extensions: [mark, note] },
    /** Replaces the footnotes of the previous document by those of this text. */
    reset: (text: string) => {
      numbers.clear()
      names = new Set()
      for (const [, label = ''] of text.matchAll(/^ {0,3}\[\^([^\]\s]{1,80})\]:/gm)) {
        if (numbers.size >= maxFootnotes) return
        const key = label.toLowerCase()
        if (!numbers.has(key)) numbers.set(key, numbers.size + 1)
      }
    },
  }
}

/** Inserts the link back to the mark at the end of the last paragraph of a footnote. */
function withBack(body: string, back: string): string {
  return /<\/p>\s*$/.test(body) ? body.replace(/<\/p>\s*$/, ` ${back}</p>`) : `${body}${back}`
}

const footnotes = createFootnotes()
const markdown = new Marked({ gfm: true, async: false }, footnotes.extension, formulas)

/** Finds the marks of quotes beyond the maximum depth. They are removed, so deeper quotes have the maximum depth. */
const deepQuote = new RegExp(`^((?:[ \\t]{0,3}>){${maxDepth}})(?:[ \\t]{0,3}>)+`, 'gm')

/** Converts Markdown to HTML. A text that is nested too deeply to parse is shown as written. */
export function htmlOf(text: string): MarkdownHtml {
  const flat = text.replace(deepQuote, '$1')
  try {
    footnotes.reset(flat)
    const { tokens, isCut } = truncateTokens(markdown.lexer(flat))
    return { html: markdown.parser(tokens), isCut: isCut || flat !== text }
  } catch {
    return plainHtml(text)
  }
}
