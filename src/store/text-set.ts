import type { TextSet } from './texts.ts'

/** Whether a set has the text of an id. */
export function isInSet({ first, bits }: Pick<TextSet, 'first' | 'bits'>, id: number): boolean {
  const place = id - first
  return place >= 0 && (((bits[place >> 3] ?? 0) >> (place & 7)) & 1) === 1
}
