import { expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { foundMimeType, searchStatusMimeType, searchStatusPath } from '../../src/core/search-answer.ts'
import { axe, chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { useExplored } from '../support/explored.ts'
import { memory } from '../support/memory.ts'
import { requires } from '../support/require.ts'

/** A search whose index grows when the test says so: first a name is found, then a text, then it is done. */
function growingSearch() {
  let step = 0
  const hit = (document: string, text: string) => ({
    ...{ uri: `${document}?lines=1-1`, document, mount: 'docs://a', score: 1, lines: { start: 1, end: 1 } },
    snippet: { text, marks: [[0, 3]] },
  })
  const hits = () => [
    ...(step > 0 ? [hit('docs://a/one.md', 'tea of one')] : []),
    ...(step > 1 ? [hit('docs://a/two.md', 'tea of two')] : []),
  ]
  const status = () => ({
    indexing: 'running',
    mounts: [{ address: 'docs://a', state: step > 1 ? 'current' : 'comparing', looked: step, of: 2 }],
  })
  const provider: Provider = {
    list: async function* () {
      yield { path: searchStatusPath, mimeType: searchStatusMimeType }
    },
    read: async ({ path }) => {
      const isStatus = path === searchStatusPath
      const notes = step > 1 ? [] : ['docs://a is still being indexed: there may be more to find.']
      const text = JSON.stringify(isStatus ? status() : { query: 'tea', hits: hits(), notes })
      return [{ text, mimeType: isStatus ? searchStatusMimeType : foundMimeType }]
    },
    templates: async () => [{ template: '{?q,limit,mount,mime,since}', name: 'search', mimeType: foundMimeType }],
  }
  return {
    provider,
    grow: () => {
      step++
    },
  }
}

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const serve = useExplored()
  const tabs = useBrowser()

  test('while the index grows, files whose names match are shown at once, the progress is shown, and new hits appear by themselves', async () => {
    const { provider, grow } = growingSearch()
    const docs = memory({ 'one.md': { text: 'tea of one' }, 'two.md': { text: 'tea of two' }, 'Tea.md': { text: 'x' } })
    const { url } = await serve([
      { address: 'docs://a', provider: docs },
      { address: 'search://a', provider },
    ])
    const page = await tabs.open(`${url}#view=search&q=tea`)
    await page.locator('.name-hit mark', { hasText: 'Tea' }).waitFor()
    await page.getByText('0 of 2 documents are indexed').waitFor()
    await page.getByText('Searching…').waitFor()
    expect(await axe(page)).toEqual([])
    grow()
    await page.locator('.hit-snippet mark', { hasText: 'tea' }).waitFor()
    await page.getByText('1 of 2 documents are indexed').waitFor()
    expect(await page.locator('.hit-snippet').count()).toBe(1)
    grow()
    await page.locator('.hit-snippet', { hasText: 'tea of two' }).waitFor()
    await page.getByText(/documents are indexed/).waitFor({ state: 'detached' })
    await page.getByText('2 hits in 2 files').waitFor()
  })
  test('changes that are not searched yet are counted, and their hits appear by themselves', async () => {
    let pending = 2
    const { provider } = growingSearch()
    const docs = memory({ 'one.md': { text: 'tea of one' } })
    const hit = {
      ...{ uri: 'docs://a/one.md?lines=1-1', document: 'docs://a/one.md', mount: 'docs://a', score: 1 },
      ...{ lines: { start: 1, end: 1 }, snippet: { text: 'tea of one', marks: [[0, 3]] } },
    }
    const read: Provider['read'] = async ({ path }) => {
      const answer = {
        query: 'tea',
        hits: pending === 0 ? [hit] : [],
        notes: [],
        asOf: '2026-01-02T03:04:05Z',
        pending,
      }
      const status = { indexing: 'running', mounts: [{ address: 'docs://a', state: 'current', looked: 1, of: 1 }] }
      const isStatus = path === searchStatusPath
      return [
        { text: JSON.stringify(isStatus ? status : answer), mimeType: isStatus ? searchStatusMimeType : foundMimeType },
      ]
    }
    const { url } = await serve([
      { address: 'docs://a', provider: docs },
      { address: 'search://a', provider: { ...provider, read } },
    ])
    const page = await tabs.open(`${url}#view=search&q=tea`)
    await page.getByText('2 changes are not searched yet.').waitFor()
    await page.getByText('as of Jan 2, 2026').waitFor()
    pending = 1
    await page.getByText('1 change is not searched yet.').waitFor()
    pending = 0
    await page.locator('.hit-snippet mark', { hasText: 'tea' }).waitFor()
    await page.getByText(/not searched yet/).waitFor({ state: 'detached' })
  })
})
