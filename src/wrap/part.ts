import { invalid, type ResourceError } from '../core/errors.ts'
import { metaKeys } from '../core/meta.ts'
import type { ContentFacts, Params, ReadRequest } from '../core/provider.ts'

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
  /** Size of the whole resource, in bytes, if it is known. */
  readonly size?: number
  /** Number of lines of the whole resource, if its end was reached. */
  readonly lines?: number
  /** The query of the URI of the next part, if there is one. */
  readonly next?: string
}

/** The key of {@link PartFacts} in `_meta`. */
export const partKey = metaKeys.part

const example = {
  lines: 'lines=10-40 (from line 10 to line 40), lines=10- or lines=10',
  bytes: 'bytes=0-4095, bytes=4096- or bytes=0',
}

/**
 * Returns the part that the parameters request, and the remaining parameters.
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

/** Returns the parameter that requests `count` lines or bytes from `first` on; without a count, all of them. */
export function formatPart(unit: 'lines' | 'bytes', first: number, count: number | undefined): string {
  return `${unit}=${first}-${count === undefined ? '' : first + count - 1}`
}

/** Returns the error for a wrong range. The message shows the right form. */
export function badRange(message: string, detail: Readonly<Record<string, number>> = {}): ResourceError {
  return invalid(message, 'range', detail)
}

/** Facts about the end of a text in its `_meta`. */
export interface TailFacts {
  /** Number of lines: less than requested if there are no more, or if an answer can hold no more. */
  readonly lines: number
  /** Whether there are lines before it. */
  readonly earlier: boolean
  /**
   * Set if the last line does not end in a newline. `left-out`: the file was written to just now, so the line may be incomplete.
   * `shown`: it was not.
   */
  readonly unfinished?: 'left-out' | 'shown'
}

/** The key of {@link TailFacts} in `_meta`. */
export const tailKey = 'dev.hikidashi/tail'

const name = 'tail'

/** Maximum number of lines of a request. */
export const mostLines = 100_000

/**
 * Returns the number of last lines that the parameters request; undefined if they request none. Throws ResourceError `invalid`
 * (reason `tail`).
 */
export function tailIn(params: Params): number | undefined {
  const text = params.get(name)
  if (text === undefined) return undefined
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > mostLines) throw badTail(`A tail is a number of lines from 1 to ${mostLines}: ?tail=200.`)
  return count
}

export function badTail(message: string): ResourceError {
  return invalid(message, 'tail')
}

/** Returns the request for the whole resource, instead of a part or the end of it. */
export function withoutTail({ path, params }: ReadRequest): ReadRequest {
  if (!params.has(name)) return { path, params }
  return { path, params: new Map([...params].filter(([key]) => key !== name)) }
}

/** Removes byte offsets and sizes from facts, because they differ in another encoding. */
export function placeless({ range, size, meta, ...facts }: ContentFacts): ContentFacts {
  const kept = Object.entries(meta ?? {}).filter(([key]) => key !== partKey)
  return { ...facts, meta: Object.fromEntries(kept) }
}
