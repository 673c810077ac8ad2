import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { createRecent } from '../../core/kit/lru.ts'
import type { Collection } from '../../store/store.ts'
import { nameOf, segmentOf } from './places.ts'
import { tagTerm } from './row.ts'

/** Which tags there are. The store finds what has a tag; this finds the tags. */
export interface Tags {
  /** Notes that something with these tags is about to be written, which expires then. */
  note(tags: readonly string[], expires: number | undefined): Promise<void>
  /** The tags that something has, in path order of their segments. */
  list(query: { readonly after?: string; readonly prefix?: string }, signal: AbortSignal): AsyncGenerator<string>
}

/** A tag is kept for so much longer than what has it: clocks differ. */
const slack = 60_000
const attempts = 16
const pageSize = 100

/**
 * A row for each tag, which is there before anything that has the tag and no shorter than it. Of what has been evicted a tag may
 * stay behind: `list` looks whether anything has it.
 */
export function createTags(rows: Collection, records: Collection): Tags {
  /** Until when each tag is kept, as far as this process knows. Nothing takes one away before. */
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
