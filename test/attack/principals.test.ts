import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { limited } from '../../src/wrap/limited.ts'
import { type Asked, type Authorized, ask, read, serveAuthorized } from '../support/authorized.ts'
import { live, until } from '../support/live.ts'

// Real processes, and many requests: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const shared = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-principals-')))
const put = (path: string, text: string) => {
  mkdirSync(join(shared, path, '..'), { recursive: true })
  writeFileSync(join(shared, path), text)
}
const key = ['AKIA', 'QZ7T3LMN2WXYB5KD'].join('')
const people = ['ann', 'bob', 'eve'] as const
let server: Authorized
const tokens: Record<string, string> = {}

beforeAll(async () => {
  for (const person of people) put(`files/${person}/own.txt`, `of ${person}\n`)
  put('files/all.txt', 'for all\n')
  put('files/page.html', '<h1>A page</h1><p>of ann</p>')
  put('redacted/keys.txt', `key = ${key}\n`)
  const mounts = {
    'docs://people': {
      provider: 'files',
      root: join(shared, 'files'),
      access: [
        { allow: ['*'], match: '/all.txt' },
        ...people.map((name) => ({ allow: [name], match: `${name}/**` })),
        { allow: ['ann'], match: '*.html' },
      ],
      cache: { ttl: '1m', scope: 'public' },
    },
    'docs://public': {
      provider: 'files',
      root: join(shared, 'redacted'),
      redact: 'mask',
      cache: { ttl: '1m', scope: 'public' },
    },
  }
  server = await serveAuthorized({ tokens: 'tokens.json' }, mounts)
  for (const person of people) tokens[person] = await server.token('add', '--role', person)
})
afterAll(async () => {
  await server?.stop()
  rmSync(shared, { recursive: true, force: true })
})

const own = (name: string) => `docs://people/${name}/own.txt`
const as = (name: string, uri: string) => read(server.url, tokens[name], uri)
const shapeOf = ({ status, text }: Asked, uri: string) => [status, text.replaceAll(JSON.stringify(uri), 'URI')]
const contentOf = (asked: Asked) =>
  (asked.json().result?.contents as readonly { readonly text: string }[] | undefined)?.[0]?.text

describe('answers for one principal are not given to another:', () => {
  test('a resource that one principal has just read stays absent for the others (CP01)', async () => {
    for (let round = 0; round < 3; round++) {
      expect(contentOf(await as('ann', own('ann')))).toBe('of ann\n')
      expect(contentOf(await as('ann', 'docs://people/page.html'))).toContain('A page')
      for (const path of ['ann/own.txt', 'page.html', 'page.html?lines=1-2']) {
        const [name = '', query] = path.split('?')
        const denied = `docs://people/${path}`
        const absent = `docs://people/${name.replace(/[^/]+$/, 'none')}${query === undefined ? '' : `?${query}`}`
        expect(shapeOf(await as('bob', denied), denied)).toEqual(shapeOf(await as('bob', absent), absent))
      }
    }
  })

  test('lists, and resources of a mount with access rules, are marked private, and a resource of a public mount without rules is marked public (CP02)', async () => {
    for (const method of ['resources/list', 'resources/templates/list'])
      expect((await ask(server.url, tokens.ann, method)).json().result?.cacheScope).toBe('private')
    expect((await as('ann', 'docs://people/all.txt')).json().result?.cacheScope).toBe('private')
    expect((await as('ann', 'docs://public/keys.txt')).json().result?.cacheScope).toBe('public')
  })

  test('secrets are redacted for every principal, in any order of requests (CP03)', async () => {
    for (const name of ['ann', 'eve', 'bob', 'ann']) {
      const { text } = await as(name, 'docs://public/keys.txt')
      expect(text).not.toContain(key)
      expect(text).toContain('[redacted]')
    }
  })

  test('headers of a client that are not its token, such as cookies or X-User, make no difference (CP04)', async () => {
    const uri = own('ann')
    const plain = shapeOf(await as('ann', uri), uri)
    const denied = shapeOf(await as('bob', uri), uri)
    for (const headers of [
      { 'accept-language': 'ja' },
      { 'user-agent': 'ann' },
      { cookie: 'session=ann' },
      { 'x-forwarded-for': '10.0.0.1', 'x-forwarded-host': 'ann' },
      { 'x-user': 'ann', 'x-roles': 'ann' },
    ] as Readonly<Record<string, string>>[]) {
      expect(shapeOf(await ask(server.url, tokens.ann, 'resources/read', { uri }, headers), uri)).toEqual(plain)
      expect(shapeOf(await ask(server.url, tokens.bob, 'resources/read', { uri }, headers), uri)).toEqual(denied)
    }
  })

  test('many principals that ask at once get their own answers (CP08)', async () => {
    const asked = Array.from({ length: 300 }, (_, i) => {
      const who = people[i % 3] ?? 'ann'
      const whose = people[(i * 7 + Math.floor(i / 3)) % 3] ?? 'ann'
      return { who, whose, answer: as(who, own(whose)) }
    })
    for (const { who, whose, answer } of asked) {
      const { text } = await answer
      if (who === whose) expect(text).toContain(`of ${who}\\n`)
      else expect(text).not.toContain(`of ${whose}`)
    }
  })

  test('proxies may cache no answer (CP14)', async () => {
    for (const answer of [
      await as('ann', own('ann')),
      await as('bob', own('ann')),
      await read(server.url, undefined, own('ann')),
    ])
      expect(answer.headers.get('cache-control')).toContain('no-store')
  })
})

