import { format } from 'numfmt'

/** Effect of a number format of a spreadsheet: a number in a pattern, a date, a duration, or the number as it is. */
export type NumberKind = 'plain' | 'date' | 'duration' | { readonly pattern: string }

/** Maximum length of a pattern. Excel allows 255 characters. */
const maxPattern = 300

/** Patterns of built-in number formats (ECMA-376, part 1, section 18.8.30; 59 to 70 are Thai), without currency signs and colours. */
const builtInPatterns: Readonly<Record<number, string>> = {
  1: '0',
  2: '0.00',
  3: '#,##0',
  4: '#,##0.00',
  5: '#,##0;-#,##0',
  6: '#,##0;-#,##0',
  7: '#,##0.00;-#,##0.00',
  8: '#,##0.00;-#,##0.00',
  9: '0%',
  10: '0.00%',
  12: '# ?/?',
  13: '# ??/??',
  37: '#,##0;(#,##0)',
  38: '#,##0;(#,##0)',
  39: '#,##0.00;(#,##0.00)',
  40: '#,##0.00;(#,##0.00)',
  41: '#,##0;(#,##0);"-"',
  42: '#,##0;(#,##0);"-"',
  43: '#,##0.00;(#,##0.00);"-"',
  44: '#,##0.00;(#,##0.00);"-"',
  59: '0',
  60: '0.00',
  61: '#,##0',
  62: '#,##0.00',
  67: '0%',
  68: '0.00%',
  69: '# ?/?',
  70: '# ??/??',
}

/** Returns the kind of a built-in format. 27 to 36 and 50 to 58 are East Asian dates, 71 to 78, 80 and 81 Thai dates. */
function builtIn(id: number): NumberKind {
  if (id === 46 || id === 79) return 'duration'
  const isDate =
    (id >= 14 && id <= 22) ||
    (id >= 27 && id <= 36) ||
    id === 45 ||
    id === 47 ||
    (id >= 50 && id <= 58) ||
    (id >= 71 && id <= 81)
  if (isDate) return 'date'
  const pattern = builtInPatterns[id]
  return pattern === undefined ? 'plain' : { pattern }
}

/** Returns the kind of number that a number format shows. `code` is given for formats that the document defines itself. */
export function numberKindOf(id: number, code: string | undefined): NumberKind {
  if (code === undefined) return builtIn(id)
  const bare = code.slice(0, maxPattern).replace(/"[^"]*"|\\.|_.|\*./g, '')
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'duration'
  const digits = bare.replace(/\[[^\]]*\]/g, '').replace(/general|標準/gi, '')
  // `e` is a year in Japanese formats, and before a sign an exponent.
  if (/[ymdhs]|g+e|ge|^e/i.test(digits.replace(/e[+-]/gi, ''))) return 'date'
  if (code.length > maxPattern || /e[+-]/i.test(digits)) return 'plain'
  const pattern = code.replace(/\[\$([^\]-]*)(?:-[^\]]*)?\]/g, (_, sign: string) => (sign === '' ? '' : `"${sign}"`))
  return /^\s*(?:general|@|g\/標準)?\s*$/i.test(pattern) ? 'plain' : { pattern }
}

/**
 * Formats a number as the sheet shows it, except that a date is in ISO 8601 and a duration in hours. If the pattern shows nothing or is
 * unknown, the number itself is returned, as is a source that is no number.
 */
export function formatNumber(source: string, kind: NumberKind, since1904: boolean): string {
  const value = Number(source)
  if (source.trim() === '' || !Number.isFinite(value)) return source
  if (kind === 'plain') return tidy(value)
  if (kind === 'duration') return formatDuration(value)
  if (kind === 'date') return formatDate(value, since1904) ?? tidy(value)
  // Remove the spaces that a pattern reserves to align digits.
  const text =
    formatPattern(kind.pattern, Number(value.toPrecision(15)))
      ?.replace(/ +/g, ' ')
      .trim() ?? ''
  return text === '' ? tidy(value) : text
}

/** Returns a text as the sheet shows it: a pattern may have words around the `@` that stands for the text. */
export function formatCellText(text: string, kind: NumberKind): string {
  if (typeof kind !== 'object' || !kind.pattern.includes('@')) return text
  return formatPattern(kind.pattern, text) ?? text
}

function formatPattern(pattern: string, value: number | string): string | undefined {
  try {
    return format(pattern, value)
  } catch {
    return undefined
  }
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(15)))
}

function formatDuration(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const two = (n: number) => String(Math.floor(n) % 60).padStart(2, '0')
  return `${days < 0 ? '-' : ''}${Math.floor(seconds / 3600)}:${two(seconds / 60)}:${two(seconds)}`
}

/**
 * Converts the number of a day to a date in ISO 8601, or below 1 to a time; `undefined` below 0 and from 2,958,466 on. With `since1904`,
 * day 0 is 1904-01-01. Otherwise day 1 is 1900-01-01. Spreadsheets count a 29 February 1900 as day 60: it becomes the 28th.
 */
function formatDate(days: number, since1904: boolean): string | undefined {
  if (days < 0 || days >= (since1904 ? 2_957_004 : 2_958_466)) return undefined
  const seconds = Math.round(days * 86_400)
  const epoch = since1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
  const iso = new Date(epoch + seconds * 1000).toISOString()
  const time = iso.slice(11, iso.slice(17, 19) === '00' ? 16 : 19)
  if (days < 1) return time
  return seconds % 86_400 === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}
