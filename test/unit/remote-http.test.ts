import { describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { validateWithZod } from '../../src/config/explain.ts'
import { openMount } from '../../src/config/open-mount.ts'
import { loadConfigSchema } from '../../src/config/schema.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { isResourceError, tooLarge } from '../../src/core/errors.ts'
import { foundMimeType } from '../../src/core/search-answer.ts'
import type { Page, Resource, View } from '../../src/core/view.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { serveHttp } from '../../src/server/index.ts'
import { checkProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { endings } from '../support/endings.ts'
import { fault, listen, scripted, serveOfficial, serveSessions, serveSse } from '../support/mcp-servers.ts'

const configSchema = await loadConfigSchema()

const principal = { id: 'ada', roles: [] }

function relay(url: string, headers: Readonly<Record<string, string>> = {}, timeoutMs = 10_000): View {
  const catalog = createCatalog({
    mounts: [
      {
        address: 'remote://there',
        provider: remote({ target: { url, headers }, timeoutMs, address: 'remote://there' }),
      },
    ],
  })
  endings.push(catalog.close)
  return catalog.view(principal)
}

async function all(
  next: (query: { readonly cursor?: string }) => Promise<Page<Resource>>,
): Promise<readonly Resource[]> {
  const items: Resource[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await next(cursor === undefined ? {} : { cursor })
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
}

const failure = async (work: Promise<unknown>) => {
  const error = await work.then(() => undefined).catch((caught: unknown) => caught)
  return isResourceError(error) ? error : undefined
}

test.each([
  ['of 2026-07-28', async () => serveOfficial()],
  ['with sessions', async () => serveSessions([])],
  ['with server-sent events', async () => serveSse()],
])('a mounted server over HTTP %s is listed, read and shown by directories', async (_, serve) => {
  const view = relay(await listen(await serve()))
  const listed = await all((query) => view.list(query))
  expect(listed.map(({ uri }) => uri)).toEqual([
    'remote://there/file/docs/a.md',
    'remote://there/file/docs/sub/b.md',
    'remote://there/file/docs/sub/c.png',
    'remote://there/file/docs/%E6%97%A5.txt',
    'remote://there/memo/today',
  ])
  expect((await view.read('remote://there/file/docs/%E6%97%A5.txt')).contents).toMatchObject([{ text: '日' }])
  expect((await view.directory({ uri: 'remote://there/file/docs' })).items.map(({ name }) => name)).toContain('sub')
})

test('a mounted server over HTTP that has forgotten the session is asked for a new one', async () => {
  const first = await serveSessions([])
  const second = await serveSessions([])
  let current = first
  const url = await listen(async (request, response) => {
    // A session of before is as unknown as any.
    if (current === second && request.headers['mcp-session-id'] === 'session-1' && !renewed) {
      renewed = true
      return void response.writeHead(404).end()
    }
    await current(request, response)
  })
  let renewed = false
  const view = relay(url)
  expect((await view.read('remote://there/memo/today')).contents).toHaveLength(1)
  current = second
  expect((await view.read('remote://there/memo/today')).contents).toHaveLength(1)
  expect(renewed).toBe(true)
})

describe('a mounted hikidashi server', () => {
  const files = { 'a.md': '# A\nline two\nline three\n', 'sub/b.md': 'b', 'sub/deep/[c] d.md': 'c' }
  const search = {
    uri: 'docs://manual/a.md?lines=1-2',
    document: 'docs://manual/a.md',
    mount: 'docs://manual',
    lines: { start: 1, end: 2 },
    score: 1,
    snippet: { text: 'line', marks: [] },
  }
  const serve = async () => {
    const catalog = createCatalog({
      mounts: [
        { address: 'docs://manual', provider: sliced(memory(files)), title: 'The manual' },
        {
          address: 'search://manual',
          provider: {
            list: async function* () {},
            read: async () => [
              { mimeType: foundMimeType, text: JSON.stringify({ query: 'x', hits: [search], notes: [] }) },
            ],
            templates: async () => [{ template: 'found{/q}{?limit}', name: 'search', mimeType: foundMimeType }],
          },
        },
      ],
    })
    const service = await serveHttp({
      view: catalog.view,
      name: 'b',
      version: '1',
      log: () => {},
      host: '127.0.0.1',
      port: 0,
    })
    endings.push(service.close, catalog.close)
    return { url: service.url, direct: catalog.view(principal) }
  }

  test('is relayed: parts, directories, completions, reasons of errors, and search hits with the addresses of the mount', async () => {
    const { url, direct } = await serve()
    const view = relay(url)
    const there = (uri: string) => uri.replace('docs://manual', 'remote://there/docs/manual')
    const plain = ({ uri, meta: _, ...rest }: Resource) => ({ uri: there(uri), ...rest })
    for (const uri of ['docs://manual', 'docs://manual/sub/', 'docs://manual/sub/deep'])
      expect((await view.directory({ uri: there(uri) })).items.map(plain)).toEqual(
        (await direct.directory({ uri })).items.map(plain),
      )
    const part = await view.read('remote://there/docs/manual/a.md?lines=2-2')
    expect(part.contents).toMatchObject([{ text: 'line two\n' }])
    // What another server says under the keys of this one is not passed on.
    expect(part.contents[0]?.meta).toBeUndefined()
    const bad = await failure(view.read('remote://there/docs/manual/a.md?lines=9-1'))
    expect([bad?.kind, bad?.detail.reason]).toEqual(['invalid', 'range'])
    const request = { argument: { name: 'path', value: 'sub/' } }
    expect(
      await view.complete({ uriTemplate: 'remote://there/docs/manual/{+path}{?lines,bytes}', ...request }),
    ).toEqual(await direct.complete({ uriTemplate: 'docs://manual/{+path}{?lines,bytes}', ...request }))
    const found = await view.read('remote://there/search/manual/found/x')
    expect(
      found.contents[0] && 'text' in found.contents[0] && JSON.parse(found.contents[0].text).hits[0],
    ).toMatchObject({
      uri: 'remote://there/docs/manual/a.md?lines=1-2',
      document: 'remote://there/docs/manual/a.md',
      mount: 'remote://there/docs/manual',
    })
  })
})

test('a read that a mounted server refuses as too large is not said to be longer than the limit of the mount', async () => {
  const provider = { ...memory({ 'a.md': 'a' }), read: () => Promise.reject(tooLarge('It has more than 5 bytes.')) }
  const catalog = createCatalog({ mounts: [{ address: 'docs://manual', provider }] })
  const server = { view: catalog.view, name: 'b', version: '1', log: () => {}, host: '127.0.0.1', port: 0 }
  const service = await serveHttp(server)
  endings.push(service.close, catalog.close)
  expect(await failure(relay(service.url).read('remote://there/docs/manual/a.md'))).toMatchObject({
    kind: 'too-large',
    message: 'The server behind this mount refuses the request, because the answer is too large.',
  })
})

test('a search of a mounted server names no document that the rules of the mount hide', async () => {
  const hit = (document: string, score: number) => ({
    ...{ uri: `${document}?lines=1-2`, document, mount: 'docs://manual', title: `Title of ${document}` },
    ...{ lines: { start: 1, end: 2 }, score, snippet: { text: `snippet of ${document}`, marks: [] } },
  })
  const hits = [hit('docs://manual/secret/a.md', 1), hit('docs://manual/b.md', 0.4)]
  const answer = { query: 'x', hits, total: 2, notes: ['docs://manual/secret is still being indexed.'] }
  const catalog = createCatalog({
    mounts: [
      {
        address: 'search://manual',
        provider: {
          list: async function* () {},
          read: async ({ params }) =>
            params.get('as') === 'markdown'
              ? [{ mimeType: 'text/markdown', text: hits.map(({ title }) => title).join('\n') }]
              : [{ mimeType: foundMimeType, text: JSON.stringify(answer) }],
          templates: async () => [
            { template: '{?q,as}', name: 'search', mimeType: foundMimeType },
            { template: '{+query}{?as}', name: 'search in the path', mimeType: foundMimeType },
          ],
          complete: async ({ argument }) => ({ values: [`${argument.value}secret-word`] }),
        },
      },
    ],
  })
  const log = () => {}
  const service = await serveHttp({ view: catalog.view, name: 'b', version: '1', log, host: '127.0.0.1', port: 0 })
  const provider = remote({ target: { url: service.url }, address: 'remote://there', timeoutMs: 10_000 })
  const rules = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: '**/secret/**' }])
  const relaying = createCatalog({ mounts: [{ address: 'remote://there', provider, access: rules }] })
  endings.push(service.close, catalog.close, relaying.close)
  const view = relaying.view(principal)
  for (const query of ['?q=x', '?q=x&as=markdown', '/x', '/x?as=markdown']) {
    const { contents } = await view.read(`remote://there/search/manual${query}`)
    const [content] = contents
    const text = content !== undefined && 'text' in content ? content.text : ''
    expect(text, query).not.toMatch(/secret|0\.4|total/)
    expect(text, query).toContain('remote://there/docs/manual/b.md')
  }
  const uriTemplate = 'remote://there/search/manual/{+query}{?as}'
  expect((await view.complete({ uriTemplate, argument: { name: 'query', value: 'x' } })).values).toEqual([])
})

