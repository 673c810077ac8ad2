import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { search } from '../../src/providers/search/index.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { openStore } from '../../src/store/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { limited } from '../../src/wrap/limited.ts'
import { eventually } from '../support/authorized.ts'
import { memory } from '../support/memory.ts'

describeProvider({ describe, test }, 'the provider search over a mount', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-search-'))
  const store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  const source = memory({
    'guide.md': { text: '# Guide\n\nWords.\n', mimeType: 'text/markdown', version: '1' },
    '日本語 𠮷.txt': { text: '設計の指針\n', mimeType: 'text/plain', version: '1' },
  })
  const catalog = createCatalog({ mounts: [{ address: 'memory://docs', provider: source }] })
  const provider = search({
    index: await openSearchIndex({ store, name: 'contract' }),
    store,
    name: 'contract',
    mounts: () => {
      const mount = catalog.reader('memory://docs')
      return mount === undefined ? [] : [{ mount, way: '' }]
    },
  })
  provider.feed()
  await eventually(provider.feedStatus, (status) => status?.mounts[0]?.state === 'current')
  return {
    provider: limited(provider),
    expectation: {
      entries: { 'status.json': { mimeType: 'application/json;format=hikidashi.SearchStatus' } },
    },
    dispose: async () => {
      await provider.close?.()
      await catalog.close()
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
})
