/** The language of a text for `lang`, so that kanji get their Japanese forms. `undefined` where there is nothing to tell by. */
export function langOf(text: string): 'ja' | undefined {
  return /[\u3040-\u30ff\uff66-\uff9d]/.test(text) ? 'ja' : undefined
}
