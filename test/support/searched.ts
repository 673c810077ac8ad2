import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import {
  type FoundQuery,
  findSearchMounts,
  parseSearchAnswer,
  type SearchAnswer,
} from '../../src/core/search-answer.ts'
import type { View } from '../../src/core/view.ts'
import { search } from '../../src/providers/search/index.ts'
import type { SearchIndex } from '../../src/search/search-index.ts'
import type { Store } from '../../src/store/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type MemoryEntry, memory } from './memory.ts'
import { memoryIndex } from './memory-index.ts'

export const boss: Principal = { id: 'boss', roles: ['boss'] }
export const guest: Principal = { id: 'guest', roles: ['guest'] }
export const address = 'memory://docs'

export interface World {
  readonly entries: Readonly<Record<string, MemoryEntry>>
  /** Globs of what a guest may see. By default everything. */
  readonly shown?: readonly string[]
  /** The indexed entries, if they differ from those of the source. */
  readonly indexed?: Readonly<Record<string, MemoryEntry>>
  readonly index?: SearchIndex
}

/** Opens a catalog with a complete search index over one mount. */
export async function openSearched(store: Store, { entries, shown, indexed = entries, index = memoryIndex() }: World) {
  const access = compileAccess([
    { allow: ['boss'] },
    ...(shown === undefined ? [] : [{ allow: ['guest'], match: shown }]),
  ])
  const catalog = createCatalog({
    mounts: [
      { address, provider: sliced(memory(entries)), ...(shown === undefined ? {} : { access }) },
      {
        address: 'search://all',
        provider: search({
          index,
          store,
          name: 'unit',
          mounts: () => {
            const mount = catalog.reader(address)
            return mount === undefined ? [] : [{ mount, way: '' }]
          },
        }),
      },
    ],
    secret: Buffer.alloc(32),
  })
  const documents = Object.entries(indexed).map(([path, { text = '', bytes: _, ...facts }]) => ({
    uri: catalog.reader(address)?.uriOf(path) ?? '',
    mount: address,
    version: '1',
    text,
    ...facts,
  }))
  await index.put(documents)
  return catalog
}

export async function find(view: View, query: FoundQuery): Promise<SearchAnswer> {
  const [place] = findSearchMounts((await view.templates()).items)
  const { contents } = await view.read(place?.uriOf(query) ?? '')
  const [content] = contents
  const found = content !== undefined && 'text' in content ? parseSearchAnswer(content.text) : undefined
  if (found === undefined) throw new Error('this is no answer')
  return found
}

export const hitsOf = async (view: View, query: FoundQuery) => (await find(view, query)).hits.map(({ uri }) => uri)
export const refusal = (view: View, uri: string) =>
  view.read(uri).then(String, (error: { message: string }) => error.message)
