import { Marked } from 'marked'
import { boundedTokens, maxDepth } from './bounds.ts'
import { createFootnotes } from './footnotes.ts'
import { formulas } from './math-marks.ts'
import { type MarkdownHtml, plainHtml } from './plain-html.ts'

const footnotes = createFootnotes()
const marked = new Marked({ gfm: true, async: false }, footnotes.extension, formulas)

/** More quotes in each other than this are not told apart. */
const deepQuote = new RegExp(`^((?:[ \\t]{0,3}>){${maxDepth}})(?:[ \\t]{0,3}>)+`, 'gm')

/** Lays out a document. A text that is nested deeper than can be parsed is shown as it is. */
export function htmlOf(text: string): MarkdownHtml {
  const flat = text.replace(deepQuote, '$1')
  try {
    footnotes.reset(flat)
    const { tokens, isCut } = boundedTokens(marked.lexer(flat))
    return { html: marked.parser(tokens), isCut: isCut || flat !== text }
  } catch {
    return plainHtml(text)
  }
}
