import { readFileSync } from 'node:fs'
import { misused } from '../terminal/exit.ts'
import { escapeText } from '../terminal/text.ts'

/**
 * Splits a command line into words like a shell: at white space, with '…' and "…" and with `\`, except on Windows, where `\`
 * separates the names in a path. Variables and wildcards have no meaning, because there is no shell.
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

/**
 * Joins words to a command line for a POSIX shell. The result is safe to print: a word with control characters, or others that a
 * terminal must not get, is written as `$'a\x0ab'` (POSIX.1-2024, section 2.2.4; bash, zsh and ksh support it).
 */
export function joinCommand(words: readonly string[]): string {
  return words.map(quoted).join(' ')
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  if (escapeText(word) === word) return `'${word.replaceAll("'", "'\\''")}'`
  const characters = Array.from(word, (character) => {
    if (escapeText(character) === character) return character.replace(/['\\]/, '\\$&')
    return Array.from(Buffer.from(character), (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  })
  return `$'${characters.join('')}'`
}

function readPackage(): { readonly version: string; readonly private?: boolean } {
  return JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
}

/** The version of this package. */
export function packageVersion(): string {
  return readPackage().version
}

/** Whether `npx hikidashi` finds this package. While package.json says "private", npm refuses to publish it. */
export function isPublished(): boolean {
  return readPackage().private !== true
}
