import { segmentFault } from '../../core/path.ts'

/** Longer names, in characters, are in no path: a URI would be too long. */
const maxLength = 1024

/** What an escaped name begins with. */
const mark = 'U__'

/**
 * The segment of a path that stands for the name of a metric: the name itself, if it can be one. Else it is escaped as
 * Prometheus does it ("value encoding"): `U__`, then letters, digits and colons as they are, `__` for an underscore, and
 * `_2F_` for any other character, by its code point. No two names have one segment. `undefined`: no path can hold it.
 */
export function segmentOf(name: string): string | undefined {
  if (name === '' || name.length > maxLength || !name.isWellFormed()) return undefined
  if (!name.startsWith(mark) && segmentFault(name) === undefined) return name
  const escaped = Array.from(name, (character) => {
    if (/[A-Za-z0-9:]/.test(character)) return character
    return character === '_' ? '__' : `_${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}_`
  })
  return mark + escaped.join('')
}

/** The name that a segment stands for. `undefined`: it is the segment of no name. */
export function nameOf(segment: string): string | undefined {
  if (!segment.startsWith(mark)) return segmentOf(segment) === segment ? segment : undefined
  const name = segment
    .slice(mark.length)
    .replace(/__|_([0-9A-F]{1,6})_/g, (_, hex?: string) => (hex === undefined ? '_' : character(hex)))
  return segmentOf(name) === segment ? name : undefined
}

function character(hex: string): string {
  const code = Number.parseInt(hex, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}
