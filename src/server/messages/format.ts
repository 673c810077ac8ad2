/** ISO 8601 has the years 0 to 9999 without a sign; clients accept no others. In milliseconds since 1970. */
const [firstMs, lastMs] = [-62_167_219_200_000, 253_402_300_799_999]
const dayMs = 86_400_000

/** Whether a time, in milliseconds since 1970 (UTC), can be sent. */
export function isTime(time: number | undefined): time is number {
  return time !== undefined && time >= firstMs && time <= lastMs
}

let day = Number.NaN
/** The date of `day`, with the `T` after it. */
let date = ''

/**
 * Returns what `new Date(time).toISOString()` does, in a fifth of its time (0.6 µs): the files of a page often have few dates.
 *
 * @param time A time for which {@link isTime} is true.
 */
export function formatTime(time: number): string {
  const ms = Math.trunc(time)
  const now = Math.floor(ms / dayMs)
  if (now !== day) {
    date = new Date(now * dayMs).toISOString().slice(0, 11)
    day = now
  }
  const rest = ms - now * dayMs
  const seconds = Math.floor(rest / 1000)
  const minutes = Math.floor(seconds / 60)
  return `${date}${pairs[Math.floor(minutes / 60)]}:${pairs[minutes % 60]}:${pairs[seconds % 60]}.${threes(rest % 1000)}Z`
}

const pairs = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))

function threes(n: number): string {
  return n < 10 ? `00${n}` : n < 100 ? `0${n}` : String(n)
}

/** Escapes a character as JavaScript does: `\\u202e`. */
function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')
}

/**
 * Returns a text for one line: control characters, and those that change the direction of text or are invisible, are escaped, so
 * that no name can forge a line or control a terminal.
 */
export function printable(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu, escaped)
}
