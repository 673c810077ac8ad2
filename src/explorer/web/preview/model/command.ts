/** A word for a POSIX shell: within single quotes nothing means anything but the quote itself. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** The command that reads a resource. */
export function commandFor(uri: string): string {
  return `hikidashi read ${shellWord(uri)}`
}
