import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { createRecent } from '../../core/kit/lru.ts'
import type { Collection } from '../../store/store.ts'
import { nameOf, segmentOf } from './places.ts'
import { tagTerm } from './row.ts'

/** The existing tags. The store finds the rows with a tag; this finds the tags. */
export interface Tags {
  /** Notes that something with these tags is about to be written, which expires then. */
  note(tags: readonly string[], expires: number | undefined): Promise<void>
  /** The tags that something has, in path order of their segments. */
  list(query: { readonly after?: string; readonly prefix?: string }, signal: AbortSignal): AsyncGenerator<string>
}

/** Additional lifetime of a tag beyond that of its results, because clocks differ. */
const slack = 60_000
const attempts = 16
const pageSize = 100

/**
 * A row for each tag. It is written before any result with the tag, and expires no earlier than that. A tag may outlive its
 * results, so `list` checks whether a result has it.
 */
export function createTags(rows: Collection, records: Collection): Tags {
  /** The expiry time of each tag, as far as this process knows. Nothing removes a tag earlier. */
  const noted = createRecent<number>(1000)

  const noteOne = async (tag: string, until: number): Promise<void> => {
    if ((noted.get(tag) ?? 0) >= until) return
    const key = segmentOf(tag)
    const expires = until === Number.POSITIVE_INFINITY ? {} : { expires: until }
    for (let attempt = 0; attempt < attempts; attempt++) {
      const row = await rows.get(key)
      const kept = row === undefined ? 0 : (row.expires ?? Number.POSITIVE_INFINITY)
      const isNoted =
        kept >= until ||
        (await rows.put(
          { key, value: Buffer.from(tag), ...expires },
          row === undefined ? { absent: true } : { revision: row.revision },
        )) !== undefined
      if (isNoted) return noted.set(tag, Math.max(kept, until))
    }
    throw new ResourceError('unavailable', 'A tag is written by too many at once.', { reason: 'busy' })
  }

  return {
    note: async (tags, expires) => {
      for (const tag of tags) await noteOne(tag, expires === undefined ? Number.POSITIVE_INFINITY : expires + slack)
    },
    list: async function* ({ after, prefix = '' }, signal) {
      let from = after
      for (;;) {
        signal.throwIfAborted()
        const page = await rows.list({ prefix, limit: pageSize, ...defined({ after: from }) })
        for (const { key } of page) {
          signal.throwIfAborted()
          const tag = nameOf(key)
          if (tag !== undefined && (await records.list({ term: tagTerm(tag), limit: 1 })).length > 0) yield tag
        }
        from = page.at(-1)?.key
        if (page.length < pageSize) return
      }
    },
  }
}
