import { expect, test } from 'vitest'
import { assemble } from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { foundMimeType, searchStatusMimeType } from '../../src/core/search-answer.ts'
import type { View } from '../../src/core/view.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'

const cache = { ttlMs: 0, scope: 'private' } as const
const base = { budget: 4000, now: Date.parse('2026-01-31T00:00:00Z') }

/** Two mounts, and a search over the first one that finds these URIs. `reads`: what was read. */
function searched(
  inside: Readonly<Record<string, string | MemoryEntry>>,
  outside: Readonly<Record<string, string | MemoryEntry>>,
  finds: readonly string[],
): { readonly view: View; readonly reads: readonly string[] } {
  const mounts = [
    { address: 'memory://files', provider: memory(inside) },
    { address: 'memory://history', provider: memory(outside) },
  ]
  const inner = createCatalog({ mounts }).view({ id: 'ada', roles: [] })
  const reads: string[] = []
  const status = JSON.stringify({ indexing: 'idle', mounts: [{ address: 'memory://files', state: 'current' }] })
  const hits = finds.map((document, place) => ({
    ...{ uri: document, document, mount: 'memory://files', lines: { start: 1, end: 1 }, score: 1 / (place + 1) },
    snippet: { text: '', marks: [] },
  }))
  const view: View = {
    ...inner,
    templates: async () => ({
      items: [{ uriTemplate: 'search://all{?q,limit,audience}', name: 'Search', mimeType: foundMimeType }],
      cache,
    }),
    read: async (uri, options) => {
      if (uri.startsWith('search://all/status'))
        return { contents: [{ uri, mimeType: searchStatusMimeType, text: status }], cache }
      if (uri.startsWith('search://all'))
        return {
          contents: [{ uri, mimeType: foundMimeType, text: JSON.stringify({ query: 'q', notes: [], hits }) }],
          cache,
        }
      reads.push(uri)
      return inner.read(uri, options)
    },
  }
  return { view, reads }
}

const uris = (items: readonly { readonly uri: string }[]) => items.map(({ uri }) => uri)

test('a context neither reads nor shows a copy of a resource beside the original that a search found', async () => {
  const { view, reads } = searched(
    { 'src/lease.ts': 'the lease of a worker', 'other.ts': 'weather' },
    { 'HEAD/src/lease.ts': 'the lease of a worker', 'HEAD/gone.ts': 'a lease that was deleted' },
    ['memory://files/src/lease.ts'],
  )
  const { items } = await assemble(view, { ...base, query: 'lease' })
  expect(uris(items)).toContain('memory://files/src/lease.ts')
  expect(uris(items)).not.toContain('memory://history/HEAD/src/lease.ts')
  expect(reads).not.toContain('memory://history/HEAD/src/lease.ts')
  // The history alone has this one.
  expect(uris(items)).toContain('memory://history/HEAD/gone.ts')
})

test('a context does not take a resource of the same name and another size for a copy', async () => {
  const { view } = searched(
    { 'README.md': { text: 'about us', size: 8 } },
    { 'README.md': { text: 'the lease, explained at length', size: 30 } },
    [],
  )
  const { items } = await assemble(view, { ...base, query: 'lease' })
  expect(uris(items)).toContain('memory://history/README.md')
})

test('a context shows a pinned copy of a resource whose original the search does not find', async () => {
  const copies = { 'HEAD/src/lease.ts': 'the lease of a worker' }
  const { view } = searched({ 'src/lease.ts': 'the lease of a worker' }, copies, [])
  const pinned = await assemble(view, { ...base, query: 'x', pins: ['memory://history/HEAD/src/lease.ts'] })
  expect(uris(pinned.items)[0]).toBe('memory://history/HEAD/src/lease.ts')
})

test('in a context, a resource that only shares words with the query ranks below a hit of the search', async () => {
  const { view } = searched({ 'a.md': 'lease' }, { 'words.md': 'lease lease lease lease' }, ['memory://files/a.md'])
  const { items } = await assemble(view, { ...base, query: 'lease' })
  expect(uris(items).slice(0, 2)).toEqual(['memory://files/a.md', 'memory://history/words.md'])
  const [first, second] = items.map(({ explanation }) => explanation.score)
  expect(second).toBeLessThan((first ?? 0) * 0.7)
})

test('a resource that no search covers enters a context only with more than one word of a longer query', async () => {
  const { view } = searched({ 'a.md': 'how leases are renewed' }, { LEASE_SECRET: '[redacted]' }, [
    'memory://files/a.md',
  ])
  const several = await assemble(view, { ...base, query: 'how are leases renewed by workers' })
  expect(uris(several.items)).not.toContain('memory://history/LEASE_SECRET')
  const one = await assemble(view, { ...base, query: 'lease' })
  expect(uris(one.items)).toContain('memory://history/LEASE_SECRET')
})
