import { htmlOf } from '../preview/model/markdown-html.ts'
import { plainHtml } from '../preview/model/plain-html.ts'

/** Maximum length of a document that is laid out, in characters: the page waits for it, since hosts allow no worker. */
const maxLaidOut = 100_000

export const parseMarkdown: typeof import('../preview/markdown-parse.ts').parseMarkdown = async (text) =>
  text.length > maxLaidOut ? plainHtml(text) : htmlOf(text)
