import type { MarkedExtension, TokenizerAndRendererExtension, Tokens } from 'marked'

/** The longest formula in TeX that is drawn, in characters. */
export const maxFormulaLength = 5000

/** How far plain text is searched for the next formula, in characters: all of the rest would take the square of its length. */
const maxLookAhead = 20_000

/** A formula, and whether it stands on lines of its own. */
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
    // A paragraph is not broken for signs that mark nothing.
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

/** The first dollar sign after the opening one ends a formula, or there is none: prices and shell variables stay as they are written. */
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

/** The next dollar sign that no backslash stands before. */
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
