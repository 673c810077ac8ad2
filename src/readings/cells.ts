/** How the numbers of a spreadsheet are shown, as far as it changes what they mean: as dates, times and percentages. */

export type NumberKind = 'plain' | 'date' | 'duration' | 'percent'

/** Formats that every spreadsheet has under these numbers (ECMA-376, part 1, section 18.8.30; 27 to 58 are East Asian). */
const builtIn = (id: number): NumberKind => {
  if ((id >= 14 && id <= 22) || (id >= 27 && id <= 36) || id === 45 || id === 47 || (id >= 50 && id <= 58))
    return 'date'
  if (id === 46) return 'duration'
  return id === 9 || id === 10 ? 'percent' : 'plain'
}

/** Returns the kind of number that a number format shows. `code` is given for formats that the document defines itself. */
export function numberKindOf(id: number, code: string | undefined): NumberKind {
  if (code === undefined) return builtIn(id)
  // Quoted and escaped text, colours, locales and conditions do not count as format.
  const bare = code.slice(0, 300).replace(/"[^"]*"|\\.|_.|\*./g, '')
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'duration'
  const format = bare.replace(/\[[^\]]*\]/g, '').replace(/general/gi, '')
  // `e` is a year in Japan, and an exponent elsewhere.
  if (/[ymdhs]|g+e|ge|^e/i.test(format.replace(/e[+-]/gi, ''))) return 'date'
  return format.includes('%') ? 'percent' : 'plain'
}

/** A number as text: a date in ISO 8601, a duration in hours, and no digits that only binary fractions have. */
export function formatNumber(source: string, kind: NumberKind, since1904: boolean): string {
  const value = Number(source)
  if (source.trim() === '' || !Number.isFinite(value)) return source
  if (kind === 'percent') return `${tidy(value * 100)}%`
  if (kind === 'duration') return formatDuration(value)
  return kind === 'date' ? (formatDate(value, since1904) ?? tidy(value)) : tidy(value)
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(15)))
}

function formatDuration(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const two = (n: number) => String(Math.floor(n) % 60).padStart(2, '0')
  return `${days < 0 ? '-' : ''}${Math.floor(seconds / 3600)}:${two(seconds / 60)}:${two(seconds)}`
}

/** Day 1 is 1900-01-01, and day 60 is the 29 February that this year did not have; or day 0 is 1904-01-01. */
function formatDate(days: number, since1904: boolean): string | undefined {
  if (days < 0 || days >= 2_958_466) return undefined
  const seconds = Math.round(days * 86_400)
  const epoch = since1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
  const iso = new Date(epoch + seconds * 1000).toISOString()
  const time = iso.slice(11, iso.slice(17, 19) === '00' ? 16 : 19)
  if (days < 1) return time
  return seconds % 86_400 === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}

/** The index of a column, from 0, by a reference such as `AB12`; `undefined` beyond the last that there can be. */
export function columnOf(reference: string): number | undefined {
  const letters = /^\$?([A-Z]{1,3})/.exec(reference)?.[1]
  if (letters === undefined) return undefined
  const index = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  return index < 16_384 ? index : undefined
}
