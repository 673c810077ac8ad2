import { invalid, type ResourceError } from '../core/errors.ts'
import type { ContentFacts, Params, ReadRequest } from '../core/provider.ts'
import { partKey } from './part.ts'

/** Facts about the end of a text in its `_meta`. */
export interface TailFacts {
  /** How many lines it has: less than were asked for where there are no more, or no more are answered at once. */
  readonly lines: number
  /** Whether there are lines before it. */
  readonly earlier: boolean
  /**
   * Present where the last line does not end in a newline. `left-out`: the file was written to just now, so that the line may
   * be written in half. `shown`: it was not.
   */
  readonly unfinished?: 'left-out' | 'shown'
}

/** The key of {@link TailFacts} in `_meta`. */
export const tailKey = 'dev.hikidashi/tail'

const name = 'tail'

/** How many lines can be asked for. */
export const mostLines = 100_000

/** How many of the last lines the parameters ask for, if they do. Throws ResourceError `invalid` (reason `tail`). */
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

/** The request for the whole resource, instead of a part or the end of it. */
export function withoutTail({ path, params }: ReadRequest): ReadRequest {
  if (!params.has(name)) return { path, params }
  return { path, params: new Map([...params].filter(([key]) => key !== name)) }
}

/** Facts without places in bytes, which are others in another encoding. */
export function placeless({ range, size, meta, ...facts }: ContentFacts): ContentFacts {
  const kept = Object.entries(meta ?? {}).filter(([key]) => key !== partKey)
  return { ...facts, meta: Object.fromEntries(kept) }
}
