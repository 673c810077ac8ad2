import { invalid, type ResourceError } from '../core/errors.ts'
import { metaKeys } from '../core/meta.ts'
import type { Params } from '../core/provider.ts'

/** A part of a resource as a client asks for it: lines from 1, bytes from 0. `last` is in it; without it, to the end. */
export interface PartQuery {
  readonly unit: 'lines' | 'bytes'
  readonly first: number
  readonly last: number | undefined
}

/** Facts about a part in its `_meta`: its range, the total, and how to request the next part. */
export interface PartFacts {
  readonly unit: 'lines' | 'bytes'
  readonly first: number
  readonly last: number
  /** The bytes of the whole resource, where that is known. */
  readonly size?: number
  /** The lines of the whole resource, where its end was reached. */
  readonly lines?: number
  /** The query of the URI of what follows, where something does. */
  readonly next?: string
}

/** The key of {@link PartFacts} in `_meta`. */
export const partKey = metaKeys.part

const example = {
  lines: 'lines=10-40 (from line 10 to line 40), lines=10- or lines=10',
  bytes: 'bytes=0-4095, bytes=4096- or bytes=0',
}

/**
 * The part that the parameters ask for, and the parameters that are left.
 *
 * @throws ResourceError `invalid` (reason `range`) for a malformed part, or two of them.
 */
export function partIn(params: Params): { readonly part: PartQuery | undefined; readonly others: Params } {
  const lines = params.get('lines')
  const bytes = params.get('bytes')
  if (lines === undefined && bytes === undefined) return { part: undefined, others: params }
  if (lines !== undefined && bytes !== undefined)
    throw badRange(`Ask for lines or for bytes, not for both: ?${example.lines}; or ?${example.bytes}.`)
  const others = new Map(params)
  others.delete('lines')
  others.delete('bytes')
  const part = lines === undefined ? parse('bytes', bytes ?? '') : parse('lines', lines)
  return { part, others }
}

function parse(unit: 'lines' | 'bytes', text: string): PartQuery {
  const match = /^(\d{1,15})(-(\d{1,15})?)?$/.exec(text)
  const first = Number(match?.[1])
  const last = match?.[2] === undefined ? first : match[3] === undefined ? undefined : Number(match[3])
  if (match === null) throw badRange(`This is no range of ${unit}. Write ?${example[unit]}.`)
  if (unit === 'lines' && first === 0) throw badRange(`Lines are counted from 1. Write ?${example.lines}.`)
  if (last !== undefined && last < first)
    throw badRange(`The range of ${unit} ends before it begins. Write ?${example[unit]}.`)
  return { unit, first, last }
}

/** How a client asks for the `count` lines or bytes from `first` on; without a count, for all of them. */
export function formatPart(unit: 'lines' | 'bytes', first: number, count: number | undefined): string {
  return `${unit}=${first}-${count === undefined ? '' : first + count - 1}`
}

/** Returns the error for a wrong range. The message shows the right form. */
export function badRange(message: string, detail: Readonly<Record<string, number>> = {}): ResourceError {
  return invalid(message, 'range', detail)
}