test('a mounted server whose directories have more resources than its listing is shown with all of them', async () => {
  const asked: unknown[] = []
  const url = await listen(
    scripted((method, params) => {
      if (method === 'resources/list')
        return {
          resources: [
            { uri: 'skill://a/listed.md', name: 'listed' },
            { uri: 'skill://b/x', name: 'x' },
          ],
        }
      if (method === 'resources/read') return { contents: [{ uri: params.uri, text: 'read' }] }
      if (method !== 'resources/directory/read') return fault(-32601, 'Method not found')
      asked.push(params.uri)
      if (params.uri !== 'skill://a') return fault(-32602, 'not a directory')
      return params.cursor === undefined
        ? { resources: [{ uri: 'skill://a/hidden.md', name: 'hidden', title: 'Hidden' }], nextCursor: '1' }
        : {
            resources: [
              { uri: 'skill://a/sub', name: 'sub', mimeType: 'inode/directory' },
              { uri: 'skill://elsewhere/x', name: 'x' },
            ],
          }
    }),
  )
  const view = relay(url)
  const at = async (uri: string) =>
    (await view.directory({ uri })).items.map((item) => item.uri.slice('remote://there/'.length))
  expect(await at('remote://there/skill/a')).toEqual(['skill/a/hidden.md', 'skill/a/listed.md', 'skill/a/sub/'])
  expect(await at('remote://there/skill/b')).toEqual(['skill/b/x'])
  expect(asked).toContain('skill://a')
  expect((await view.read('remote://there/skill/a/hidden.md')).contents).toMatchObject([{ text: 'read' }])
})

