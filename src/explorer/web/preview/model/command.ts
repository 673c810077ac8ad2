/** Quotes a word for a POSIX shell: within single quotes only the quote itself is special. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** The command that reads a resource. */
export function commandFor(uri: string): string {
  return `hikidashi read ${shellWord(uri)}`
}
