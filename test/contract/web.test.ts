import { describe, test, vi } from 'vitest'
import { api } from '../../src/providers/api/index.ts'
import { inline } from '../../src/providers/inline/index.ts'
import { web } from '../../src/providers/web/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { documents } from '../../src/wrap/documents.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { startWeb } from '../support/web.ts'

// The first test waits for all that is checked.
vi.setConfig({ testTimeout: 120_000 })

const small = { text: 'Hello, 世界\n', mimeType: 'text/plain' }

describeProvider(
  { describe, test },
  'the provider inline with several resources',
  () => ({
    provider: inline({
      resources: {
        greeting: { text: small.text, title: 'A greeting' },
        'a-b': { text: '' },
        'a/b.json': { text: '{"a":1}', mimeType: 'application/json' },
        'a.txt': { text: 'x\ny\nz\n' },
        𠮷: { text: '吉' },
        '｡': { bytes: Buffer.from([0, 1, 2, 255]), mimeType: 'application/octet-stream' },
      },
    }),
    expectation: {
      entries: {
        greeting: small,
        'a-b': { text: '' },
        'a/b.json': { text: '{"a":1}', mimeType: 'application/json' },
        'a.txt': { text: 'x\ny\nz\n' },
        𠮷: { text: '吉' },
        '｡': { bytes: Buffer.from([0, 1, 2, 255]) },
      },
      missing: ['a', 'greeting/x', 'hasOwnProperty', '__proto__', '..'],
    },
  }),
  { through: { sliced } },
)

describeProvider({ describe, test }, 'the provider inline with one resource at the address itself', () => ({
  provider: inline({ resources: { '': { data: 'data:text/plain;charset=shift_jis,%93%fa%96%7b' } } }),
  expectation: { entries: { '': { text: '日本', mimeType: 'text/plain' } }, missing: ['x', 'data'] },
}))

const pages: Readonly<Record<string, readonly [type: string, body: string | Buffer]>> = {
  '/site': ['text/html; charset=utf-8', '<title>Home</title><h1>Home</h1>'],
  '/site/guide': ['text/html; charset=shift_jis', Buffer.from([0x3c, 0x70, 0x3e, 0x93, 0xfa, 0x96, 0x7b])],
  '/site/notes/a.md': ['text/markdown', '# A\n\nb\n'],
  '/site/%E6%97%A5%20x.txt': ['text/plain', 'spaced'],
  '/site/pixel.png': ['image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3])],
  '/site/empty': ['text/plain', ''],
}

describeProvider(
  { describe, test },
  'the provider web',
  async () => {
    const server = await startWeb((request, response) => {
      const found = pages[request.url ?? '']
      if (found === undefined) return response.writeHead(404).end('nothing here')
      return response.writeHead(200, { 'content-type': found[0], etag: `"${request.url}"` }).end(found[1])
    })
    return {
      provider: web({
        url: `${server.url}/site`,
        allowAddresses: ['127.0.0.1'],
        pages: ['', 'guide', 'notes/a.md', '日 x.txt', 'pixel.png', 'empty'].map((path) => ({ path })),
        match: ['more/**'],
      }),
      expectation: {
        entries: {
          '': { text: '<title>Home</title><h1>Home</h1>', mimeType: 'text/html' },
          guide: { text: '<p>日本', mimeType: 'text/html' },
          'notes/a.md': { text: '# A\n\nb\n', mimeType: 'text/markdown' },
          '日 x.txt': { text: 'spaced' },
          'pixel.png': { bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]), mimeType: 'image/png' },
          empty: { text: '' },
        },
        missing: ['notes', 'more/x', 'guide/x', 'Guide'],
      },
      dispose: () => server.close(),
    }
  },
  { through: { documents: (inner) => documents(inner) } },
)

const users = Array.from({ length: 25 }, (_, at) => ({
  id: at + 1,
  name: `User ${at + 1}`,
  at: '2026-01-02T03:04:05Z',
}))

describeProvider(
  { describe, test },
  'the provider api',
  async () => {
    const server = await startWeb((request, response) => {
      const json = (value: unknown, headers = {}) =>
        response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
      const page = Number(searchParams.get('page') ?? 1)
      if (pathname === '/v1/users')
        return json(
          users.slice((page - 1) * 10, page * 10),
          page < 3 ? { link: `</v1/users?page=${page + 1}>; rel="next"` } : {},
        )
      const id = /^\/v1\/users\/(\d+)$/.exec(pathname)?.[1]
      const user = users.find((one) => String(one.id) === id)
      if (user !== undefined) return json(user)
      return pathname === '/v1/status' ? json({ ok: true }) : response.writeHead(404).end()
    })
    return {
      provider: api({
        url: `${server.url}/v1`,
        allowAddresses: ['127.0.0.0/8'],
        routes: [
          {
            template: 'users/{id}',
            title: 'A user',
            list: { from: 'users', title: '/name', modified: '/at', next: 'link' },
          },
          { template: 'status' },
        ],
      }),
      expectation: {
        entries: Object.fromEntries(
          users.map((user) => [`users/${user.id}`, { text: JSON.stringify(user), mimeType: 'application/json' }]),
        ),
        missing: ['users', 'users/26', 'users/1/x', 'users/%31', 'x'],
      },
      dispose: () => server.close(),
    }
  },
  { through: { sliced } },
)
