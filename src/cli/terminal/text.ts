import { patternOf } from '../../core/pattern.ts'

/**
 * Characters that would do something to a terminal, or hide: controls, the marks that turn the direction of text, line
 * separators, and what has no width or is blank though it is a letter (joiners are left, since scripts and emoji need them).
 */
const unsafe =
  /[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu

/** Text from anywhere, safe to print on one line: what is unsafe is written as an escape (`\u001b`, `\n`). */
export function escapeText(text: string): string {
  return text.replace(unsafe, escapeCharacter)
}

/** Text from anywhere, safe to print as it is laid out: line ends and tabs stay. */
export function escapeLines(text: string): string {
  return text.replace(unsafe, (character, at: number) => {
    if (character === '\n' || character === '\t') return character
    return character === '\r' && text[at + 1] === '\n' ? character : escapeCharacter(character)
  })
}

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  return short[character] ?? (code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`)
}

/** Text of letters, digits and signs alone. */
const readable = patternOf(String.raw`^[\p{L}\p{M}\p{N}\p{S}\p{P}]+$`, 'u')

/**
 * A URI for people: escapes of letters, digits and signs beyond ASCII are decoded (`%E6%96%87` becomes `文`), everything
 * else stays. hikidashi takes both spellings for the same resource.
 */
export function readableUri(uri: string): string {
  return uri.replace(/(?:%[89A-Fa-f][0-9A-Fa-f])+/g, (escaped) => {
    try {
      const decoded = decodeURIComponent(escaped)
      return readable().test(decoded) ? decoded : escaped
    } catch {
      return escaped
    }
  })
}
