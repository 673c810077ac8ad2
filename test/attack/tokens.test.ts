import { createHmac, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { openUri, read } from '../support/authorized.ts'
import { nowInSeconds, rawToken } from './harness/issuer.ts'
import { useTokens } from './harness/tokens.ts'

const tokens = useTokens()

describe('the Authorization header:', () => {
  test('only one bearer token in one header is accepted (TK01)', async () => {
    const token = await tokens.good.mint()
    for (const none of [[], ['Bearer'], ['Bearer '], ['Basic eDp5'], ['DPoP abc'], [token], ['Bearerx abc'], ['']])
      expect(await tokens.send(none.flatMap((value) => ['Authorization', value])), `${none}`).toEqual({
        status: 401,
        challenge: tokens.challenge(),
      })
    const malformed = [
      [`Bearer a b`],
      [`Bearer ${token} evil`],
      [`Bearer ${token}, Bearer ${token}`],
      [`Bearer ${token},`],
      ['Bearer "x"'],
      ['Bearer ü'],
      [`Bearer ${token}`, `Bearer ${token}`],
      [`Bearer ${token}`, 'Basic eDp5'],
    ]
    for (const values of malformed) {
      const answer = await tokens.send(values.flatMap((value) => ['Authorization', value]))
      expect(answer.status, `${values}`).toBe(400)
      expect(answer.challenge).toContain('error="invalid_request"')
    }
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  '])
      expect((await tokens.send(['Authorization', `${scheme} ${token}`])).status, scheme).toBe(200)
  })

  test('a token in the query or in a form is ignored, and one in the query beside one in the header makes the request malformed (TK01)', async () => {
    const token = await tokens.good.mint()
    expect(await tokens.send([], `/mcp?access_token=${token}`)).toEqual({ status: 401, challenge: tokens.challenge() })
    expect((await tokens.send(['Authorization', `Bearer ${token}`], `/mcp?access_token=${token}`)).status).toBe(400)
    const form = await fetch(tokens.server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `access_token=${token}`,
    })
    expect(form.status).toBe(401)
  })

  test('a request without a token is refused with 401, whatever its method and body (TK01)', async () => {
    const requests = [
      ['POST', '{'],
      ['POST', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover' })],
      ['POST', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'nothing/at/all' })],
      ['POST', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize' })],
      ['GET', undefined],
      ['DELETE', undefined],
      ['PUT', 'x'],
    ] as const
    for (const [method, body] of requests) {
      const response = await fetch(tokens.server.url, { method, ...(body === undefined ? {} : { body }) })
      expect([response.status, response.headers.get('www-authenticate')], `${method} ${body}`).toEqual([
        401,
        tokens.challenge(),
      ])
      await response.text()
    }
  })

  test('no part of a token is in the challenge (TK31)', async () => {
    const hostile = [
      rawToken({ alg: 'ES256', kid: '"\r\nX-Evil: 1' }, { iss: `${tokens.good.issuer}`, sub: '"\\' }),
      await tokens.good.mint({ aud: 'x", error="none' }),
      await tokens.good.mint({ iss: 'https://"evil\u2028' }),
      'x.".y',
    ]
    for (const token of hostile.slice(0, 3)) await tokens.expectInvalid(token, token)
    expect((await tokens.send(['Authorization', `Bearer ${hostile[3]}`])).status).toBe(400)
  })

  test('a token that is too large, too deep, nested, encrypted or has an unknown critical header is refused (TK21)', async () => {
    const huge = await tokens
      .send(['Authorization', `Bearer ${'a'.repeat(1024 * 1024)}`])
      .catch(() => ({ status: 431 }))
    expect(huge.status).toBe(431)
    await tokens.expectInvalid(await tokens.good.mint({ padding: 'x'.repeat(13_000) }), 'over 16 KiB')
    await tokens.expectInvalid(
      rawToken({ alg: 'ES256', kid: 'key-1' }, `${'['.repeat(5000)}${']'.repeat(5000)}`),
      'deep',
    )
    await tokens.expectInvalid(rawToken('{'.repeat(5000), { iss: tokens.good.issuer }), 'a header that is none')
    const many = Object.fromEntries([...Array(900).keys()].map((i) => [`c${i}`, i]))
    await tokens.expectGood(await tokens.good.mint(many), 'many claims, and still a token')
    const critical = new SignJWT({
      iss: tokens.good.issuer,
      aud: tokens.server.url,
      sub: 'ada',
      exp: nowInSeconds() + 600,
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'key-1', typ: 'at+jwt', crit: ['own'], own: 1 })
      .sign(tokens.good.key.private, { crit: { own: true } })
    await tokens.expectInvalid(await critical, 'something critical that is not known')
    const inner = await tokens.good.mint()
    const nested = await new SignJWT({ jwt: inner })
      .setProtectedHeader({ alg: 'ES256', cty: 'JWT' })
      .sign(tokens.good.key.private)
    await tokens.expectInvalid(nested, 'a token in a token')
    const five = [{ alg: 'dir', enc: 'A256GCM', zip: 'DEF' }, '', 'x', 'y', 'z'].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    )
    await tokens.expectInvalid(five.join('.'), 'an encrypted one, which may be a bomb')
  })
})

