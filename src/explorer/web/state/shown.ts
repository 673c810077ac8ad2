/**
 * Characters that do not show, or that change how others stand: controls, zero-width ones, those that turn the direction of text
 * (U+202A–U+202E, U+2066–U+2069), tags, in which a text could be hidden (U+E0000–U+E007F), letters that are blank, lone surrogates, and
 * variation selectors behind one another: one belongs to an emoji or a kanji, several hide a text. Joiners stay: scripts need them.
 */
const hidden =
  /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]|(?<=[\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu

/** Makes a text safe to draw: invisible characters and bidirectional controls are shown as their code points. */
export function shown(text: string): string {
  return text.replace(
    hidden,
    (character) => `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  )
}

/** The end of a text that is too long, because long addresses often share their beginning. */
export function tailOf(text: string, most: number): string {
  const characters = [...text]
  return shown(characters.length <= most ? text : `…${characters.slice(1 - most).join('')}`)
}

/** The language of a text for `lang`, so that kanji get their Japanese forms. `undefined` if it is unknown. */
export function langOf(text: string): 'ja' | undefined {
  return /[\u3040-\u30ff\uff66-\uff9d]/.test(text) ? 'ja' : undefined
}
