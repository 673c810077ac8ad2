import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { connect, type RemoteView } from '../../src/client/index.ts'
import { metaKeys } from '../../src/core/meta.ts'
import { parseSearchAnswer, parseSearchStatus } from '../../src/core/search-answer.ts'
import { chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { run } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { createGitFolder } from '../support/git.ts'
import { requires } from '../support/require.ts'

// A configuration says where a person opens what is mounted: `link`. Whatever answers with a document says so too.

const forge = 'https://forge.example/team/app/blob'
const folder = createFolder()
const repositories = createGitFolder()
let explorer: Explored
let view: RemoteView
let endpoint = ''

beforeAll(async () => {
  const repository = repositories.repository('app')
  repository.write('docs/a b.md', '# Anchors\n\nDrop the anchor.\n')
  repository.write('docs/日本.md', '# 錨\n\nanchor\n')
  repository.commit('anchors')
  const config = {
    mounts: {
      'file:///app': { provider: 'files', root: repository.dir, link: `${forge}/main/{+path}` },
      'git://app': { provider: 'git', repository: repository.dir, link: `${forge}/{ref}/{+path}` },
      'wiki://app': { provider: 'files', root: 'wiki', link: 'https://wiki.example/page{?path}' },
      'notes://own': { provider: 'inline', resources: { 'n.txt': { text: 'An anchor of our own.' } } },
      'search://all': { provider: 'search', over: ['file:///app', 'git://app', 'wiki://app', 'notes://own'] },
    },
    store: { sqlite: join(folder.outside, 'store.sqlite') },
    clients: { profiles: [{ name: 'ChatGPT', tools: 'chatgpt' }] },
  }
  folder.write({ 'wiki/a b.md': 'How to weigh anchor.\n', 'hikidashi.json': JSON.stringify(config) })
  explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  endpoint = `${explorer.url}mcp`
  view = await connect({ url: endpoint })
  await vi.waitFor(async () => expect(await statesOf()).toEqual(Array(4).fill('current')), { timeout: 30_000 })
})
afterAll(async () => {
  await view?.close()
  await explorer?.end()
  folder.remove()
  repositories.dispose()
})

/** How far each mount is indexed. */
async function statesOf(): Promise<readonly string[]> {
  const [content] = (await view.read('search://all/status.json')).contents
  return (
    parseSearchStatus(content !== undefined && 'text' in content ? content.text : '')?.mounts.map(
      ({ state }) => state,
    ) ?? []
  )
}

/** The link of each document of a mount that a search for a word in all of them finds. */
async function linksIn(mount: string): Promise<ReadonlyMap<string, string | undefined>> {
  const [content] = (await view.read(`search://all?q=anchor&mount=${encodeURIComponent(mount)}`)).contents
  const found = content !== undefined && 'text' in content ? parseSearchAnswer(content.text) : undefined
  return new Map((found?.hits ?? []).map(({ document, link }) => [document, link]))
}

/** Where a resource is opened, by what a read of it says. */
async function linkAt(uri: string): Promise<unknown> {
  const { contents } = await view.read(uri)
  return (contents[0]?.meta?.[metaKeys.source] as { readonly link?: string } | undefined)?.link
}

test('a resource has a link that is made from the link template of its mount and its path', async () => {
  expect(await linkAt('file:///app/docs/a%20b.md')).toBe(`${forge}/main/docs/a%20b.md`)
  expect(await linkAt('file:///app/docs/%E6%97%A5%E6%9C%AC.md')).toBe(`${forge}/main/docs/%E6%97%A5%E6%9C%AC.md`)
  expect(await linkAt('wiki://app/a%20b.md')).toBe('https://wiki.example/page?path=a%20b.md')
  expect(await linkAt('notes://own/n.txt')).toBeUndefined()
  const listed = (await view.list()).items.find(({ uri }) => uri === 'file:///app/docs/a%20b.md')
  expect(listed?.meta?.[metaKeys.source]).toEqual({ link: `${forge}/main/docs/a%20b.md` })
})

test('a link into a git history has the branch in the place of {ref}, and generated pages have no link', async () => {
  expect(await linkAt('git://app/main/docs/a%20b.md')).toBe(`${forge}/main/docs/a%20b.md`)
  expect(await linkAt('git://app/log')).toBeUndefined()
})

test('a search hit of a mount with a link template has its link, in JSON, in Markdown and on the command line', async () => {
  expect((await linksIn('file:///app')).get('file:///app/docs/a%20b.md')).toBe(`${forge}/main/docs/a%20b.md`)
  expect((await linksIn('git://app')).get('git://app/HEAD/docs/a%20b.md')).toBe(`${forge}/HEAD/docs/a%20b.md`)
  expect((await linksIn('wiki://app')).get('wiki://app/a%20b.md')).toBe('https://wiki.example/page?path=a%20b.md')
  expect([...(await linksIn('notes://own'))]).toEqual([['notes://own/n.txt', undefined]])
  const { contents } = await view.read('search://all?q=anchor&mount=file:%2F%2F%2Fapp&as=markdown')
  expect(contents[0] !== undefined && 'text' in contents[0] && contents[0].text).toContain(
    `[source](<${forge}/main/docs/a%20b.md>)`,
  )
  const { out } = await run(['search', 'anchor', '--url', endpoint], { cwd: folder.outside })
  expect(out).toContain(`${forge}/main/docs/a%20b.md`)
})

test('the tools for ChatGPT return the link as the URL to cite', async () => {
  const call = async (name: string, given: object) => {
    const chat = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'tools/call',
        'Mcp-Name': name,
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: {
          ...{ name, arguments: given },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'ChatGPT', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
    })
    const body = await chat.text()
    const json = body.startsWith('{') ? body : (/^data: (\{.*)$/m.exec(body)?.[1] ?? body)
    return (JSON.parse(json) as { readonly result: { readonly structuredContent: Record<string, unknown> } }).result
      .structuredContent
  }
  const { results } = (await call('search', { query: 'anchor' })) as { readonly results: readonly object[] }
  expect(results).toContainEqual({
    id: 'file:///app/docs/a%20b.md',
    title: 'a b.md',
    url: `${forge}/main/docs/a%20b.md`,
  })
  expect(await call('fetch', { id: 'git://app/main/docs/a%20b.md' })).toMatchObject({
    text: '# Anchors\n\nDrop the anchor.\n',
    url: `${forge}/main/docs/a%20b.md`,
  })
})

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in a browser,', () => {
  const tabs = useBrowser()

  test('the explorer shows the link to the source beside search hits, and in the details of a resource', async () => {
    const page = await tabs.open(`${explorer.url}#view=search&q=anchor`)
    const sources = page.getByRole('link', { name: /Open at its source/ })
    await sources.first().waitFor()
    const targets = await sources.evaluateAll((links) => links.map((one) => one.getAttribute('href')))
    expect(targets).toContain(`${forge}/main/docs/a%20b.md`)
    expect(targets).toContain('https://wiki.example/page?path=a%20b.md')
    await page.goto(`${explorer.url}#uri=${encodeURIComponent('git://app/main/docs/a%20b.md')}`)
    await page.getByRole('button', { name: 'Details' }).click()
    const link = page.getByRole('link', { name: `${forge}/main/docs/a%20b.md` })
    await link.waitFor()
    expect(await link.getAttribute('rel')).toContain('noopener')
  })
})
