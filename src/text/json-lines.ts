/**
 * Puts each member of a JSON text on its own line, without changing a value: numbers keep their digits. Then parts of it can be
 * read by lines. The text must be JSON.
 */
export function jsonLines(text: string): string {
  const pieces: string[] = []
  let depth = 0
  const newLine = () => pieces.push('\n', '  '.repeat(Math.min(depth, maxIndent)))
  for (const token of tokensOf(text)) {
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

/** Yields the tokens of a JSON text. An empty object or array is one token. */
function* tokensOf(text: string): Generator<string> {
  // A string is found by its end: as a part of the expression, a long one would exceed the stack of the matcher.
  const start = /"|[{[]\s*[}\]]|[{}[\],:]|[^\s"{}[\],:]+/g
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    if (match[0] !== '"') {
      yield match[0]
      continue
    }
    const end = endOfString(text, match.index + 1)
    yield text.slice(match.index, end)
    start.lastIndex = end
  }
}

/** Returns the index after the closing quote of a string. */
function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0
    while (quote - 1 - backslashes >= from && text[quote - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return quote + 1
  }
  return text.length
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
