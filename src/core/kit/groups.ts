import { ResourceError } from '../errors.ts'

const groupsKey = Symbol('groups')

/**
 * An iterable of items that can also be iterated in groups, because a step through an asynchronous generator for each
 * item costs time.
 */
interface Grouped<T> extends AsyncIterable<T> {
  readonly [groupsKey]: () => AsyncIterator<readonly T[], void>
}

/**
 * Creates an iterable of the items of all groups. {@link iterateGroups} returns the groups themselves.
 * @param signal Checked before each item except the first of a group. Once it has aborted, its reason is thrown.
 */
export function createGroupedIterable<T>(
  groups: () => AsyncGenerator<readonly T[], void>,
  signal?: AbortSignal,
): AsyncIterable<T> {
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

/** Iterates the groups of an iterable. In an iterable without groups, each item is a group of its own. */
export function iterateGroups<T>(items: AsyncIterable<T>): AsyncIterator<readonly T[], void> {
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

/** Keeps the groups. Items for which `change` returns undefined are left out. */
export function mapGroups<T, U>(items: AsyncIterable<T>, change: (item: T) => U | undefined): AsyncIterable<U> {
  return createGroupedIterable(async function* () {
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

/** Returns the groups of an iterable, like {@link iterateGroups}, but in a form that `for await` accepts. */
export function eachGroup<T>(items: AsyncIterable<T>): AsyncIterable<readonly T[]> {
  return { [Symbol.asyncIterator]: () => iterateGroups(items) }
}

function isGrouped<T>(items: AsyncIterable<T>): items is Grouped<T> {
  return groupsKey in items
}

interface PagesOptions {
  /** Maximum number of pages. With it, repeated cursors are not detected. */
  readonly maxPages?: number
  /** Whether a cursor that the server gives a second time is an error, or only the end of the listing. Default `throw`. */
  readonly repeated?: 'throw' | 'end'
}

/**
 * @throws ResourceError `internal` if the server gives the same cursor twice, unless `maxPages` or `repeated` says
 * otherwise.
 */
export async function* iteratePages<Page extends { readonly nextCursor?: string }>(
  fetch: (query: { readonly cursor?: string }) => Promise<Page>,
  { maxPages, repeated = 'throw' }: PagesOptions = {},
): AsyncGenerator<Page> {
  const uris = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; pages < (maxPages ?? Number.POSITIVE_INFINITY); pages++) {
    const page = await fetch(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor === undefined) return
    if (maxPages === undefined && uris.has(cursor)) {
      if (repeated === 'end') return
      throw new ResourceError('internal', 'The server gave the same cursor twice.')
    }
    uris.add(cursor)
  }
}
