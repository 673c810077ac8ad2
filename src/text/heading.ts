/** Number of bytes of a file that are read for its heading. */
export const headingBytes = 8192
/** The longest title, in characters. */
const maxTitle = 200

/**
 * The first heading in the beginning of a Markdown file, of any level, as plain text: `# …`, or a paragraph with `===`
 * or `---` below it. Front matter, code blocks and comments are passed over.
 */
export function headingIn(start: string): string | undefined {
  const lines = start.replace(/^\ufeff/, '').split(/\r?\n/)
  let paragraph: string[] = []
  let fence: string | undefined
  for (let i = afterFrontMatter(lines); i < lines.length; i++) {
    const line = lines[i] ?? ''
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== undefined) {
      if (mark?.startsWith(fence) === true && line.trim() === mark) fence = undefined
      continue
    }
    if (mark !== undefined) {
      fence = mark
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
      const title = plain((heading[1] ?? '').slice(0, maxTitle * 10).replace(/(?:^|[ \t]+)#+[ \t]*$/, ''))
      if (title !== undefined) return title
      paragraph = []
    } else if (paragraph.length > 0 && /^ {0,3}(?:=+|-+)[ \t]*$/.test(line)) {
      const title = plain(paragraph.join(' '))
      if (title !== undefined) return title
      paragraph = []
    } else if (line.trim() === '' || /^(?: {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?: |$))/.test(line)) paragraph = []
    else paragraph.push(line.trim())
  }
  return undefined
}

/** The index of the line after the front matter (YAML or TOML). Unterminated front matter leaves no lines. */
function afterFrontMatter(lines: readonly string[]): number {
  const mark = lines[0]?.trimEnd()
  if (mark !== '---' && mark !== '+++') return 0
  const end = lines.findIndex(
    (line, i) => i > 0 && (line.trimEnd() === mark || (mark === '---' && line.trimEnd() === '...')),
  )
  return end === -1 ? lines.length : end + 1
}

/** Removes Markdown and HTML from a heading. `undefined` if nothing is left. */
function plain(markdown: string): string | undefined {
  const text = markdown
    .slice(0, maxTitle * 10)
    .replace(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?/g, '$1')
    .replace(/<[^<>]*>/g, '')
    .replace(/[`*]|(?<!\w)_+|_+(?!\w)/g, '')
    .replace(/\\(?=[!-/:-@[-`{-~])/g, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  return text === '' ? undefined : [...text].slice(0, maxTitle).join('')
}
