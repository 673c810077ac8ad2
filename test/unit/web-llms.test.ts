import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseHttpUrl } from '../../src/core/http-url.ts'
import type { Context } from '../../src/core/provider.ts'
import { type WebOptions, web } from '../../src/providers/web/index.ts'
import { parseLlmsTxt } from '../../src/providers/web/llms.ts'
import { startWeb, type WebServer, watchConnections } from '../support/web.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 60_000 })

let server: WebServer
const connections = watchConnections()
const list = `# Example

> Documents.

- [No section](intro.md)

## Docs

- [Getting started](/docs/start): How to begin.
- [With spaces](https://elsewhere.example/docs/x): elsewhere
- [A query](/docs/start?x=1)
- [Up](/other)
- [日本語](./%E6%97%A5%20%E6%9C%AC)
* [Again](/docs/start/)

## Optional

- [Old](<old.md>)
`
let text = list
let status = 200

beforeAll(async () => {
  server = await startWeb((_, response) => void response.end())
})
beforeEach(() => {
  text = list
  status = 200
  server.requests.length = 0
  server.answer = (request, response) => {
    const isList = request.url === '/docs/llms.txt'
    response.writeHead(isList ? status : 200, { 'content-type': 'text/markdown', 'cache-control': 'no-store' })
    response.end(isList ? text : `# ${request.url}`)
  }
})
afterAll(() => {
  connections.end()
  server.close()
  expect(connections.left).toEqual([])
})

const context = (signal = new AbortController().signal): Context => ({ principal: { id: 'x', roles: [] }, signal })
const open = (options: Partial<WebOptions> = {}) =>
  web({ url: `${server.url}/docs`, allowAddresses: ['127.0.0.1'], timeoutMs: 30_000, llms: 'llms.txt', ...options })
const listed = async (provider: ReturnType<typeof open>) => {
  const entries = []
  for await (const entry of provider.list({}, context())) entries.push(entry)
  return entries
}
const asked = () => server.requests.map(({ url }) => url)

describe('an llms.txt as the list of a mount', () => {
  test('gives the pages below the address of the mount, each once, with those of the configuration, and no others', async () => {
    const provider = open({ pages: [{ path: 'start', title: 'Ours' }, { path: 'more' }] })
    expect(await listed(provider)).toEqual([
      { path: 'intro.md', title: 'No section' },
      { path: 'llms.txt', title: 'The list of the pages' },
      { path: 'more' },
      { path: 'old.md', title: 'Old', priority: 0.2 },
      { path: 'start', title: 'Ours' },
      { path: '日 本', title: '日本語' },
    ])
    // Another listing within a minute asks nobody.
    await listed(provider)
    expect(asked()).toEqual(['/docs/llms.txt'])
  })

  test('allows reads of its pages, and of no others', async () => {
    const provider = open()
    const read = (path: string) => provider.read({ path, params: new Map() }, context())
    expect(await read('日 本')).toMatchObject([{ text: '# /docs/%E6%97%A5%20%E6%9C%AC' }])
    expect(await provider.stat?.('start', context())).toMatchObject({ description: 'How to begin.' })
    await expect(read('other')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(read('absent')).rejects.toMatchObject({ kind: 'not-found' })
    expect(await read('llms.txt')).toMatchObject([{ text: list }])
    expect(asked().filter((url) => /other|absent/.test(url ?? ''))).toEqual([])
  })

  test('that is not there makes the mount unavailable, but not the pages of the configuration', async () => {
    status = 404
    const provider = open({ pages: [{ path: 'a' }] })
    await expect(listed(provider)).rejects.toMatchObject({ kind: 'unavailable', cause: { kind: 'not-found' } })
    expect(await provider.read({ path: 'a', params: new Map() }, context())).toMatchObject([{ text: '# /docs/a' }])
  })

  test('that changes is noticed by polling, and its pages stay if it is lost', async () => {
    const provider = open({ poll: 20 })
    const stop = new AbortController()
    const changes = (await provider.watch?.(stop.signal))?.[Symbol.asyncIterator]() ?? expect.fail('no changes')
    expect(await listed(provider)).toHaveLength(5)
    text = `${list}- [New](new.md)\n`
    expect(await changes.next()).toMatchObject({ done: false })
    expect(await listed(provider)).toHaveLength(6)
    status = 500
    server.requests.length = 0
    const ended = (async () => {
      while (!(await changes.next()).done);
    })()
    await vi.waitFor(() => expect(asked()).toContain('/docs/llms.txt'), { timeout: 15_000 })
    await vi.waitFor(() => expect(asked()).toContain('/docs/new.md'), { timeout: 15_000 })
    expect(await listed(provider)).toHaveLength(6)
    stop.abort()
    await ended
  })

  test('whose answer was on its way during a change does not replace the newer list', async () => {
    for (const { change, isNewer } of [
      { change: (provider: ReturnType<typeof open>) => provider.renew?.(), isNewer: false },
      { change: listed, isNewer: true },
    ]) {
      const provider = open()
      let send = () => {}
      const held = new Promise<void>((resolve) => {
        send = resolve
      })
      const { answer } = server
      text = list
      server.answer = async (_, response) => {
        const old = text
        server.answer = answer
        await held
        response.writeHead(200, { 'content-type': 'text/markdown', 'cache-control': 'no-store' }).end(old)
      }
      const slow = listed(provider)
      await vi.waitFor(() => expect(server.answer).toBe(answer))
      text = `${list}- [New](new.md)\n`
      const found = await change(provider)
      send()
      expect(await slow).toHaveLength(5)
      if (isNewer) expect(found).toHaveLength(6)
      expect(await listed(provider)).toHaveLength(6)
    }
  })

  test('of a type that is not served is not a page, also after it was read as a list', async () => {
    const provider = open({ types: ['text/html'] })
    const read = () => provider.read({ path: 'llms.txt', params: new Map() }, context())
    server.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/markdown', etag: '"1"' }).end(list)
    for (let i = 0; i < 2; i++) {
      await expect(read()).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('media type'),
        detail: { reason: 'refused' },
      })
      await listed(provider)
    }
  })

  test('with hostile links names no page for them, and is read up to 10,000 pages', () => {
    const at = parseHttpUrl('https://x.example/docs/llms.txt')
    const base = parseHttpUrl('https://x.example/docs')
    const bad = [
      ...['../secret', '/docs/../secret', '/docs/%2e%2e/secret', 'a%2Fb', 'a%00b', '%', '//evil.example/docs/a'],
      ...[
        'javascript:alert(1)',
        'file:///etc/passwd',
        'https://u:p@x.example/docs/a',
        '/docsx/a',
        'http://x.example/docs/a',
      ],
    ]
    expect(parseLlmsTxt(bad.map((url) => `- [a](${url})`).join('\n'), at, base)).toEqual([])
    expect(parseLlmsTxt(`- [${'['.repeat(200_000)}\n${'- [a]('.repeat(100_000)}`, at, base)).toEqual([])
    const many = Array.from({ length: 10_050 }, (_, i) => `- [p](p${i})`).join('\n')
    expect(parseLlmsTxt(many, at, base)).toHaveLength(10_000)
  })
})
