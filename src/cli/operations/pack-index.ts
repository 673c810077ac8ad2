import { searchesOf } from '../../config/searches.ts'
import type { Catalog } from '../../core/catalog.ts'
import type { Io } from '../terminal/io.ts'
import { createIndexing } from './indexing.ts'

/** Waits until what is searched is indexed: what is not is looked through in a way that takes longer and finds less. */
export async function waitForIndexes(catalog: Catalog, io: Io): Promise<void> {
  for (const { provider } of searchesOf(catalog)) {
    provider.feed()
    await createIndexing(io).wait(() => provider.feedStatus())
  }
}
