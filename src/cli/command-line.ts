import { misused } from './exit.ts'

/**
 * Splits a command line into words, as a shell does: at white space, with '…' and "…" and, except on Windows, where it
 * parts the names in a path, `\`. Nothing else is special: there is no shell, no variable and no wildcard.
 */
export function splitCommand(line: string, platform: NodeJS.Platform = process.platform): readonly string[] {
  const words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  for (let i = 0; i < line.length; i++) {
    const character = line[i] ?? ''
    const escapes = character === '\\' && platform !== 'win32' && quote !== "'"
    if (escapes && (quote === undefined || /["\\$`]/.test(line[i + 1] ?? ''))) {
      i++
      if (i === line.length) throw misused(`The command ends in a backslash: ${line}`)
      word = (word ?? '') + (line[i] ?? '')
    } else if (character === quote) quote = undefined
    else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character
      word ??= ''
    } else if (quote === undefined && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== undefined) throw misused(`A quote in the command is not closed: ${line}`)
  if (word !== undefined) words.push(word)
  return words
}

/** Puts words together to a command line for a POSIX shell. */
export function joinCommand(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
}
