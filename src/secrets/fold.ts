import { patternOf } from '../core/pattern.ts'

/** Letters of other scripts that look like these of ASCII, in lower case. Full-width forms are found by their code. */
const lookalikes: Readonly<Record<string, string>> = {
  a: 'аαɑᴀ',
  b: 'ьЬʙ',
  c: 'сϲᴄ',
  d: 'ԁɗ',
  e: 'еєεҽ',
  g: 'ɡց',
  h: 'һհ',
  i: 'іιıɩ',
  j: 'јϳ',
  k: 'кκҟ',
  l: 'ӏⅼ',
  m: 'мᴍ',
  n: 'пոη',
  o: 'оοօᴏ',
  p: 'рρ',
  q: 'ԛզ',
  r: 'гᴦ',
  s: 'ѕꜱſ',
  t: 'тτᴛ',
  u: 'υսцᴜ',
  v: 'ѵνᴠ',
  w: 'ԝωᴡ',
  x: 'хχ',
  y: 'уγү',
  z: 'ᴢ',
}

const plainOf = new Map(
  Object.entries(lookalikes).flatMap(([plain, others]) => Array.from(others, (other) => [other, plain] as const)),
)

/** Zero-width characters: they split words for a program but not for a reader. */
export const unseen =
  /[\u00ad\u061c\u115f\u1160\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u034f\u180b-\u180f\ufe00-\ufe0f]/g

/** A full-width form of ASCII (U+FF01 to U+FF5E) as ASCII; any other character as it is. */
export function narrow(text: string): string {
  return text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
}

const marks = patternOf(String.raw`\p{M}`, 'gu')

/**
 * Folds a name to the form that its reader sees: full-width forms and look-alike letters become Latin letters, and marks and
 * invisible characters are removed. The case stays. Of a name of more than 256 characters, only the two ends count.
 */
export function foldName(name: string): string {
  const start = name.length > 256 ? `${name.slice(0, 128)}${name.slice(-128)}` : name
  if (/^[\x20-\x7e]*$/.test(start)) return start
  const plain = narrow(start).normalize('NFKD').replace(marks(), '').replace(unseen, '')
  return Array.from(plain, (character) => {
    const lower = character.toLowerCase()
    const found = plainOf.get(character) ?? plainOf.get(lower)
    return found === undefined ? character : lower === character ? found : found.toUpperCase()
  }).join('')
}

const digits: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '@': 'a',
  $: 's',
  '!': 'i',
}

/** A name in which digits and signs that stand for letters (`p4ssw0rd`, `$ecret`) are replaced by these letters. */
export function foldDigits(name: string): string {
  return name.replace(/[0134578@$!]/g, (sign) => digits[sign] ?? sign)
}
