import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Entry } from '../../src/core/provider.ts'
import { type ApiOptions, api, type RouteOptions } from '../../src/providers/api/index.ts'
import { startWeb, type WebServer, watchConnections } from '../support/web.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 60_000 })

let server: WebServer
const connections = watchConnections()

beforeAll(async () => {
  server = await startWeb(() => {})
})
beforeEach(() => {
  server.requests.length = 0
  echo()
})
afterAll(() => {
  connections.end()
  server.close()
  expect(connections.left).toEqual([])
})

/** Answers with what was asked for. */
function echo(): void {
  server.answer = (request, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(request.url))
}

/** Answers by path and query. */
function table(answers: Readonly<Record<string, unknown>>): void {
  server.answer = (request, response) => {
    const found = answers[request.url ?? '']
    if (found === undefined) return response.writeHead(404).end()
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found))
  }
}

const open = (routes: readonly RouteOptions[], options: Partial<ApiOptions> = {}) =>
  api({ url: `${server.url}/v1`, allowAddresses: ['127.0.0.1'], timeoutMs: 30_000, keepMs: 60_000, routes, ...options })

const everybody = { id: 'x', roles: [] }
const viewOf = (provider: ReturnType<typeof open>) =>
  createCatalog({ mounts: [{ address: 'api://x', provider }] }).view(everybody)

const listAll = async (provider: ReturnType<typeof open>): Promise<readonly Entry[]> => {
  const entries: Entry[] = []
  const context = { principal: everybody, signal: new AbortController().signal }
  for await (const entry of provider.list({}, context)) entries.push(entry)
  return entries
}
const pathsOf = async (provider: ReturnType<typeof open>) => (await listAll(provider)).map(({ path }) => path)

describe('a value of a template of the api provider', () => {
  const routes: readonly RouteOptions[] = [
    { template: 'users/{id}', to: 'people/{id}.json' },
    { template: 'repos/{owner}/{name}', to: '/r/{owner}/{name}?full=1' },
    { template: 'pairs/{a}-{b}', to: 'p/{a}{b}' },
    { template: 'search{?q,page}', to: 'find?type=all{&q,page}' },
    { template: 'plain/{id}{?fields}' },
    { template: 'group/{id}', to: 'a%2Fb%3Fc/{id}' },
  ]

  test.each([
    ['api://x/users/7', '/v1/people/7.json'],
    ['api://x/users/a%20b', '/v1/people/a%20b.json'],
    ['api://x/users/a,b;c=d', '/v1/people/a%2Cb%3Bc%3Dd.json'],
    ['api://x/users/%3Fa=b', '/v1/people/%3Fa%3Db.json'],
    ['api://x/users/%23x', '/v1/people/%23x.json'],
    ['api://x/users/%252e%252e', '/v1/people/%252e%252e.json'],
    ['api://x/users/%25', '/v1/people/%25.json'],
    ['api://x/plain/100%25', '/v1/plain/100%25'],
    ['api://x/plain/a%2541%25zz%25%25', '/v1/plain/a%2541%25zz%25%25'],
    ['api://x/plain/%25E6%2597%25A5', '/v1/plain/%25E6%2597%25A5'],
    ['api://x/plain/a%252eb', '/v1/plain/a%252eb'],
    ['api://x/group/7', '/v1/a%2Fb%3Fc/7'],
    ['api://x/users/日本', '/v1/people/%E6%97%A5%E6%9C%AC.json'],
    ['api://x/users/...', '/v1/people/....json'],
    ['api://x/users/a@b:c', '/v1/people/a%40b%3Ac.json'],
    ['api://x/repos/a/b', '/v1/r/a/b?full=1'],
    ['api://x/search?q=a%26b%3Dc%23%2F..%2F', '/v1/find?type=all&q=a%26b%3Dc%23%2F..%2F'],
    ['api://x/search?page=2&q=x', '/v1/find?type=all&q=x&page=2'],
    ['api://x/search', '/v1/find?type=all'],
    ['api://x/plain/1?fields=a,b', '/v1/plain/1?fields=a%2Cb'],
  ])('in %s is sent as %s', async (uri, expected) => {
    const { contents } = await viewOf(open(routes)).read(uri)
    expect(contents[0]).toMatchObject({ text: JSON.stringify(expected), mimeType: 'application/json' })
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([`GET ${expected}`])
  })

  test.each([
    ...[
      'api://x/users/..',
      'api://x/users/%2e%2e',
      'api://x/users/.',
      'api://x/users/a%2Fb',
      'api://x/users/a/b',
      'api://x/users/',
    ],
    ...[
      'api://x/users/a%5Cb',
      'api://x/users/a%0d%0ab',
      'api://x/users//b',
      'api://x/users',
      'api://x/pairs/.-.',
      'api://x/pairs/.-%2e',
    ],
    ...[
      'api://x/repos/../a',
      'api://x/repos/a',
      'api://x/repos/a/b/c',
      'api://x/repos/a/..%2fb',
      'api://x/search/x',
      'api://x/search?r=x',
    ],
    // An API that decodes a value more than once would find structure in these.
    ...[
      'api://x/plain/%252e%252e%252fadmin',
      'api://x/plain/%252e%252e',
      'api://x/plain/.%252E',
      'api://x/plain/%252e',
      'api://x/users/a%252fb',
      'api://x/users/a%25252fb',
      'api://x/users/a%25%2532%2566b',
      'api://x/users/a%255cb',
      'api://x/users/a%253fb',
      'api://x/users/a%2523b',
      'api://x/users/a%2500b',
      'api://x/users/a%25c2%2585b',
      'api://x/users/%25ff%252f',
      `api://x/users/%${'25'.repeat(12)}41`,
      'api://x/pairs/a%252-fb',
      'api://x/pairs/%25-2e',
      'api://x/group/a%252fb',
    ],
    ...['api://x/v1/users', 'api://x/people/1.json', 'api://x/users/1?x=y', 'api://x/users/1#x'],
  ])('in %s is refused, without a request', async (uri) => {
    await expect(viewOf(open(routes)).read(uri)).rejects.toMatchObject({
      kind: expect.stringMatching(/^(?:not-found|invalid)$/),
    })
    expect(server.requests).toEqual([])
  })

  test('that is optional must not be in the path of "to"', async () => {
    expect(() => open([{ template: 'a{?q}', to: 'b/{q}' }])).toThrow(/is optional in "template"/)
  })
})

