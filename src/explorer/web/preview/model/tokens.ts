/** A piece of a line: text, and its highlighting class, if any. */
type Token = readonly [text: string, style: string]
export type TokenLine = readonly Token[]

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" }

/**
 * Parses the output of highlight.js into lines of pieces. It answers HTML of one form only: `<span class="…">`, `</span>` and text with five escapes.
 * The page makes its own elements of the pieces, and never HTML.
 */
export function tokenLines(html: string): readonly TokenLine[] {
  const lines: Token[][] = [[]]
  const open: string[] = []
  for (const [whole, style, text] of html.matchAll(/<span class="([^"]*)">|<\/span>|([^<]+)/g)) {
    if (style !== undefined) open.push(style)
    else if (text === undefined) {
      if (whole === '</span>') open.pop()
    } else
      for (const [index, piece] of unescaped(text).split('\n').entries()) {
        if (index > 0) lines.push([])
        if (piece !== '') lines.at(-1)?.push([piece, open.at(-1) ?? ''])
      }
  }
  return lines
}

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name: string) => entities[name] ?? '')
}
