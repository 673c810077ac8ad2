/** A text cannot be read or edited. The message follows the name of the file. */
export function formatError(text: string, offset: number | undefined, message: string): Error {
  const error = new Error(offset === undefined ? `: ${message}` : `:${lineAndColumn(text, offset)}: ${message}`)
  error.name = 'FormatError'
  return error
}

function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  return `${line}:${offset - before.lastIndexOf('\n')}`
}

/** The end of line that a text uses. */
export function eolOf(text: string): string {
  return /\r?\n/.exec(text)?.[0] ?? '\n'
}

/** The indentation of the line that contains an offset. */
export function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset))?.[0] ?? ''
}

/** Indents every line except the first, with the line ends of a text. */
export function indented(block: string, indent: string, eol: string): string {
  return block.split('\n').join(eol + indent)
}