describe('a listing of the api provider', () => {
  const users = { template: 'users/{id}', list: { from: 'users?per_page=2', title: '/name', modified: '/at' } }
  const item = (id: unknown, more = {}) => ({ id, name: `User  ${id}\n`, ...more })

  test('has each item of the API once, in the order of the paths, without items that give no valid path', async () => {
    table({
      '/v1/users?per_page=2': [
        item('b'),
        item('a/b'),
        item('..'),
        item(''),
        item(null),
        item({ x: 1 }),
        item('x\ny'),
        item('a%2fb'),
        item('%2e%2e'),
        item(10),
        item('日'),
        item('B', { at: '2026-01-02T03:04:05Z' }),
        { name: 'no id' },
        'no object',
        item('b', { name: 'again' }),
      ],
    })
    expect(await listAll(open([users]))).toEqual([
      { path: 'users/10', mimeType: 'application/json', title: 'User 10' },
      { path: 'users/B', mimeType: 'application/json', title: 'User B', modified: Date.parse('2026-01-02T03:04:05Z') },
      { path: 'users/b', mimeType: 'application/json', title: 'again' },
      { path: 'users/日', mimeType: 'application/json', title: 'User 日' },
    ])
  })

  test('follows links, cursors and page numbers to the last page', async () => {
    server.answer = (request, response) => {
      const links: Readonly<Record<string, string>> = {
        '/v1/users': '<https://other.test/first>; rel="first", </v1/users?p=2>; title="x"; rel="prev next"',
        '/v1/users?p=2': '<?p=3>; rel=next',
      }
      const link = links[request.url ?? '']
      const headers = { 'content-type': 'application/json', ...(link === undefined ? {} : { link }) }
      response.writeHead(200, headers).end(JSON.stringify([{ id: request.url }]))
    }
    const encoded = { template: 'u{?q}' }
    const byLink: RouteOptions = { template: 'users/{id}', list: { from: 'users', next: 'link' } }
    expect(await pathsOf(open([byLink, encoded]))).toEqual([])
    expect(server.requests.map(({ url }) => url)).toEqual(['/v1/users', '/v1/users?p=2', '/v1/users?p=3'])

    table({
      '/v1/users?a=b': { data: { items: [{ key: { id: 1 } }] }, next: 'x y&z' },
      '/v1/users?a=b&cursor=x%20y%26z': { data: { items: [{ key: { id: 2 } }] }, next: null },
    })
    const byCursor: RouteOptions = {
      template: 'users/{id}',
      list: {
        from: 'users?a=b',
        items: '/data/items',
        values: { id: '/key/id' },
        next: { cursor: '/next', param: 'cursor' },
      },
    }
    expect(await pathsOf(open([byCursor]))).toEqual(['users/1', 'users/2'])

    table({ '/v1/users': [{ id: 1 }], '/v1/users?page=2': [{ id: 2 }], '/v1/users?page=3': [] })
    const byNumber: RouteOptions = { template: 'users/{id}', list: { from: 'users', next: { page: 'page' } } }
    expect(await pathsOf(open([byNumber]))).toEqual(['users/1', 'users/2'])
  })

  test('that repeats itself ends at the repetition, and one that never ends is cut off at the maximum number of entries', async () => {
    server.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', link: '</v1/users>; rel="next"' })
        .end(JSON.stringify([{ id: 1 }]))
    const route: RouteOptions = { template: 'users/{id}', list: { from: 'users', next: 'link' } }
    expect(await pathsOf(open([route]))).toEqual(['users/1'])
    expect(server.requests).toHaveLength(1)
    let count = 0
    server.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', link: `</v1/users?x=${++count}>; rel="next"` })
        .end(JSON.stringify([{ id: count }]))
    expect(await pathsOf(open([route], { maxEntries: 5 }))).toHaveLength(5)
    expect(count).toBe(5)
  })

  test.each([
    ['a link to another origin', '[]', '<https://other.test/users>; rel="next"', [{ id: 1 }]],
    ['no array', '/data', undefined, { data: 1 }],
  ])('with %s is refused', async (_, items, link, body) => {
    server.answer = (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', ...(link === undefined ? {} : { link }) })
        .end(JSON.stringify(body))
    const list = { from: 'users', next: 'link' as const, ...(items.startsWith('/') ? { items } : {}) }
    await expect(listAll(open([{ template: 'users/{id}', list }]))).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('that is not JSON is refused, and so is another media type', async () => {
    const route: RouteOptions = { template: 'users/{id}', list: { from: 'users' } }
    server.answer = (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('[{"id":')
    await expect(listAll(open([route]))).rejects.toMatchObject({ kind: 'unavailable' })
    server.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<form>')
    await expect(listAll(open([route]))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('media type'),
      detail: { reason: 'refused' },
    })
  })

  test('completes each path variable of its template, given the values of the other variables', async () => {
    const repos = [
      ['anna', 'one'],
      ['anna', 'two'],
      ['ben', 'three'],
    ].map(([owner, name]) => ({ owner: { login: owner }, name }))
    table({ '/v1/repos': repos })
    const route: RouteOptions = {
      template: 'repos/{owner}/{name}{?ref}',
      list: { from: 'repos', values: { owner: '/owner/login', name: '/name' } },
    }
    const view = viewOf(open([route, { template: 'users/{id}' }]))
    const complete = async (name: string, value: string, filled: Readonly<Record<string, string>> = {}) =>
      (
        await view.complete({
          uriTemplate: 'api://x/repos/{owner}/{name}{?ref}',
          argument: { name, value },
          arguments: new Map(Object.entries(filled)),
        })
      ).values
    expect(await complete('owner', '')).toEqual(['anna', 'ben'])
    expect(await complete('owner', 'b')).toEqual(['ben'])
    expect(await complete('name', '', { owner: 'anna' })).toEqual(['one', 'two'])
    expect(await complete('name', 't', { owner: 'ben' })).toEqual(['three'])
    expect(await complete('ref', '')).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  test('is requested once for simultaneous callers, and continues when one of them cancels', async () => {
    const answers: (() => void)[] = []
    server.answer = (_, response) => {
      answers.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end('[{"id":1}]'))
    }
    const provider = open([{ template: 'users/{id}', list: { from: 'users' } }])
    const [first, second] = [new AbortController(), new AbortController()]
    const list = async (signal: AbortSignal) => {
      const paths: string[] = []
      for await (const { path } of provider.list({}, { principal: everybody, signal })) paths.push(path)
      return paths
    }
    const [one, two] = [list(first.signal), list(second.signal)]
    one.catch(() => {})
    await vi.waitFor(() => expect(answers).toHaveLength(1), 30_000)
    first.abort(new Error('gone'))
    await expect(one).rejects.toThrow('gone')
    answers[0]?.()
    expect(await two).toEqual(['users/1'])
    expect(server.requests).toHaveLength(1)
  })

  test('is polled, and changed and new entries are reported', async () => {
    const body: { id: number; name: string }[] = [{ id: 1, name: 'a' }]
    server.answer = (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const provider = open([{ template: 'users/{id}', list: { from: 'users' } }], { poll: 100 })
    const ended = new AbortController()
    const changes = (await provider.watch?.(ended.signal))?.[Symbol.asyncIterator]()
    body[0] = { id: 1, name: 'b' }
    expect(await changes?.next()).toEqual({ done: false, value: { path: 'users/1' } })
    body.push({ id: 2, name: 'c' })
    expect(await changes?.next()).toEqual({ done: false, value: { path: 'users/2', listed: true } })
    ended.abort()
  })

  test('uses no older answer after a change was reported, and neither does a read', async () => {
    const body = [{ id: 1, name: 'a' }]
    server.answer = ({ url }, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(url?.endsWith('/1') ? body[0] : body))
    const provider = open([{ template: 'users/{id}', list: { from: 'users' } }], { poll: 100 })
    const view = viewOf(provider)
    const ended = new AbortController()
    const changes = (await provider.watch?.(ended.signal))?.[Symbol.asyncIterator]()
    expect(JSON.stringify(await view.read('api://x/users/1'))).toContain('\\"a\\"')
    expect((await view.list()).items).toHaveLength(1)
    body[0] = { id: 1, name: 'b' }
    body.push({ id: 2, name: 'c' })
    await changes?.next()
    expect(JSON.stringify(await view.read('api://x/users/1'))).toContain('\\"b\\"')
    expect((await view.list()).items).toHaveLength(2)
    ended.abort()
  })
})

describe('credentials of the api provider', () => {
  const secret = 'the-token-of-the-operator'
  const options = { headers: { authorization: `Bearer ${secret}`, 'x-team': 'a' }, secrets: [secret] }

  test('are sent to the API, and removed from its answers', async () => {
    server.answer = (request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ sent: request.headers, again: Buffer.from(secret).toString('base64') }))
    const { contents } = await viewOf(open([{ template: 'me' }], options)).read('api://x/me')
    expect(server.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${secret}`, 'x-team': 'a' })
    const text = JSON.stringify(contents)
    expect(text).toContain('[redacted]')
    expect(text).not.toContain(secret)
    expect(text).not.toContain(Buffer.from(secret).toString('base64'))
  })

  test('are not sent to the target of a redirect, even if it leads back to the API', async () => {
    const other = await startWeb((request, response) => {
      if (request.url === '/back') return response.writeHead(302, { location: `${server.url}/v1/end` }).end()
      return response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
    server.answer = (request, response) => {
      if (request.url === '/v1/end') return response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      return response.writeHead(307, { location: `${other.url}${request.url?.slice(3)}` }).end()
    }
    const view = viewOf(open([{ template: 'out' }, { template: 'back' }], { ...options, redirects: [other.url] }))
    await view.read('api://x/out')
    await view.read('api://x/back')
    expect(other.requests.map(({ headers }) => headers.authorization ?? headers['x-team'])).toEqual([
      undefined,
      undefined,
    ])
    const last = server.requests.at(-1)
    expect([last?.url, last?.headers.authorization]).toEqual(['/v1/end', undefined])
    other.close()
  })
})

test.each([
  [{ template: '/users' }],
  [{ template: 'users/{+id}' }],
  [{ template: 'users{/id}' }],
  [{ template: 'users/{id*}' }],
  [{ template: 'users/{a}{b}' }],
  [{ template: 'users/{id:3}' }],
  [{ template: 'users/{id}', to: 'u/{+id}' }],
  [{ template: 'users/{id}', to: 'u/{other}' }],
  [{ template: 'users/../{id}' }],
  [{ template: 'users/{id}#x' }],
  [{ template: 'users/' }],
  [{ template: 'a/{x}/{y}', list: { from: 'a' } }],
  [{ template: 'a/{x}', list: { from: '../a' } }],
  [{ template: 'a/{x}', list: { from: 'a', items: 'x' } }],
])('the route %j of an api mount is refused', (route) => {
  expect(() => open([route as RouteOptions])).toThrow(expect.objectContaining({ kind: 'invalid' }))
})
