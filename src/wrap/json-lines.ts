/**
 * Puts each member of a JSON text on a line of its own, without changing a value: numbers keep their digits. So parts of it can be
 * read by lines. The text must be JSON.
 */
export function jsonLines(text: string): string {
  const pieces: string[] = []
  let depth = 0
  const newLine = () => pieces.push('\n', '  '.repeat(Math.min(depth, maxIndent)))
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|[^\s"{}[\],:]+/gs)) {
    if (token === '{' || token === '[') {
      depth++
      pieces.push(token)
      newLine()
    } else if (token === '}' || token === ']') {
      depth--
      newLine()
      pieces.push(token)
    } else if (token === ',') {
      pieces.push(token)
      newLine()
    } else pieces.push(token === ':' ? ': ' : token)
  }
  return `${pieces.join('')}\n`
}

/** Maximum indentation, in levels: deeper nesting would make the text far longer. */
const maxIndent = 20

/** Whether a text is a JSON object or array. */
export function isJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
