import { randomBytes } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { LazyStore } from '../providers/mount-settings.ts'
import type { Search } from '../providers/search/index.ts'
import { type Deferred, deferred } from '../wrap/deferred.ts'

/** A search that is opened at its first use, as {@link deferred} does it. Feeding it begins once it is open. */
export function deferredSearch(open: () => Promise<Search>, log: Log): Search & Deferred<Search> {
  let isFed = false
  const opening = async () => {
    const provider = await open()
    if (isFed) provider.feed()
    return provider
  }
  const provider = deferred(opening, { abilities: { watch: false, prompts: false, sees: false }, log })
  return {
    ...provider,
    feed: () => {
      isFed = true
      provider.open().then(
        (search) => search.feed(),
        () => {},
      )
    },
    feedStatus: async () => (await provider.open()).feedStatus(),
    currentAt: async () => (await provider.open()).currentAt(),
  }
}

/**
 * Returns a key that is made once and kept in the store. Returns `undefined` if the store does not answer; then this run uses
 * another key.
 */
export async function keptKey(store: LazyStore): Promise<Uint8Array | undefined> {
  try {
    const keys = (await store.open()).collection('keys')
    const made = await keys.put({ key: 'versions', value: randomBytes(32) }, { absent: true })
    return (made ?? (await keys.get('versions')))?.value
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return undefined
    throw error
  }
}
