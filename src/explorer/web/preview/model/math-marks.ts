import type { MarkedExtension, TokenizerAndRendererExtension, Tokens } from 'marked'

/** Maximum length of a TeX formula that is drawn, in characters. */
export const maxFormulaLength = 5000

/**
 * Maximum length of plain text that is searched for the next formula, in characters. Without a limit the time would grow with the
 * square of the length.
 */
const maxLookAhead = 20_000

/** A formula, and whether it is on lines of its own. */
interface FormulaToken extends Tokens.Generic {
  readonly tex: string
  readonly isDisplayed: boolean
}

const inline: TokenizerAndRendererExtension = {
  name: 'formula',
  level: 'inline',
  start: (text) => {
    const at = text.slice(0, maxLookAhead).indexOf('$')
    return at === -1 ? undefined : at
  },
  tokenizer: (text) => inlineFormula(text),
  renderer: (token) => htmlOf(token as FormulaToken),
}

const block: TokenizerAndRendererExtension = {
  name: 'formulaBlock',
  level: 'block',
  start: (text) => {
    const at = text.slice(0, maxLookAhead).search(/^ {0,3}\$\$/m)
    // Signs that do not begin a formula do not split a paragraph.
    return at === -1 || blockFormula(text.slice(at)) === undefined ? undefined : at
  },
  tokenizer: (text) => blockFormula(text),
  renderer: (token) => `<pre><code class="language-math">${escaped(String(token.tex))}</code></pre>\n`,
}

/** Formulas in TeX as GitHub marks them: `$…$` in a line, `$$…$$` on lines of its own. A fence of the language `math` needs no mark. */
export const formulas: MarkedExtension = { extensions: [inline, block] }

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
 * A formula must end at the first dollar sign after the opening one. Otherwise it is not a formula: prices and shell variables
 * stay as written.
 */
function inlineFormula(text: string): FormulaToken | undefined {
  const mark = text.startsWith('$$') ? '$$' : text.startsWith('$') ? '$' : undefined
  if (mark === undefined) return undefined
  const end = endOf(text, mark.length)
  if (end === undefined || !text.startsWith(mark, end)) return undefined
  const inner = text.slice(mark.length, end)
  const quoted = mark === '$' ? /^`([^`]+)`$/.exec(inner)?.[1] : undefined
  if (quoted === undefined && mark === '$' && /^\s|\s$|`/.test(inner)) return undefined
  const after = text.charAt(end + mark.length)
  if (inner.trim() === '' || /[A-Za-z0-9_$]/.test(after)) return undefined
  const raw = text.slice(0, end + mark.length)
  return { type: 'formula', raw, tex: (quoted ?? inner).trim(), isDisplayed: mark === '$$' }
}

/** The next dollar sign without a backslash before it. */
function endOf(text: string, from: number): number | undefined {
  const last = Math.min(text.length, from + maxFormulaLength)
  for (let at = from; at < last; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '$') return at
  }
  return undefined
}

function htmlOf({ tex, isDisplayed }: FormulaToken): string {
  return `<code class="language-math-${isDisplayed ? 'displayed' : 'inline'}">${escaped(tex)}</code>`
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
