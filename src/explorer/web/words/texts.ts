import { signal } from '@preact/signals'

export type Language = 'en' | 'ja'

/** The language of the page: the one that the user chose, else the one that the browser prefers. */
export const language = signal<Language>(globalThis.navigator?.language.startsWith('ja') ? 'ja' : 'en')

/**
 * Values for the placeholders of a sentence: `{name}` inserts a value; `{name:file|files}` inserts the first word for 1 and the second for
 * every other number.
 */
type Values = Readonly<Record<string, string | number>>

/**
 * Returns a function that formats the texts of one part of the page in the current language. It reads the language signal, so a
 * component that calls it is rendered again when the user chooses another language.
 */
export function createWords<Key extends string>(
  words: Readonly<Record<Key, readonly [en: string, ja: string]>>,
): (key: Key, values?: Values) => string {
  return (key, values = {}) => {
    const sentence = words[key][language.value === 'ja' ? 1 : 0]
    return sentence.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
      const value = values[name]
      if (one !== undefined && many !== undefined) return value === 1 ? one : many
      return typeof value === 'number' ? formatNumber(value) : (value ?? whole)
    })
  }
}

const formatters = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>()

/** Returns a formatter, cached by kind and language, because creating one takes longer than drawing a row. */
function reuseFormatter<T extends Intl.NumberFormat | Intl.DateTimeFormat>(
  kind: string,
  make: (code: Language) => T,
): T {
  const key = `${language.value} ${kind}`
  const formatter = formatters.get(key) ?? make(language.value)
  formatters.set(key, formatter)
  return formatter as T
}

export function formatNumber(value: number): string {
  return reuseFormatter('number', (code) => new Intl.NumberFormat(code)).format(value)
}

const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

export function formatSize(bytes: number): string {
  let value = bytes
  let at = 0
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000
    at += 1
  }
  const unit = units[at] ?? 'byte'
  const maximumFractionDigits = at > 0 && value < 10 ? 1 : 0
  const unitDisplay = unit === 'byte' ? 'long' : 'short'
  return reuseFormatter(
    `${unit} ${maximumFractionDigits}`,
    (code) => new Intl.NumberFormat(code, { style: 'unit', unit, unitDisplay, maximumFractionDigits }),
  ).format(value)
}

export function formatTime(time: number): string {
  return reuseFormatter(
    'time',
    (code) => new Intl.DateTimeFormat(code, { dateStyle: 'medium', timeStyle: 'short' }),
  ).format(time)
}

/** A short time: the day, and within the last week the hour too. */
export function formatShortTime(time: number, now: number): string {
  if (time > now || now - time >= 7 * 86_400_000) return formatDay(time)
  const parts = { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' } as const
  return reuseFormatter('hour', (code) => new Intl.DateTimeFormat(code, parts)).format(time)
}

export function formatDay(time: number): string {
  return reuseFormatter('day', (code) => new Intl.DateTimeFormat(code, { dateStyle: 'medium' })).format(time)
}

/**
 * Characters that are invisible or change the direction of others: controls, zero-width characters, bidirectional controls
 * (U+202A–U+202E, U+2066–U+2069), tags, which can hide a text (U+E0000–U+E007F), blank letters and lone surrogates. Of variation
 * selectors in a row, which can hide a text too, all but the first. Joiners are allowed, because some scripts need them.
 */
const hiddenCharacters =
  /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]|(?<=[\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu

/** Makes a text safe to draw: invisible characters and bidirectional controls are shown as their code points. */
export function escapeInvisible(text: string): string {
  return text.replace(
    hiddenCharacters,
    (character) => `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  )
}

/** Returns the end of a text, at most `most` characters, with {@link escapeInvisible}. Long addresses often share their beginning. */
export function truncateStart(text: string, most: number): string {
  const characters = [...text]
  return escapeInvisible(characters.length <= most ? text : `…${characters.slice(1 - most).join('')}`)
}

/** The language of a text for `lang`, so that kanji get their Japanese forms. `undefined`: the text has no kana. */
export function langOf(text: string): 'ja' | undefined {
  return /[\u3040-\u30ff\uff66-\uff9d]/.test(text) ? 'ja' : undefined
}
