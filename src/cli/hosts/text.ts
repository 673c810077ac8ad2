/** A text cannot be read, or not be edited. The message goes on from the name of the file. */
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

/** The white space that the line of an offset begins with. */
export function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset))?.[0] ?? ''
}

/** Puts an indent before every line but the first, with the ends of line of a text. */
export function indented(block: string, indent: string, eol: string): string {
  return block.split('\n').join(eol + indent)
}