describe('signatures of tokens:', () => {
  test('a token without a signature is refused (TK02)', async () => {
    const now = nowInSeconds()
    const claims = { iss: tokens.good.issuer, aud: tokens.server.url, sub: 'ada', scope: 'files:read', exp: now + 600 }
    for (const alg of ['none', 'None', 'nOnE', 'NONE', '', undefined, null, 'ES256', ['ES256']])
      await tokens.expectInvalid(rawToken({ alg, typ: 'at+jwt', kid: 'key-1' }, claims), alg)
    const [header, payload] = (await tokens.good.mint()).split('.')
    for (const signature of ['', 'AA', 'A'.repeat(86)])
      await tokens.expectInvalid(`${header}.${payload}.${signature}`, signature)
  })

  test('the public key is not accepted as a shared secret (TK03)', async () => {
    const now = nowInSeconds()
    const claims = { iss: tokens.good.issuer, aud: tokens.server.url, sub: 'ada', scope: 'files:read', exp: now + 600 }
    const secrets = [
      JSON.stringify(tokens.good.key.public),
      String(tokens.good.key.public.x),
      Buffer.from(String(tokens.good.key.public.x), 'base64url'),
      '',
    ]
    for (const alg of ['HS256', 'HS384', 'HS512'])
      for (const secret of secrets) {
        const head = rawToken({ alg, typ: 'at+jwt', kid: 'key-1' }, claims).slice(0, -1)
        const signature = createHmac(alg.replace('HS', 'sha'), secret).update(head).digest('base64url')
        await tokens.expectInvalid(`${head}.${signature}`, alg)
      }
  })

  test('a key of the issuer is accepted for the allowed algorithms only (TK03)', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const secret = { kty: 'oct', kid: 'secret', k: Buffer.alloc(32).toString('base64url') }
    const keys = [tokens.other.key.public, { ...publicKey.export({ format: 'jwk' }), kid: 'rsa' }, secret]
    tokens.other.answer('/jwks', (_, response) => response.end(JSON.stringify({ keys })))
    const claims = {
      iss: tokens.other.issuer,
      aud: tokens.server.url,
      sub: 'ada',
      scope: 'files:read',
      client_id: 'one',
    }
    const sign = (alg: string, kid: string, key: typeof privateKey | Buffer) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg, kid, typ: 'at+jwt' })
        .setIssuedAt()
        .setExpirationTime('10m')
        .sign(key)
    await tokens.expectInvalid(await sign('RS256', 'rsa', privateKey), 'RS256')
    await tokens.expectInvalid(await sign('HS256', 'secret', Buffer.alloc(32)), 'HS256')
    await tokens.expectGood(await tokens.other.mint({ client_id: 'one' }), 'ES256')
    tokens.other.answer('/jwks', undefined)
  })

  test('another key with the same id, and unknown keys, are refused (TK04, SS23)', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const now = nowInSeconds()
    const forge = (header: Readonly<Record<string, unknown>>) =>
      new SignJWT({ iss: tokens.good.issuer, aud: tokens.server.url, sub: 'ada', scope: 'files:read', exp: now + 600 })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...header })
        .sign(privateKey)
    await tokens.expectInvalid(await forge({ kid: 'key-1' }), 'the same name')
    for (const kid of ['../../etc/passwd', "' OR 1=1 --", '\0', '', 'x'.repeat(4000), '__proto__'])
      await tokens.expectInvalid(await forge({ kid }), kid)
    // What says by itself where its key is, or what it is, leads nowhere.
    const before = tokens.asked.requests.length
    const self = {
      jwk: tokens.good.key.public,
      jku: `${tokens.asked.issuer}/evil`,
      x5u: `${tokens.asked.issuer}/evil`,
      x5c: ['AA=='],
    }
    await tokens.expectInvalid(await forge({ kid: 'mine', ...self }), 'jku, x5u, jwk')
    expect(tokens.asked.requests.length).toBe(before)
  })

  test('tokens with 400 unknown keys cause at most two fetches of keys (TK04)', async () => {
    const before = tokens.good.requests.length
    for (let i = 0; i < 16; i++)
      await Promise.all(
        [...Array(25).keys()].map(async (j) => {
          const token = rawToken(
            { alg: 'ES256', typ: 'at+jwt', kid: `random-${i}-${j}` },
            { iss: tokens.good.issuer },
            'AAAA',
          )
          expect((await read(tokens.server.url, token, openUri)).status).toBe(401)
        }),
      )
    expect(tokens.good.requests.length - before).toBeLessThanOrEqual(2)
  })

  test('another base64 spelling of a token is accepted or refused without an error, and a token with changed content is refused (TK22)', async () => {
    const token = await tokens.good.mint({ groups: ['staff'] })
    const [header = '', payload = '', signature = ''] = token.split('.')
    const last = signature.at(-1) ?? ''
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const next = alphabet[alphabet.indexOf(last) ^ 1] ?? ''
    const spellings = [
      `${token}=`,
      `${token}==`,
      `${header}=.${payload}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -1)}${next}`,
      `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}`,
    ]
    for (const spelling of spellings) {
      const answer = await tokens.send(['Authorization', `Bearer ${spelling}`])
      expect([200, 400, 401], spelling).toContain(answer.status)
    }
    for (const changed of [`${header}.${payload}x.${signature}`, `${header}.${payload}.A${signature.slice(1)}`])
      if (changed !== token) await tokens.expectInvalid(changed, changed)
  })
})
