/** The language of a text for `lang`, so that kanji get their Japanese forms. `undefined` if it is unknown. */
export function langOf(text: string): 'ja' | undefined {
  return /[\u3040-\u30ff\uff66-\uff9d]/.test(text) ? 'ja' : undefined
}