test('credentials are sent to the mounted server, and never to the target of a redirect', async () => {
  const seen: (string | undefined)[] = []
  const elsewhere: unknown[] = []
  const other = await listen((request, response) => {
    elsewhere.push(request.headers)
    response.writeHead(404).end()
  })
  const official = serveOfficial()
  let redirects = false
  const url = await listen(async (request, response) => {
    seen.push(String(request.headers['x-key']))
    if (redirects) return void response.writeHead(307, { location: other }).end()
    await official(request, response)
  })
  const view = relay(url, { 'x-key': 'canary-4711', authorization: 'Bearer canary-4712' })
  expect((await view.list()).items).toHaveLength(5)
  expect(new Set(seen)).toEqual(new Set(['canary-4711']))
  redirects = true
  expect((await failure(view.read('remote://there/memo/today')))?.kind).toBe('unavailable')
  const fresh = relay(url, { 'x-key': 'canary-4711', authorization: 'Bearer canary-4712' })
  expect((await failure(fresh.list()))?.kind).toBe('unavailable')
  expect(JSON.stringify(elsewhere)).not.toMatch(/canary/)
})

describe('the configuration of a remote mount', () => {
  const parse = (mount: object) =>
    validateWithZod(configSchema, { mounts: { 'remote://there': { provider: 'remote', ...mount } } })

  test.each([
    [{}, 'Add "command" to start a server'],
    [{ command: 'x', url: 'https://example.org/mcp' }, '"command" and "url" exclude each other.'],
    [{ url: 'https://user@example.org/mcp' }, 'This is not the URL of an MCP server.'],
    [{ url: 'ftp://example.org' }, 'This is not the URL of an MCP server.'],
    [{ url: 'https://example.org/mcp', args: ['x'] }, 'This key needs "command", which this mount does not have.'],
    [{ command: 'x', bearer: { env: 'A' } }, 'This key needs "url", which this mount does not have.'],
    [{ command: 'x', env: { API_TOKEN: 'hunter2' } }, 'This looks like a literal secret.'],
    [{ url: 'https://example.org/mcp', headers: { 'X-Key': 'hunter2' } }, 'This is a literal secret.'],
  ])('with %j is refused', (mount, words) => {
    const explained = parse(mount)
    const issues = 'issues' in explained ? explained.issues : undefined
    expect(JSON.stringify(issues)).toContain(words.replaceAll('"', '\\\\\\"').replaceAll('\\\\\\"', '\\"'))
    expect(JSON.stringify(issues)).not.toContain('hunter2')
  })

  test('takes secrets from environment variables, and sends none unencrypted', async () => {
    process.env.RELAY_KEY = 'canary-4713'
    const official = serveOfficial()
    const seen: unknown[] = []
    const url = await listen(async (request, response) => {
      seen.push(request.headers['x-key'], request.headers.authorization)
      await official(request, response)
    })
    const open = async (mount: object) => {
      const { mounts } = configSchema.parse({ mounts: { 'remote://there': { provider: 'remote', ...mount } } })
      const config = mounts['remote://there']
      if (config === undefined) throw new Error('no mount')
      return openMount({ address: 'remote://there', config, folder: '.' }, { log: () => {} })
    }
    const headers = { 'X-Key': { env: 'RELAY_KEY' } }
    const mount = await open({ url, headers, bearer: { env: 'RELAY_KEY' } })
    endings.push(async () => mount.provider.close?.())
    const catalog = createCatalog({ mounts: [mount] })
    expect((await catalog.view(principal).list()).items).toHaveLength(5)
    expect(new Set(seen)).toEqual(new Set(['canary-4713', 'Bearer canary-4713']))
    expect((await failure(open({ url: 'http://mcp.example.org/mcp', headers })))?.message).toContain(
      'without encryption',
    )
    delete process.env.RELAY_KEY
    expect((await failure(open({ url, headers })))?.message).toContain('RELAY_KEY is not set')
  })
})

