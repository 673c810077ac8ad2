import { htmlOf } from '../preview/model/markdown-html.ts'
import { plainHtml } from '../preview/model/plain-html.ts'

/** Maximum length of a document that is laid out, in characters. The layout blocks the page, since hosts allow no worker. */
const maxLaidOut = 100_000
/** Maximum work for emphasis: marks times characters, summed over blocks. The parser compares each mark with all later marks. */
const maxWork = 200_000_000

export const parseMarkdown: typeof import('../preview/markdown-parse.ts').parseMarkdown = async (text) =>
  text.length > maxLaidOut || workOf(text) > maxWork ? plainHtml(text) : htmlOf(text)

function workOf(text: string): number {
  const blocks = text.split(/\n[ \t]*\n/)
  return blocks.reduce((sum, block) => sum + (block.match(/[_*]/g)?.length ?? 0) * block.length, 0)
}

export const mostHighlighted = 0

/** In a host, text has no colours, because highlighting needs a worker, which the policy of the host forbids. */
export const highlight: typeof import('../preview/highlight.ts').highlight = async () => undefined

/** In a host, formulas and diagrams are shown as their source, because drawing them needs workers. */
export const draw: typeof import('../preview/drawn.ts').draw = async () => {}
