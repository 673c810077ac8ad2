import { describe, expect, test } from 'vitest'
import { ask, closedUri, openUri, read, serveAuthorized } from '../support/authorized.ts'
import { nowInSeconds, startHostileIssuer } from './harness/issuer.ts'
import { useTokens } from './harness/tokens.ts'
import { meta } from './harness/wire.ts'

const tokens = useTokens()

describe('claims of a token:', () => {
  test('the expiry must be a whole number, and not more than a few seconds in the past (TK06)', async () => {
    const now = nowInSeconds()
    for (const exp of [
      now - 61,
      now - 3600,
      0,
      -1,
      1,
      String(now + 600),
      now + 600.5,
      1e308,
      null,
      [now + 600],
      true,
      undefined,
    ])
      await tokens.expectInvalid(await tokens.good.mint({ exp }), `exp ${exp}`)
    // Clocks may differ a little.
    await tokens.expectGood(await tokens.good.mint({ exp: now - 5 }), 'five seconds ago')
  })

  test('a token is refused two minutes before its nbf or iat, and beyond the maximum age after its iat (TK07)', async () => {
    const now = nowInSeconds()
    for (const claims of [{ nbf: now + 120 }, { iat: now + 120 }, { nbf: String(now) }, { nbf: 1e308 }, { iat: 'x' }])
      await tokens.expectInvalid(await tokens.good.mint(claims), JSON.stringify(claims))
    await tokens.expectGood(await tokens.good.mint({ nbf: now + 5, iat: now + 5 }), 'clocks that differ a little')
    const client = { client_id: 'one' }
    await tokens.expectGood(await tokens.other.mint({ ...client, iat: now - 3000 }), 'fifty minutes old')
    await tokens.expectInvalid(await tokens.other.mint({ ...client, iat: now - 3700 }), 'older than it may be')
    await tokens.expectInvalid(await tokens.other.mint({ ...client, iat: undefined }), 'nobody knows how old')
  })

  test('the issuer must match exactly, and sign with its own keys (TK08)', async () => {
    const { issuer } = tokens.good
    const wrong = [
      `${issuer}/`,
      issuer.toUpperCase(),
      issuer.replace('127.0.0.1', 'localhost'),
      '',
      undefined,
      null,
      7,
      [issuer],
    ]
    for (const iss of wrong) await tokens.expectInvalid(await tokens.good.mint({ iss }), `iss ${iss}`)
    // One issuer in the name of the other, who is known too.
    await tokens.expectInvalid(await tokens.good.mint({ iss: tokens.other.issuer, client_id: 'one' }), 'mixed up')
    await tokens.expectInvalid(await tokens.other.mint({ iss: tokens.good.issuer }), 'mixed up')
    await tokens.expectInvalid(await tokens.good.mint({ iss: tokens.asked.issuer }), 'one that has no keys here')
  })

  test('the audience must be or contain exactly this resource (TK09)', async () => {
    const { url } = tokens.server
    const origin = new URL(url).origin
    const wrong = [
      ...[
        'https://elsewhere.example.org/mcp',
        `${url}/evil`,
        `${url}/`,
        `${url}x`,
        origin,
        `${origin}/`,
        '*',
        '',
        'rs',
      ],
      ...[
        `${url}?x`,
        `${url}#x`,
        url.toUpperCase(),
        url.replace('127.0.0.1', 'localhost'),
        [],
        [`${url}/`, origin],
        {},
      ],
      ...[null, undefined, 7, { [url]: url }],
    ]
    for (const aud of wrong) await tokens.expectInvalid(await tokens.good.mint({ aud }), `aud ${JSON.stringify(aud)}`)
    await tokens.expectGood(await tokens.good.mint({ aud: ['https://elsewhere.example.org/mcp', url] }), 'among others')
  })

  test('only the configured clients are accepted (TK11)', async () => {
    for (const claims of [{ client_id: 'one' }, { azp: 'two' }, { client_id: 'one', azp: 'one' }])
      await tokens.expectGood(await tokens.other.mint(claims), JSON.stringify(claims))
    const wrong = [
      {},
      { client_id: 'three' },
      { azp: 'One' },
      { client_id: 'one', azp: 'three' },
      { client_id: ['one'] },
    ]
    for (const claims of wrong) await tokens.expectInvalid(await tokens.other.mint(claims), JSON.stringify(claims))
  })

  test('the principal comes from the token, whatever else a request claims (TK17)', async () => {
    const staff = await tokens.good.mint({ sub: 'ada', groups: ['staff'], scope: 'admin' })
    const guest = await tokens.good.mint({ sub: 'bob', groups: ['guests'], scope: 'admin' })
    await tokens.expectGood(staff, 'staff', closedUri)
    const claims = { 'x-user': 'ada', 'x-forwarded-user': 'ada', 'x-roles': 'analyst', cookie: 'user=ada' }
    const params = { uri: closedUri, principal: 'ada', roles: ['analyst'] }
    const denied = await ask(tokens.server.url, guest, 'resources/read', params, claims)
    expect(denied.json().error).toMatchObject({ code: -32602, message: 'Resource not found' })
    const body = { ...params, _meta: { ...meta, principal: 'ada', 'dev.hikidashi/roles': ['analyst'] } }
    expect((await ask(tokens.server.url, guest, 'resources/read', body)).json().error?.code).toBe(-32602)
    for (const groups of ['analyst', ['analyst'], { staff: true }, [['staff']], ['Staff'], ['staff ']]) {
      const token = await tokens.good.mint({ groups, scope: 'admin' })
      expect((await tokens.get(token, closedUri)).json().error?.code, JSON.stringify(groups)).toBe(-32602)
    }
    const proto = await tokens.good.mint({ groups: ['__proto__', 'constructor', 'toString'], scope: 'admin' })
    expect((await tokens.get(proto, closedUri)).json().error?.code).toBe(-32602)
  })

  test('a token that is bound to a key is refused as a bearer token (TK23, TK24)', async () => {
    for (const cnf of [{ jkt: 'x' }, { 'x5t#S256': 'x' }, { jwk: tokens.good.key.public }, {}, null, true])
      await tokens.expectInvalid(await tokens.good.mint({ cnf }), JSON.stringify(cnf))
    tokens.asked.opaque.set('bound-to-some-key', {
      active: true,
      aud: tokens.server.url,
      sub: 'a',
      scope: 'admin',
      token_type: 'DPoP',
    })
    tokens.asked.opaque.set('bound-to-other-key', {
      active: true,
      aud: tokens.server.url,
      sub: 'a',
      scope: 'admin',
      cnf: { jkt: 'x' },
    })
    for (const token of ['bound-to-some-key', 'bound-to-other-key']) await tokens.expectInvalid(token, token)
  })

  test('a token from a clock ten minutes ahead or behind is refused, and an issuer whose clock differs is logged (TK27)', async () => {
    const now = nowInSeconds()
    await tokens.expectInvalid(
      await tokens.good.mint({ iat: now + 600, nbf: now + 600, exp: now + 1200 }),
      'ten minutes ahead',
    )
    await tokens.expectInvalid(await tokens.good.mint({ iat: now - 1200, exp: now - 600 }), 'ten minutes behind')
    const issuer = await startHostileIssuer()
    issuer.answer('/jwks', (_, response) => {
      response.setHeader('Date', new Date(Date.now() + 600_000).toUTCString())
      response.end(JSON.stringify({ keys: [issuer.key.public] }))
    })
    const apart = await serveAuthorized({ issuers: [{ issuer: issuer.issuer, jwks: issuer.jwks }] })
    issuer.audience = apart.url
    try {
      expect((await read(apart.url, await issuer.mint(), openUri)).status).toBe(200)
      expect(apart.log()).toMatch(/the clock of this machine and that of the issuer differ .*seconds=(?:5\d\d|600)\b/)
    } finally {
      await Promise.all([apart.stop(), issuer.stop()])
    }
  })
})

