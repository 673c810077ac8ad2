import { lazyPattern } from '../../core/kit/matching.ts'
import { decodeComponent } from '../../core/uri.ts'

/**
 * Characters that could control a terminal or hide text: control characters, marks of direction, line separators, lone
 * surrogates, and characters that look empty. The joiners of scripts and emoji are not among them.
 */
const unsafe =
  /[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu

/** Makes text safe to print on one line: unsafe characters are written as escapes (`\u001b`, `\n`). */
export function escapeText(text: string): string {
  return text.replace(unsafe, escapeCharacter)
}

/** Makes text safe to print on several lines: line ends and tabs stay, other unsafe characters are escaped. */
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

const readable = lazyPattern(String.raw`^[\p{L}\p{M}\p{N}\p{S}\p{P}]+$`, 'u')

/** Decodes escapes of letters, digits and signs beyond ASCII: `%E6%96%87` becomes `文`. */
export function readableUri(uri: string): string {
  return uri.replace(/(?:%[89A-Fa-f][0-9A-Fa-f])+/g, (escaped) => {
    const decoded = decodeComponent(escaped)
    return decoded !== undefined && readable().test(decoded) ? decoded : escaped
  })
}

/** Returns a URI for output. @param toPerson Whether a person reads it, rather than a program. */
export function displayUri(uri: string, toPerson = true): string {
  return escapeText(toPerson ? readableUri(uri) : uri)
}

/** Code points that take two columns in a terminal: East Asian wide and full-width (UAX #11), and emoji. */
const wide = lazyPattern(
  String.raw`[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}`,
  'u',
)
/** Code points that take no column, such as combining marks and joiners. */
const none = lazyPattern(String.raw`[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]`, 'u')
const modifier = lazyPattern(String.raw`\p{Emoji_Modifier}`, 'u')
const joiner = 0x200d
const emojiStyle = 0xfe0f

/** Returns the columns that a text without control characters takes in a terminal. */
export function displayWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  let last = 0
  let joined = false
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const regional = code >= 0x1f1e6 && code <= 0x1f1ff
    // A character after a joiner is drawn in the two columns of the emoji before it.
    const part =
      joined || modifier().test(character)
        ? 0
        : none().test(character)
          ? 0
          : wide().test(character) && !regional
            ? 2
            : 1
    if (code === emojiStyle && last === 1) width += 1
    width += part
    joined = code === joiner
    if (part > 0) last = part
  }
  return width
}

/**
 * @param width In columns. A wider text stays unchanged.
 * @param side The side on which the text is.
 */
export function padDisplay(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'left' ? text + space : space + text
}

/** In columns of the terminal. A wider cell does not widen its column. */
const maxColumnWidth = 60

/**
 * Creates a function that lays out rows in columns, some rows at a time. Printed rows cannot change, so widths only
 * grow.
 * @param right The indexes of the right-aligned columns.
 */
export function createColumns(right: readonly number[] = []): (rows: readonly (readonly string[])[]) => string {
  const widths: number[] = []
  const lineOf = (row: readonly string[]) => {
    const last = row.findLastIndex((cell) => cell !== '')
    const filled = row.slice(0, last + 1).map((cell, i) => {
      if (right.includes(i)) return padDisplay(cell, widths[i] ?? 0, 'right')
      return i === last ? cell : padDisplay(cell, widths[i] ?? 0)
    })
    return `${filled.join('  ')}\n`
  }
  return (rows) => {
    for (const row of rows)
      for (const [i, cell] of row.entries())
        widths[i] = Math.max(widths[i] ?? 0, Math.min(maxColumnWidth, displayWidth(cell)))
    return rows.map(lineOf).join('')
  }
}

const codes = {
  bold: ['1', '22'],
  dim: ['2', '22'],
  red: ['31', '39'],
  green: ['32', '39'],
  yellow: ['33', '39'],
  mark: ['1;33', '22;39'],
} as const

export type Colours = Readonly<Record<keyof typeof codes, (text: string) => string>>

/** Styled texts must have gone through `escapeText` before. */
export function coloursFor(isTerminal: boolean, env: NodeJS.ProcessEnv = process.env): Colours {
  const isOn = isColourful(isTerminal, env)
  const paint = (name: keyof Colours) => (text: string) => {
    const [on, off] = codes[name]
    return isOn && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
  }
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
    mark: paint('mark'),
  }
}

/**
 * A terminal is coloured unless `NO_COLOR` is not empty (https://no-color.org) or `TERM` is `dumb`. `FORCE_COLOR`
 * overrides this, also for pipes: `0` or `false` turns colours off, any other value on.
 */
export function isColourful(isTerminal: boolean, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR, NO_COLOR, TERM } = env
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return isTerminal && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb'
}
