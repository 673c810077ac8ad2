import {
  checkPrimeSync,
  createHash,
  createPublicKey,
  generateKeyPairSync,
  generatePrimeSync,
  verify,
} from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { callAt, createSessionOwner } from '../../src/server/auth/caller.ts'
import {
  type AuthorizationOptions,
  createScopeRequirements,
  judgeClaims,
  type RoleRule,
  withImpliedScopes,
} from '../../src/server/auth/claims.ts'
import { fetchJson } from '../../src/server/auth/fetch.ts'
import { createAuthorizer, createIntrospectionVerifier } from '../../src/server/auth/index.ts'
import { createJwtVerifier, createKeySet, createMemo } from '../../src/server/auth/jwt.ts'
import { createTokenVerifier } from '../../src/server/auth/tokens.ts'
import { rawToken } from '../attack/harness/issuer.ts'
import { until } from '../support/live.ts'

const servers: Server[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

/** A server of keys, which counts what it is asked for, and may be down. */
async function serveKeys(keys: readonly JWK[]) {
  const state = { keys, asked: 0, down: false }
  const server = createServer((request, response) => {
    state.asked++
    if (state.down) request.socket.destroy()
    else response.end(JSON.stringify({ keys: state.keys }))
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks` }
}

const makeKey = async (kid: string): Promise<JWK> => {
  const { publicKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(publicKey)), kid, alg: 'ES256' }
}

describe('the keys of an issuer', () => {
  const later = (ms: number) => vi.setSystemTime(Date.now() + ms) && vi.advanceTimersByTime(ms)
  const fakeTime = () => vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  const minutes = 60_000

  test('are fetched once for many callers, and again when they are old', async () => {
    fakeTime()
    const { state, url } = await serveKeys([await makeKey('a')])
    const keys = createKeySet(url, createLocalJWKSet, () => {})
    await Promise.all(Array.from({ length: 20 }, () => keys.current()))
    expect(state.asked).toBe(1)
    later(9 * minutes)
    await keys.current()
    expect(state.asked).toBe(1)
    later(2 * minutes)
    await keys.current()
    expect(state.asked).toBe(2)
  })

  test('are fetched again for an unknown key id, but at most once in 30 seconds', async () => {
    fakeTime()
    const { state, url } = await serveKeys([await makeKey('a')])
    const keys = createKeySet(url, createLocalJWKSet, () => {})
    await keys.current()
    expect(await keys.refreshed()).toBeDefined()
    expect(await keys.refreshed()).toBeUndefined()
    later(29_000)
    expect(await keys.refreshed()).toBeUndefined()
    later(2000)
    expect(await keys.refreshed()).toBeDefined()
    expect(state.asked).toBe(3)
  })

  test('stay valid for some hours while the issuer is down, and not for ever', async () => {
    fakeTime()
    const { state, url } = await serveKeys([await makeKey('a')])
    const keys = createKeySet(url, createLocalJWKSet, () => {})
    const first = await keys.current()
    state.down = true
    later(3 * 60 * minutes)
    expect(await keys.current()).toBe(first)
    // A name that is not known may be that of a new key: nobody can say.
    await expect(keys.refreshed()).rejects.toMatchObject({ kind: 'unavailable' })
    later(2 * 60 * minutes)
    await expect(keys.current()).rejects.toMatchObject({ kind: 'unavailable' })
    const asked = state.asked
    await expect(keys.current()).rejects.toMatchObject({ kind: 'unavailable' })
    expect(state.asked, 'nobody is asked again at once').toBe(asked)
    state.down = false
    later(3000)
    expect(await keys.current()).toBeDefined()
  })

  test('give an error if the answer of the issuer contains no valid key', async () => {
    for (const keys of ['none', undefined, [7]] as unknown as readonly JWK[][]) {
      const { url } = await serveKeys(keys)
      await expect(createKeySet(url, createLocalJWKSet, () => {}).current()).rejects.toMatchObject({
        kind: 'unavailable',
      })
    }
  })
})

describe('a signed token', () => {
  const verify = async (keys: readonly JWK[], token: string) => {
    const { url } = await serveKeys(keys as JWK[])
    const issuer = { issuer: 'https://issuer.example', audiences: ['us'], jwks: url }
    return (await createJwtVerifier([issuer], {}, () => {})).verify(token)
  }
  const claims = () => ({
    iss: 'https://issuer.example',
    aud: 'us',
    sub: 'ada',
    exp: Math.floor(Date.now() / 1000) + 600,
  })
  const good = expect.objectContaining({ grant: expect.anything() })

  test('is valid if it was signed with either of two keys that have the same id', async () => {
    const pairs = await Promise.all([1, 2, 3].map(() => generateKeyPair('ES256', { extractable: true })))
    const [one, two] = await Promise.all(
      pairs.map(async ({ publicKey }) => ({ ...(await exportJWK(publicKey)), kid: 'same', alg: 'ES256' })),
    )
    if (one === undefined || two === undefined) throw new Error('no keys')
    const tokens = await Promise.all(
      pairs.map(({ privateKey }) =>
        new SignJWT(claims()).setProtectedHeader({ alg: 'ES256', kid: 'same', typ: 'at+jwt' }).sign(privateKey),
      ),
    )
    for (const token of tokens.slice(0, 2)) expect(await verify([one, two], token)).toEqual(good)
    expect(await verify([one, two], tokens[2] ?? '')).toEqual({ fault: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' })
  })

  test('is invalid under an RSA key whose exponent is 1, even or missing', async () => {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(publicKey)), kid: 'rsa', alg: 'RS256' }
    const header = { alg: 'RS256', kid: 'rsa', typ: 'at+jwt' }
    const token = await new SignJWT(claims()).setProtectedHeader(header).sign(privateKey)
    expect(await verify([jwk], token)).toEqual(good)
    // With an exponent of 1 the padded digest is its own signature (RFC 8017, section 9.2).
    const signed = [header, claims()].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const digest = Buffer.concat([
      Buffer.from('3031300d060960864801650304020105000420', 'hex'),
      createHash('sha256').update(signed).digest(),
    ])
    const padded = Buffer.concat([
      Buffer.from([0, 1]),
      Buffer.alloc(256 - 3 - digest.length, 0xff),
      Buffer.from([0]),
      digest,
    ])
    for (const e of ['AQ', 'AAE', 'Ag', '', undefined]) {
      const { e: _, ...rest } = jwk
      const key = e === undefined ? rest : { ...rest, e }
      // It is as if there were no such key.
      expect(await verify([key], `${signed}.${padded.toString('base64url')}`), e).toEqual({
        fault: 'ERR_JWKS_NO_MATCHING_KEY',
      })
    }
  })
})

describe('a weak public key', () => {
  const claims = (n: number) => ({
    ...{ iss: 'https://issuer.example', aud: 'us', sub: 'mallory', jti: String(n) },
    exp: Math.floor(Date.now() / 1000) + 600,
  })
  /** Verifies tokens under one set of keys, and returns what the log says of the keys. */
  const underKeys = async (keys: readonly object[], tokens: readonly string[]) => {
    const { url } = await serveKeys(keys as JWK[])
    const issuer = { issuer: 'https://issuer.example', audiences: ['us'], jwks: url }
    const said: unknown[] = []
    const log = (level: string, text: string, facts?: object) => void said.push({ level, text, ...facts })
    const verifier = await createJwtVerifier([issuer], {}, log)
    const verdicts = []
    for (const token of tokens) verdicts.push(await verifier.verify(token))
    return { verdicts, said }
  }
  const unknown = { fault: 'ERR_JWKS_NO_MATCHING_KEY' }
  const little = (value: bigint, sign = 0) => {
    const bytes = Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
    bytes[31] = (bytes[31] ?? 0) | (sign << 7)
    return bytes
  }

  const prime = 2n ** 255n - 19n
  const order8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n
  const ys = [0n, 1n, prime - 1n, prime, prime + 1n, order8, prime - order8]
  const encodings = ys.flatMap((y) => [little(y, 0), little(y, 1)])

  test.each(encodings.map((bytes) => [bytes.toString('hex'), bytes] as const))(
    'does not verify a token with a forged signature: the Ed25519 point %s of small order',
    async (_, bytes) => {
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url'), kid: 'small', alg: 'EdDSA' }
      const header = { alg: 'EdDSA', kid: 'small', typ: 'at+jwt' }
      // The neutral point and 0: valid whenever the digest is a multiple of the order of the key, one time in eight at least.
      const signature = Buffer.concat([little(1n), Buffer.alloc(32)])
      const tokens = Array.from({ length: 64 }, (_, n) => rawToken(header, claims(n), signature.toString('base64url')))
      const { verdicts, said } = await underKeys([jwk], tokens)
      expect(verdicts).toEqual(tokens.map(() => unknown))
      expect(said).toEqual([
        {
          level: 'warn',
          text: 'a key of an issuer is not used',
          jwks: expect.any(String),
          kid: 'small',
          why: expect.any(String),
        },
      ])
    },
  )

  // From 24 on, Node may refuse it by itself.
  test.runIf(Number.parseInt(process.versions.node, 10) < 24)('makes Node itself accept a forged signature', () => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: little(1n).toString('base64url') }
    const signature = Buffer.concat([little(1n), Buffer.alloc(32)])
    expect(verify(null, Buffer.from('anything'), createPublicKey({ key: jwk, format: 'jwk' }), signature)).toBe(true)
  })

  const bytesOf = (value: bigint) => {
    const hex = value.toString(16)
    return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url')
  }
  const rsa = (over: object) => async () => {
    const { publicKey } = await generateKeyPair('RS256', { extractable: true })
    return { ...(await exportJWK(publicKey)), ...over }
  }
  const ec = (over: object) => async () => ({ ...(await makeKey('x')), ...over })
  const ed448 = (y: bigint, sign = 0) => {
    const bytes = Buffer.from(y.toString(16).padStart(114, '0'), 'hex').reverse()
    bytes[56] = sign << 7
    return async () => ({ kty: 'OKP', crv: 'Ed448', x: bytes.toString('base64url') })
  }
  const prime448 = 2n ** 448n - 2n ** 224n - 1n
  const cases: Readonly<Record<string, () => Promise<object>>> = {
    'RSA with the exponent 1': rsa({ e: 'AQ' }),
    'RSA with the exponent 3': rsa({ e: 'Aw' }),
    'RSA with an even exponent': rsa({ e: bytesOf(65_538n) }),
    'RSA with an exponent of 0': rsa({ e: 'AA' }),
    'RSA without an exponent': rsa({ e: undefined }),
    'RSA with an exponent that is longer than 256 bits': rsa({ e: bytesOf(2n ** 300n + 1n) }),
    'RSA with an even modulus': rsa({ n: bytesOf(2n ** 2047n + 2n) }),
    'RSA with a modulus that 3 divides': rsa({ n: bytesOf(3n ** 1293n) }),
    'RSA with a prime as its modulus': async () => rsa({ n: bytesOf(generatePrimeSync(2048, { bigint: true })) })(),
    'RSA with the square of a prime': async () =>
      rsa({ n: bytesOf(generatePrimeSync(1024, { bigint: true }) ** 2n) })(),
    'RSA with two factors that are close together': async () => {
      const factor = generatePrimeSync(1024, { bigint: true })
      let other = factor + 2n
      while (!checkPrimeSync(other)) other += 2n
      return rsa({ n: bytesOf(factor * other) })()
    },
    'RSA with 1024 bits': async () =>
      generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }),
    'RSA with 2047 bits': rsa({ n: bytesOf(2n ** 2046n + 1n) }),
    'RSA without a modulus': rsa({ n: undefined }),
    'EC with a point that is not on its curve': ec({ y: Buffer.alloc(32, 1).toString('base64url') }),
    'EC with the point 0, 0': ec({
      x: Buffer.alloc(32).toString('base64url'),
      y: Buffer.alloc(32).toString('base64url'),
    }),
    'EC on another curve than its point': ec({ crv: 'P-384' }),
    'EC without a coordinate': ec({ y: undefined }),
    'Ed448 with the neutral point': ed448(1n),
    'Ed448 with the point of order 2': ed448(prime448 - 1n),
    'Ed448 with a point of order 4': ed448(0n, 1),
    'Ed448 with 0 that is not reduced': ed448(prime448),
    'Ed448 with 1 that is not reduced': ed448(prime448 + 1n),
    X25519: async () => generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }),
    'for encryption': ec({ use: 'enc' }),
    'for signing alone': ec({ key_ops: ['sign'] }),
    'for the derivation of keys': ec({ key_ops: ['deriveKey'] }),
    'for no operation': ec({ key_ops: [] }),
    'a shared secret': async () => ({ kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }),
    'published with its private part': async () =>
      exportJWK((await generateKeyPair('ES256', { extractable: true })).privateKey),
    'of an unknown kind': async () => ({ kty: 'XYZ' }),
    'a number': async () => 7 as unknown as object,
    null: async () => null as unknown as object,
  }

  test.each(Object.entries(cases))('is left out of a key set, and the other keys are used: %s', async (_, make) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const good = { ...(await exportJWK(publicKey)), kid: 'good', alg: 'ES256', use: 'sig', key_ops: ['verify'] }
    const header = { alg: 'ES256', kid: 'good', typ: 'at+jwt' }
    const token = await new SignJWT(claims(0)).setProtectedHeader(header).sign(privateKey)
    const { verdicts, said } = await underKeys([await make(), good], [token])
    expect(verdicts).toEqual([expect.objectContaining({ grant: expect.anything() })])
    expect(said).toMatchObject([
      { level: 'warn', text: 'a key of an issuer is not used', why: expect.stringMatching(/\.$/) },
    ])
  })

  test.each(['RS256', 'PS384', 'ES256', 'ES384', 'ES512', 'EdDSA'])(
    'is not found in the keys that jose generates for %s',
    async (alg) => {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
      const key = { ...(await exportJWK(publicKey)), kid: 'good', alg }
      const token = await new SignJWT(claims(0))
        .setProtectedHeader({ alg, kid: 'good', typ: 'at+jwt' })
        .sign(privateKey)
      const { verdicts, said } = await underKeys([key], [token])
      expect(verdicts).toEqual([expect.objectContaining({ grant: expect.anything() })])
      expect(said).toEqual([])
    },
  )
})

describe('a fetch from an issuer', () => {
  test.each([
    ['a redirect', 302, { Location: 'http://127.0.0.1:1/' }, ''],
    ['an error', 500, {}, '{}'],
    ['too long', 200, {}, JSON.stringify('x'.repeat(300_000))],
    ['not JSON', 200, {}, '<html>'],
    ['not UTF-8', 200, {}, Buffer.from([0x22, 0xff, 0x22])],
    ['cut off', 200, { 'Content-Length': '100' }, '{}'],
  ])('fails if the answer is %s', async (_, status, headers, body) => {
    const server = createServer((request, response) => {
      response.writeHead(status, headers).write(body === '' ? ' ' : body)
      if ('Content-Length' in headers) setTimeout(() => request.socket.destroy(), 50)
      else response.end()
    }).listen(0, '127.0.0.1')
    servers.push(server)
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    await expect(fetchJson(url)).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

describe('an issuer that introspects tokens', () => {
  const askedIssuer = async () => {
    const state = { answer: { active: true, aud: 'us', sub: 'ada' } as object, asked: 0 }
    const server = createServer((_, response) => {
      state.asked++
      response.end(JSON.stringify(state.answer))
    }).listen(0, '127.0.0.1')
    servers.push(server)
    await new Promise((resolve) => server.once('listening', resolve))
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const introspection = { url: `${issuer}/introspect`, clientId: 'a:b', clientSecret: 'c d' }
    return { state, verifier: createIntrospectionVerifier({ issuer, introspection, audiences: ['us'] }, {}) }
  }

  test('is asked again while a stream depends on its answer, and the stream ends when the token is no longer active', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
    const { state, verifier } = await askedIssuer()
    const verdict = await verifier.verify('opaque')
    const end = vi.fn()
    const forget = 'grant' in verdict ? verifier.watch?.('opaque', verdict.grant, end) : undefined
    vi.advanceTimersByTime(30_000)
    // Joins the question that the watch asks.
    expect(await verifier.verify('opaque')).toEqual(verdict)
    expect([state.asked, end.mock.calls.length]).toEqual([2, 0])
    state.answer = { active: false }
    vi.advanceTimersByTime(30_000)
    await until(() => end.mock.calls.length > 0, 20_000)
    expect(state.asked).toBe(3)
    forget?.()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('gets opaque tokens and no JWT of another issuer, while tokens of this server go to their own verifier', async () => {
    const { verifier } = await askedIssuer()
    const jwtOf = (iss: string) => `e30.${Buffer.from(JSON.stringify({ iss })).toString('base64url')}.x`
    expect(verifier.takes('anything')).toBe(true)
    expect(verifier.takes(jwtOf('https://somebody.example.org'))).toBe(false)
    const ours = await createTokenVerifier('/there/is/none', () => {})
    expect([ours.takes('hkd_x'), ours.takes('anything')]).toEqual([true, false])
  })
})

describe('the claims of a token', () => {
  const issuer = { issuer: 'https://login.example.org' }
  const exp = Math.floor(Date.now() / 1000) + 600
  const rolesOf = (rules: readonly RoleRule[], claims: Readonly<Record<string, unknown>>) => {
    const verdict = judgeClaims({ sub: 'ada', exp, ...claims }, { ...issuer, roles: rules }, {})
    return 'grant' in verdict ? verdict.grant.principal.roles : verdict.fault
  }

  test.each<[string, readonly RoleRule[], Readonly<Record<string, unknown>>, readonly string[]]>([
    ['roles for everybody', [{ roles: ['reader'] }], {}, ['reader']],
    ['the values of a claim', [{ claim: ['roles'] }], { roles: ['b', 'a', 'b'] }, ['a', 'b']],
    ['a claim with one value', [{ claim: ['roles'] }], { roles: 'a b' }, ['a b']],
    ['a claim within others', [{ claim: ['realm_access', 'roles'] }], { realm_access: { roles: ['a'] } }, ['a']],
    ['a claim with dots', [{ claim: ['https://x.org/roles'] }], { 'https://x.org/roles': ['a'] }, ['a']],
    ['scopes', [{ claim: ['scope'], map: { one: ['a'], two: ['b', 'c'] } }], { scope: 'one two' }, ['a', 'b', 'c']],
    ['a map', [{ claim: ['groups'], map: { x: ['a'] } }], { groups: ['x', 'y'] }, ['a']],
    [
      'no role for values that are not texts',
      [{ claim: ['groups'] }],
      { groups: [1, null, ['a'], { a: 1 }, true] },
      [],
    ],
    ['no role for inherited members of an object', [{ claim: ['toString', 'name'] }], {}, []],
    [
      'no role for inherited members of a map',
      [{ claim: ['groups'], map: {} }],
      { groups: ['constructor', '__proto__'] },
      [],
    ],
  ])('give roles by the rules of the issuer: %s', (_, rules, claims, expected) => {
    expect(rolesOf(rules, claims)).toEqual(expected)
  })

  test('make a principal that no other issuer can make', () => {
    const idOf = (claims: Readonly<Record<string, unknown>>, name = issuer.issuer) => {
      const verdict = judgeClaims({ exp, ...claims }, { issuer: name }, {})
      return 'grant' in verdict ? verdict.grant.principal.id : verdict.fault
    }
    const ids = [
      idOf({ sub: 'a' }),
      idOf({ sub: 'a' }, 'https://other.example.org'),
      idOf({ client_id: 'a' }),
      idOf({ sub: '["https://login.example.org","a"]' }),
    ]
    expect(new Set(ids).size).toBe(ids.length)
    expect(idOf({ sub: 'a', client_id: 'b' })).toBe(idOf({ sub: 'a', client_id: 'c' }))
  })
})

describe('the scopes of a token', () => {
  test('imply others, also indirectly and in circles', () => {
    const implies = { admin: ['a:*', 'b'], 'a:*': ['a:x', 'a:y'], b: ['admin'] }
    expect(withImpliedScopes(['a:*'], implies)).toEqual(['a:*', 'a:x', 'a:y'])
    expect(withImpliedScopes(['b'], implies)).toEqual(['a:*', 'a:x', 'a:y', 'admin', 'b'])
    expect(withImpliedScopes(['constructor', '__proto__'], {})).toEqual(['__proto__', 'constructor'])
  })

  test('are required for the method and the mount of a request, and all at once for a batch', () => {
    const needs = createScopeRequirements(
      [{ scopes: ['base'] }, { scopes: ['watch'], methods: ['subscriptions/listen'] }],
      (uri) => (uri.startsWith('db:') ? ['db'] : []),
    )
    const of = (method: string, params?: unknown) => needs.of({ jsonrpc: '2.0', id: 1, method, params })
    expect(needs.always).toEqual(['base'])
    expect(of('resources/list')).toEqual(['base'])
    expect(of('resources/read', { uri: 'db://x' })).toEqual(['base', 'db'])
    expect(of('resources/directory/read', { uri: 'db://x' })).toEqual(['base', 'db'])
    expect(of('completion/complete', { ref: { type: 'ref/resource', uri: 'db://{x}' } })).toEqual(['base', 'db'])
    expect(of('subscriptions/listen', { notifications: { resourceSubscriptions: ['x://y', 'db://x'] } })).toEqual([
      'base',
      'watch',
      'db',
    ])
    const many = [...Array.from({ length: 5000 }, (_, index) => `x://y/${index}`), 'db://x']
    expect(of('resources/subscribe', { notifications: { resourceSubscriptions: many } })).toContain('db')
    const read = { method: 'resources/read', params: { uri: 'db://x' } }
    expect(needs.of([{ method: 'ping' }, read])).toEqual(['base', 'db'])
    for (const strange of [undefined, null, 7, [], [[read]], { method: ['subscriptions/listen'] }, { params: 7 }])
      expect(needs.of(strange)).toEqual(['base'])
  })
})