describe('a mounted server that serves a folder at file://', () => {
  const folder = { 'docs/a.md': 'a', 'docs/deep/b.md': 'b', 'docs/hidden/c.md': 'c', 'README.md': 'read me' }

  async function serveFolder(): Promise<string> {
    const there = createCatalog({ mounts: [{ address: 'file:///srv/folder', provider: memory(folder) }] })
    const service = await serveHttp({
      ...{ view: there.view, name: 'there', version: '1', log: () => {}, host: '127.0.0.1', port: 0 },
      limits: { drain: 100 },
    })
    endings.push(there.close, service.close)
    return service.url
  }

  test('passes the checks that every provider must pass: its directories cannot be read as files', async () => {
    const provider = remote({ target: { url: await serveFolder() } })
    endings.push(async () => provider.close?.())
    const entries = Object.fromEntries(Object.keys(folder).map((path) => [`file/srv/folder/${path}`, {}]))
    const report = await checkProvider(provider, { entries, missing: ['file/srv/folder', 'file/srv/folder/docs'] })
    expect(report.problems).toEqual([])
    expect(report.examined).toBe(4)
  }, 60_000)

  test('is read at a directory as its listing has it, and as the access rules allow', async () => {
    const catalog = createCatalog({
      mounts: [
        {
          address: 'remote://there',
          provider: remote({ target: { url: await serveFolder() } }),
          access: compileAccess([{ allow: ['*'] }, { deny: ['*'], match: '**/hidden/**' }]),
        },
      ],
    })
    endings.push(catalog.close)
    const view = catalog.view(principal)
    const base = 'remote://there/file/srv/folder/docs'
    const { contents } = await view.read(base)
    expect(contents.map(({ uri }) => uri)).toEqual([`${base}/a.md`, `${base}/deep`])
    expect(contents[0]).toMatchObject({ text: 'a' })
    expect((await failure(view.read(`${base}/hidden`)))?.kind).toBe('not-found')
  })
})