describe('principals of one catalog', () => {
  const address = 'mem://m'
  const principalOf = (id: string): Principal => ({ id, roles: [id] })

  test('that may see a new resource read it at once and are notified, and others are not notified (CP06)', async () => {
    const provider = live({ 'ann/a': 'a' })
    const access = compileAccess([{ allow: ['ann'], match: 'ann/**' }])
    const catalog = createCatalog({ mounts: [{ address, provider: limited(provider), access }] })
    const heard: Record<string, string[]> = { ann: [], bob: [] }
    for (const name of ['ann', 'bob']) {
      const subscription = catalog.view(principalOf(name)).subscribe?.(({ uris }) => heard[name]?.push(...uris))
      await subscription?.add([`${address}/ann/new`])
    }
    const ann = catalog.view(principalOf('ann'))
    await expect(ann.read(`${address}/ann/new`)).rejects.toMatchObject({ kind: 'not-found' })
    provider.set('ann/new', { text: 'new' })
    expect((await ann.read(`${address}/ann/new`)).contents).toMatchObject([{ text: 'new' }])
    await until(() => heard.ann?.length === 1)
    expect(heard.bob).toEqual([])
    await catalog.close()
  })

  test('that ask for the same resource a thousand times at once each get it only if their own rules allow it (CP07)', async () => {
    const provider = live({ secret: 'the secret' })
    const access = compileAccess([{ allow: ['ann'] }])
    const catalog = createCatalog({ mounts: [{ address, provider: limited(provider, { waiting: 2000 }), access }] })
    const answers = await Promise.allSettled(
      Array.from({ length: 1000 }, (_, i) =>
        catalog.view(principalOf(i % 2 === 0 ? 'ann' : `other${i}`)).read(`${address}/secret`),
      ),
    )
    expect(answers.every(({ status }, i) => status === (i % 2 === 0 ? 'fulfilled' : 'rejected'))).toBe(true)
    await catalog.close()
  })

  test('learn neither size, date nor version of a hidden resource (CP11)', async () => {
    const facts = { text: 'x'.repeat(4242), size: 4242, modified: 1_700_000_000_000, version: 'v-of-the-secret' }
    const provider = live({ 'open/a': 'a', 'shut/secret': facts })
    const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'shut/**' }])
    const view = createCatalog({ mounts: [{ address, provider, access }], secret: Buffer.alloc(32, 7) }).view(
      principalOf('ann'),
    )
    const answers = await Promise.allSettled([
      view.list(),
      view.mounts(),
      view.templates(),
      view.directory({ uri: `${address}/` }),
      view.directory({ uri: `${address}/shut/` }),
      view.read(address),
      view.read(`${address}/`),
      view.read(`${address}/shut/secret`),
      view.complete({ uriTemplate: `${address}/{+path}`, argument: { name: 'path', value: '' } }),
    ])
    const text = JSON.stringify(answers.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason))))
    expect(text).toContain('open')
    expect(text).not.toMatch(/4242|1700000000000|v-of-the-secret|shut/)
  })
})
