import { ResourceError } from '../errors.ts'

const groupsKey = Symbol('groups')

/**
 * Entries that can also be taken in groups. An entry passes several asynchronous generators on its way from a source to a list,
 * and each step costs time: in groups of 64 that cost is negligible.
 */
interface Grouped<T> extends AsyncIterable<T> {
  readonly [groupsKey]: () => AsyncIterator<readonly T[], void>
}

/**
 * Creates an iterable of the items of all groups, one by one. {@link groupsOf} takes the groups themselves.
 *
 * @param groups Begins the iteration.
 * @param signal Checked before each item except the first of a group. Once it has aborted, its reason is thrown.
 */
export function inGroups<T>(groups: () => AsyncGenerator<readonly T[], void>, signal?: AbortSignal): AsyncIterable<T> {
  const grouped: Grouped<T> = {
    [groupsKey]: groups,
    async *[Symbol.asyncIterator]() {
      for await (const group of groups())
        for (const [at, item] of group.entries()) {
          if (at > 0) signal?.throwIfAborted()
          yield item
        }
    },
  }
  return grouped
}

/** Returns the groups of an iterable that has groups, and else groups of one item. */
export function groupsOf<T>(items: AsyncIterable<T>): AsyncIterator<readonly T[], void> {
  if (isGrouped(items)) return items[groupsKey]()
  const iterator = items[Symbol.asyncIterator]()
  return {
    next: async () => {
      const { done, value } = await iterator.next()
      return done === true ? { done, value: undefined } : { done: false, value: [value] }
    },
    return: async () => {
      await iterator.return?.()
      return { done: true, value: undefined }
    },
  }
}

/** Returns what `change` makes of each item, in the same groups; an item for which it returns undefined is left out. */
export function mapped<T, U>(items: AsyncIterable<T>, change: (item: T) => U | undefined): AsyncIterable<U> {
  return inGroups(async function* () {
    for await (const group of eachGroup(items)) {
      const changed: U[] = []
      for (const item of group) {
        const one = change(item)
        if (one !== undefined) changed.push(one)
      }
      if (changed.length > 0) yield changed
    }
  })
}

/** {@link groupsOf} for a loop. */
export function eachGroup<T>(items: AsyncIterable<T>): AsyncIterable<readonly T[]> {
  return { [Symbol.asyncIterator]: () => groupsOf(items) }
}

function isGrouped<T>(items: AsyncIterable<T>): items is Grouped<T> {
  return groupsKey in items
}

interface PagesOptions {
  /** Maximum number of pages. Without it, the same cursor twice ends the listing: a faulty server would be asked for ever. */
  readonly maxPages?: number
  /** Whether the same cursor twice is an error, or only the end. Default `throw`. */
  readonly repeated?: 'throw' | 'end'
}

/**
 * The pages of a listing, one after the other.
 *
 * @throws ResourceError `internal` if the server gives the same cursor twice, unless `maxPages` or `repeated` says otherwise.
 */
export async function* pagesOf<Page extends { readonly nextCursor?: string }>(
  fetch: (query: { readonly cursor?: string }) => Promise<Page>,
  { maxPages, repeated = 'throw' }: PagesOptions = {},
): AsyncGenerator<Page> {
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; pages < (maxPages ?? Number.POSITIVE_INFINITY); pages++) {
    const page = await fetch(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor === undefined) return
    if (maxPages === undefined && seen.has(cursor)) {
      if (repeated === 'end') return
      throw new ResourceError('internal', 'The server gave the same cursor twice.')
    }
    seen.add(cursor)
  }
}