describe('scopes of a token:', () => {
  test('all missing scopes are named at once, and only for a valid token (TK12)', async () => {
    const refused = async (token: string, uri: string) => {
      const { status, challenge } = await tokens.get(token, uri)
      return [status, challenge]
    }
    const none = await tokens.good.mint({ scope: '' })
    expect(await refused(none, openUri)).toEqual([403, tokens.challenge('insufficient_scope')])
    expect(await refused(none, closedUri)).toEqual([403, tokens.challenge('insufficient_scope', 'files:read db:read')])
    expect(await refused(await tokens.good.mint(), closedUri)).toEqual([
      403,
      tokens.challenge('insufficient_scope', 'files:read db:read'),
    ])
    // By the mount alone: what is not there takes the same.
    const absent = `${closedUri}.absent`
    expect(await refused(await tokens.good.mint(), absent)).toEqual(await refused(await tokens.good.mint(), closedUri))
    const expired = await tokens.good.mint({ scope: '', exp: nowInSeconds() - 600 })
    expect(await refused(expired, closedUri)).toEqual([401, tokens.challenge('invalid_token')])
    const streams = { notifications: { resourceSubscriptions: [openUri, closedUri] } }
    const listening = await ask(tokens.server.url, await tokens.good.mint(), 'subscriptions/listen', streams)
    expect([listening.status, listening.challenge]).toEqual([
      403,
      tokens.challenge('insufficient_scope', 'files:read files:watch db:read'),
    ])
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(tokens.server.url, { method, headers: { authorization: `Bearer ${none}` } })
      expect(response.status, method).toBe(403)
    }
  })

  test('scopes are compared exactly (TK13)', async () => {
    const good1 = [
      { scope: 'files:read' },
      { scope: 'openid files:read' },
      { scope: 'files:read files:read' },
      { scope: '  files:read ' },
      { scope: undefined, scp: ['files:read'] },
      { scope: undefined, scp: 'openid files:read' },
    ]
    for (const claims of good1) await tokens.expectGood(await tokens.good.mint(claims), JSON.stringify(claims))
    const lacking = [
      ...[
        'files:reader',
        'files:rea',
        'Files:Read',
        'files',
        'files:read\tx',
        'files:read,x',
        '"files:read"',
        'files: read',
      ],
      ...[['files:read x'], [['files:read']], { 'files:read': true }, 7, null, true],
    ]
    for (const scope of lacking)
      expect((await tokens.get(await tokens.good.mint({ scope }))).status, JSON.stringify(scope)).toBe(403)
    // What a token says in one way is not made up for by the other.
    expect((await tokens.get(await tokens.good.mint({ scope: '', scp: ['files:read'] }))).status).toBe(403)
  })

  test('a broader scope implies exactly the scopes of the configuration (TK14)', async () => {
    const groups = ['staff']
    await tokens.expectGood(await tokens.good.mint({ scope: 'files:*' }), 'files:*')
    await tokens.expectGood(await tokens.good.mint({ scope: 'admin' }), 'admin')
    await tokens.expectGood(await tokens.good.mint({ scope: 'admin', groups }), 'admin', closedUri)
    expect((await tokens.get(await tokens.good.mint({ scope: 'files:*', groups }), closedUri)).status).toBe(403)
    for (const scope of ['*', 'files', 'db:*', 'ADMIN', 'administrator', '__proto__', 'constructor'])
      expect((await tokens.get(await tokens.good.mint({ scope }))).status, scope).toBe(403)
    // A scope lets nobody see what their roles do not.
    expect((await tokens.get(await tokens.good.mint({ scope: 'admin' }), closedUri)).json().error?.code).toBe(-32602)
  })
})
