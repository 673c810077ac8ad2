/** A range of bytes: from `start`, up to but not including `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Parses the header `Range` (RFC 9110, section 14.2) for a body of `length` bytes. Undefined when there is none that is understood:
 * another unit, a malformed header, or several ranges; then the whole is sent. `unsatisfiable`: it begins after the end.
 */
export function rangeOf(header: string | undefined, length: number): Span | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '')
    return Number(last) === 0 ? 'unsatisfiable' : { start: Math.max(0, length - Number(last)), end: length }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= length) return 'unsatisfiable'
  return { start, end: last === '' ? length : Math.min(length, Number(last) + 1) }
}

/** Whether an entity tag is in a list of tags, as `If-None-Match` has it (RFC 9110, section 13.1.2): compared weakly. */
export function matchesTag(list: string | undefined, etag: string | undefined): boolean {
  if (list === undefined || etag === undefined) return false
  return list.trim() === '*' || list.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