test('the cache of token checks makes one check for simultaneous callers, drops expired and the oldest results, and keeps no failure', async () => {
  const memo = createMemo<number>(2)
  let found = 0
  const find = async () => ({ value: ++found, until: Date.now() + 60_000 })
  expect(await Promise.all([memo('a', find), memo('a', find)])).toEqual([1, 1])
  await memo('b', find)
  await memo('c', find)
  expect([await memo('c', find), await memo('a', find)]).toEqual([3, 4])
  expect(await memo('now', async () => ({ value: 9, until: 0 }))).toBe(9)
  expect(await memo('now', find)).toBe(5)
  await expect(memo('x', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await memo('x', find)).toBe(6)
})

test('a timer for an expiry a month away, beyond the range of setTimeout, fires once and in time', () => {
  vi.useFakeTimers()
  const call = vi.fn()
  const month = 31 * 24 * 3600_000
  callAt(Date.now() + month, call)
  const forget = callAt(Date.now() + month, call)
  callAt(Number.POSITIVE_INFINITY, call)
  vi.advanceTimersByTime(month - 1000)
  expect(call).not.toHaveBeenCalled()
  forget()
  vi.advanceTimersByTime(2000)
  expect(call).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(10 * month)
  expect(call).toHaveBeenCalledTimes(1)
})

test('the owner of a session has the rights of its last token', () => {
  const owner = createSessionOwner({ id: 'a', roles: ['x'], scopes: ['s'] })
  owner.renew({ id: 'a', roles: [], scopes: ['s', 't'] })
  expect({ id: owner.id, roles: owner.roles, scopes: owner.scopes }).toEqual({ id: 'a', roles: [], scopes: ['s', 't'] })
  owner.renew({ id: 'a', roles: ['y'] })
  expect(owner.scopes).toBeUndefined()
})

describe('incomplete or contradictory authorization options', () => {
  const issuer = { issuer: 'https://a.example.org', jwks: 'https://a.example.org/jwks' }
  const introspection = { url: 'https://a.example.org/i', clientId: 'a', clientSecret: 'b' }
  const resource = 'https://context.example.org/mcp'
  test.each<[string, AuthorizationOptions]>([
    ['neither tokens nor issuers', {}],
    ['no issuers', { issuers: [] }],
    ['an issuer twice', { resource, issuers: [issuer, issuer] }],
    ['no audience', { resource, issuers: [{ ...issuer, audiences: [] }] }],
    ['an empty audience', { resource, issuers: [{ ...issuer, audiences: [''] }] }],
    ['an issuer without keys', { resource, issuers: [{ issuer: issuer.issuer }] }],
    [
      'two issuers with introspection',
      {
        resource,
        issuers: [
          { ...issuer, introspection },
          { issuer: 'https://b.example.org', introspection },
        ],
      },
    ],
    ['no resource', { issuers: [issuer] }],
    ['an invalid resource', { resource: 'context.example.org', issuers: [issuer] }],
    ['a resource with a query', { resource: `${resource}?x`, issuers: [issuer] }],
    ['a file that is a folder', { tokens: import.meta.dirname }],
  ])('are refused: %s', async (_, options) => {
    await expect(createAuthorizer({ ...options, path: '/mcp', log: () => {} })).rejects.toMatchObject({
      kind: 'invalid',
    })
  })
})
