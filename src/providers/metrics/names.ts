import { segmentFault } from '../../core/path.ts'

/** Maximum length of a name in a path, in characters: a longer URI would be too long. */
const maxLength = 1024

/** Prefix of an escaped name. */
const mark = 'U__'

/**
 * Returns the path segment for the name of a metric: the name itself, if it is a valid segment. Otherwise it is escaped as in Prometheus
 * ("value encoding"): `U__`, then letters, digits and colons as they are, `__` for an underscore, and `_2F_` for any other character, by its
 * code point. The mapping is injective. Undefined: no path can hold the name.
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

/** Returns the name for a segment. Undefined: the segment is not valid for any name. */
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
