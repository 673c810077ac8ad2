export interface OutlineEntry {
  /** Line number, from 1. */
  readonly line: number
  readonly text: string
}

const maxEntries = 60
/** Maximum number of characters of a line that are matched: a heading is recognised by its beginning. */
const maxLine = 400

/** Headings of Markdown and of plain text in Japanese, and declarations of programming languages. */
const landmark =
  /^(?:#{1,4}\s+\S|第[0-9０-９一二三四五六七八九十百]{1,5}[章節条編部]|[■◆●▼]\s*\S|(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|pub\s+|abstract\s+)*(?:function|class|interface|type|enum|struct|trait|impl|def|func|fn|module|namespace|const|CREATE\s+TABLE)\s+\S)/

/** Returns the headings and declarations of a text: a limited number of lines, spread over all of it. */
export function outlineOf(lines: readonly string[]): readonly OutlineEntry[] {
  const found: OutlineEntry[] = []
  for (const [index, line] of lines.entries()) {
    const start = line.slice(0, maxLine)
    if (landmark.test(start)) found.push({ line: index + 1, text: oneLine(start, 100) })
  }
  if (found.length <= maxEntries) return found
  // Prefer the highest headings.
  const headings = found.filter(({ text }) => /^#{1,2}\s/.test(text))
  const chosen = headings.length > 0 && headings.length <= maxEntries ? headings : found
  const step = chosen.length / maxEntries
  return step <= 1
    ? chosen
    : Array.from({ length: maxEntries }, (_, i) => chosen[Math.floor(i * step)]).filter((one) => one !== undefined)
}

/** Returns a text on one line, cut to a length in characters. */
export function oneLine(text: string, most: number): string {
  return shorten(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim(), most)
}

/** Cuts a text to a length in characters, with an ellipsis. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
