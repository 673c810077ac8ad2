import { patternOf } from '../../core/pattern.ts'

/** Code points that take two columns in a terminal: East Asian wide and full-width (UAX #11), and emoji. */
const wide = patternOf(
  String.raw`[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}`,
  'u',
)
/** Code points that take none: combining marks, joiners, the second and third part of a Hangul syllable. */
const none = patternOf(String.raw`[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]`, 'u')
/** Colours of the skin, drawn in the emoji before them. */
const modifier = patternOf(String.raw`\p{Emoji_Modifier}`, 'u')
const joiner = 0x200d
const emojiStyle = 0xfe0f

/** How many columns a text takes in a terminal. It holds no control characters. */
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

/** A text filled up with spaces to a width; one that is wider stays as it is. */
export function padDisplay(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'left' ? text + space : space + text
}
