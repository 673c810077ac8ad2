import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { documentOriginIn, parseDocumentOrigin } from '../../src/core/meta.ts'
import type { Principal } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { parseSearchAnswer } from '../../src/core/search-answer.ts'
import { search } from '../../src/providers/search/index.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { searchTool } from '../../src/server/tools/search.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { documents } from '../../src/wrap/documents.ts'
import { eventually } from '../support/authorized.ts'
import { fillDrive, openDrive } from '../support/drive-samples.ts'
import { type DriveStandIn, startDrive } from '../support/drive-stand-in.ts'
import { boss, find, guest } from '../support/searched.ts'

let folder: string
let store: Store
let drive: DriveStandIn
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-search-drive-'))
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  drive = await startDrive()
})
afterAll(async () => {
  await drive.close()
  await store.close()
  await rm(folder, { recursive: true })
})

const linkOf = (id: string) => `https://docs.google.com/file/d/${id}/view`

/** Drive, of which guests may not see `docs/`, and a search over it that is fed. */
async function openSearched() {
  const address = 'gdrive://me'
  const index = await openSearchIndex({ store, name: 'drive' })
  const provider = documents(await openDrive(drive))
  const access = compileAccess([{ allow: ['*'] }, { deny: ['guest'], match: 'docs/**' }])
  const searched = search({
    ...{ index, store, name: 'drive', scrubber: createScrubber([linkOf('same-b')]) },
    mounts: () => {
      const mount = catalog.reader(address)
      return mount === undefined ? [] : [{ mount, way: '' }]
    },
  })
  const catalog = createCatalog({
    mounts: [
      { address, provider, access },
      { address: 'search://all', provider: searched },
    ],
    secret: Buffer.alloc(32),
  })
  searched.feed()
  return catalog
}

test('passages of Drive have the link and the revision of their document, for callers who may see them', async () => {
  fillDrive(drive)
  const catalog = await openSearched()
  try {
    const originsOf = async (query: string, principal: Principal = boss) =>
      (await find(catalog.view(principal), { query })).hits.map(({ document, link, revision }) => [
        ...[document.slice('gdrive://me/'.length), link, revision],
      ])
    await eventually(
      () => originsOf('hello'),
      (hits) => hits.length === 1,
    )
    expect(await originsOf('hello')).toEqual([['docs/plan', linkOf('plan'), '1']])
    // What is not read, a picture, has them too.
    await eventually(
      () => originsOf('sketch'),
      (hits) => hits.length === 1,
    )
    expect(await originsOf('sketch')).toEqual([['sketch-1', linkOf('sketch-1'), '1']])
    expect(await originsOf('second')).toEqual([['same-b', undefined, 'r1']])

    const tool = searchTool(catalog.view(boss))
    const { structured } = await tool.call({ query: 'hello' }, { signal: new AbortController().signal } as never)
    expect(structured).toMatchObject({ results: [{ link: linkOf('plan'), revision: '1' }] })
    const { contents } = await catalog.view(boss).read('search://all?q=hello&as=markdown')
    expect(JSON.stringify(contents)).toContain(`[source](<${linkOf('plan')}>)`)

    const hidden = await catalog.view(guest).read('search://all?q=hello')
    expect(JSON.stringify(hidden)).not.toMatch(/plan|docs\.google/)
    expect(await originsOf('slash', guest)).toEqual([['odd-1', linkOf('odd-1'), 'r1']])

    drive.table.write('same-a', 'another text')
    await eventually(
      () => originsOf('another'),
      (hits) => hits.some(([, , revision]) => revision === 'r2'),
    )
  } finally {
    await catalog.close()
  }
}, 120_000)

test('a link of Drive is used only if it is a complete http(s) URL, with characters that could end its context escaped, and a revision only if it is one short line', () => {
  const drive = (link: unknown, revision: unknown = undefined) =>
    documentOriginIn({ 'dev.hikidashi/drive': { link, revision } })
  expect(drive('https://docs.google.com/d/1', '7')).toEqual({ link: 'https://docs.google.com/d/1', revision: '7' })
  expect(drive('https://docs.google.com/d/1)> [x](<y>\u0022')).toEqual({
    link: 'https://docs.google.com/d/1)%3E%20%5Bx%5D(%3Cy%3E%22',
  })
  for (const link of ['javascript:alert(1)', 'file:///etc/passwd', 'https://a@b/', 'https://x/[redacted]', '', 7, {}])
    expect(drive(link)).toEqual({})
  for (const revision of ['', 'a\nb', 'x'.repeat(300), 7]) expect(drive(undefined, revision)).toEqual({})
  expect([documentOriginIn(undefined), documentOriginIn({ 'dev.hikidashi/drive': 'x' }), documentOriginIn({})]).toEqual(
    [{}, {}, {}],
  )
  const hit = { uri: 'a:b', document: 'a:b', mount: 'a:', score: 1, lines: { start: 1, end: 1 }, snippet: { text: '' } }
  const found = parseSearchAnswer(
    JSON.stringify({ query: 'x', hits: [{ ...hit, link: 'javascript:x', revision: '1' }] }),
  )
  expect(found?.hits[0]).toEqual({ ...hit, snippet: { text: '', marks: [] }, revision: '1' })
  expect(parseDocumentOrigin({})).toEqual({})
})
