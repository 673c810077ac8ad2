import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findTokenFile } from '../../src/config/auth.ts'
import { loadConfig } from '../../src/config/load.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-config-auth-'))
  await mkdir(join(folder, 'docs'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function load(auth: unknown, env: Readonly<Record<string, string>> = {}) {
  const file = join(folder, 'hikidashi.json')
  const mounts = { 'docs://a': { provider: 'files', root: 'docs', scopes: ['db:read'] } }
  await writeFile(file, JSON.stringify({ mounts, http: { auth } }))
  return loadConfig(file, { env })
}

const issuer = { issuer: 'https://login.example.org/', jwks: 'https://login.example.org/jwks' }
const introspection = {
  url: 'https://login.example.org/introspect',
  clientId: 'me',
  clientSecret: { env: 'AS_SECRET' },
}

describe('http.auth', () => {
  test('is parsed with its secrets, absolute paths, and rules in one form', async () => {
    const auth = {
      resource: 'https://context.example.org/mcp',
      issuers: [
        {
          ...issuer,
          introspection,
          maxAge: '1h',
          roles: ['reader', { claim: 'groups', map: { a: 'x', b: ['y', 'z'] } }],
        },
        { issuer: 'http://127.0.0.1:9000', jwks: 'http://localhost:9000/jwks', roles: [{ claim: ['a', 'b'] }] },
      ],
      scopes: ['base', { scopes: ['watch'], methods: ['subscriptions/listen'] }],
      implies: { admin: ['base', 'watch'] },
      tokens: 'tokens.json',
    }
    const loaded = await load(auth, { AS_SECRET: 'the secret' })
    expect('config' in loaded && loaded.config.auth).toEqual({
      resource: 'https://context.example.org/mcp',
      issuers: [
        {
          ...issuer,
          introspection: { ...introspection, clientSecret: 'the secret' },
          maxAge: 3_600_000,
          roles: [{ roles: ['reader'] }, { claim: ['groups'], map: { a: ['x'], b: ['y', 'z'] } }],
        },
        { issuer: 'http://127.0.0.1:9000', jwks: 'http://localhost:9000/jwks', roles: [{ claim: ['a', 'b'] }] },
      ],
      scopes: [{ scopes: ['base'] }, { scopes: ['watch'], methods: ['subscriptions/listen'] }],
      implies: { admin: ['base', 'watch'] },
      tokens: join(folder, 'tokens.json'),
    })
  })

  test.each<[string, unknown, string, RegExp]>([
    ['no members', {}, 'http.auth', /no client can authenticate/],
    ['no issuers', { issuers: [] }, 'http.auth.issuers', /empty/],
    ['no audiences', { issuers: [{ ...issuer, audiences: [] }] }, 'http.auth.issuers[0].audiences', /empty/],
    ['an empty audience', { issuers: [{ ...issuer, audiences: [''] }] }, 'http.auth.issuers[0].audiences[0]', /empty/],
    [
      'no way to check tokens',
      { issuers: [{ issuer: issuer.issuer }] },
      'http.auth.issuers[0]',
      /its tokens cannot be checked/,
    ],
    ['an issuer twice', { issuers: [issuer, issuer] }, 'http.auth.issuers', /twice/],
    ...[
      'http://login.example.org/jwks',
      'http://127.0.0.1.example.org/jwks',
      'http://10.0.0.1/jwks',
      'http://[fd00::1]/jwks',
      'https://user:password@login.example.org/jwks',
      'https://login.example.org/jwks?x=1',
      'https://login.example.org/jwks#x',
      'https://login.example.org:99999/jwks',
      'https://login.example.org/a/../jwks',
      'https://login.example.org\\@evil.example.org/',
      'file:///etc/passwd',
      'ftp://login.example.org/',
      'https:///jwks',
      'jwks.json',
    ].map((jwks): [string, unknown, string, RegExp] => [
      `keys at ${jwks}`,
      { issuers: [{ ...issuer, jwks }] },
      'http.auth.issuers[0].jwks',
      /The URL is not allowed here/,
    ]),
    [
      'an algorithm with a shared secret',
      { issuers: [{ ...issuer, algorithms: ['HS256'] }] },
      'http.auth.issuers[0].algorithms[0]',
      /HS256/,
    ],
    [
      'an algorithm without a signature',
      { issuers: [{ ...issuer, algorithms: ['none'] }] },
      'http.auth.issuers[0].algorithms[0]',
      /none/,
    ],
    ['refresh tokens', { tokens: 't', scopes: ['offline_access'] }, 'http.auth.scopes[0]', /./],
    ['a scope with a space', { tokens: 't', implies: { a: ['b c'] } }, 'http.auth.implies.a[0]', /name of a scope/],
    ['a scope with a quote', { tokens: 't', implies: { a: ['b"'] } }, 'http.auth.implies.a[0]', /name of a scope/],
    [
      'a literal secret',
      { issuers: [{ ...issuer, introspection: { ...introspection, clientSecret: 'hunter2' } }] },
      'http.auth.issuers[0].introspection.clientSecret',
      /literal secret/,
    ],
    ['a file that is served', { tokens: 'docs/tokens.json' }, 'http.auth.tokens', /serves/],
    ['a misspelt key', { issuers: [{ ...issuer, audience: ['x'] }] }, 'http.auth.issuers[0].audience', /audiences/],
  ])('is refused with %s', async (_, auth, key, message) => {
    const loaded = await load(auth, { AS_SECRET: 'the secret' })
    const problems = 'problems' in loaded ? loaded.problems : []
    expect(problems).toMatchObject([{ key }])
    expect(`${problems[0]?.message} ${problems[0]?.fix}`).toMatch(message)
    expect(JSON.stringify(problems)).not.toContain('hunter2')
  })

  test('accepts opaque tokens of a single issuer only', async () => {
    const two = [issuer.issuer, 'https://other.example.org'].map((name) => ({ issuer: name, introspection }))
    const loaded = await load({ issuers: two }, { AS_SECRET: 'x' })
    expect('problems' in loaded && loaded.problems).toMatchObject([{ key: 'http.auth.issuers' }])
  })

  test.each([[{}], [{ AS_SECRET: '' }], [{ AS_SECRET: 'undefined' }]])(
    'is refused if the environment %j has no secret for the introspection',
    async (env) => {
      const loaded = await load({ issuers: [{ issuer: issuer.issuer, introspection }] }, env)
      expect('problems' in loaded && loaded.problems).toMatchObject([
        { key: 'http.auth.issuers[0].introspection.clientSecret' },
      ])
    },
  )

  test('has its token file found even if other keys are wrong', async () => {
    const file = join(folder, 'wrong.json')
    await writeFile(file, '{ "mounts": 7, "http": { "auth": { "tokens": "t.json", "issuers": 7 } } }')
    expect(await findTokenFile(file)).toBe(join(folder, 't.json'))
    await writeFile(file, '{}')
    expect(await findTokenFile(file)).toBeUndefined()
  })
})
