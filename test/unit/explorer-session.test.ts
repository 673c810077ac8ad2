import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createGuardedPage } from '../../src/explorer/index.ts'

/** A guarded page whose only file is its index. */
function open() {
  let reused = 0
  const guarded = createGuardedPage({ onReuse: () => reused++ })
  const base = guarded.path.slice(0, -'mcp'.length)
  const page = guarded.guard(({ url }) =>
    url === base ? { status: 200, headers: {}, body: new Uint8Array() } : undefined,
  )
  const ask = async (name: string, headers: Readonly<Record<string, string>> = {}, method = 'POST') =>
    page({ url: base + name, method, headers } as unknown as IncomingMessage)
  const enter = (token: string, headers = {}) => ask('session', { authorization: `Bearer ${token}`, ...headers })
  const cookieOf = (answer: Awaited<ReturnType<typeof ask>>) => answer?.headers['Set-Cookie']?.split(';')[0] ?? ''
  return { ...guarded, base, ask, enter, cookieOf, reused: () => reused }
}

describe('the session of the explorer', () => {
  test('is opened by its token, and kept in a cookie for this page only', async () => {
    const { base, ask, enter, token } = open()
    const entered = await enter(token)
    expect(entered?.status).toBe(204)
    expect(entered?.headers['Set-Cookie']).toMatch(
      new RegExp(`^hikidashi-ui=[\\w-]{43}; Path=${base}; HttpOnly; SameSite=Strict$`),
    )
    expect(entered?.headers['Set-Cookie']).not.toContain(token)
    expect(await ask('mcp')).toMatchObject({ status: 401 })
  })

  test('lets a browser with its cookie call the MCP endpoint, and refuses requests without the cookie; the page itself is open to all', async () => {
    const { ask, enter, token, cookieOf } = open()
    const cookie = cookieOf(await enter(token))
    expect(await ask('mcp', { cookie })).toBeUndefined()
    expect(await ask('mcp', { cookie: `a=b; ${cookie}; c=d` })).toBeUndefined()
    for (const wrong of ['', 'hikidashi-ui=', `${cookie}x`, `x${cookie}`, cookie.replace('hikidashi-ui', 'other')])
      expect(await ask('mcp', { cookie: wrong }), wrong).toMatchObject({ status: 401 })
    expect(await ask('metrics')).toMatchObject({ status: 401 })
    expect(await ask('', {}, 'GET'), 'the page itself holds nothing').toMatchObject({ status: 200 })
  })

  test.each(['', 'x', 'undefined'])(
    'is not opened by the wrong token %j, and is still opened by its own token after several wrong ones',
    async (wrong) => {
      const { enter, token, reused } = open()
      for (let tries = 0; tries < 3; tries++) expect(await enter(wrong)).toMatchObject({ status: 401 })
      expect(await enter(token.slice(0, -1))).toMatchObject({ status: 401 })
      expect(await enter(token.toLowerCase())).toMatchObject({ status: 401 })
      expect(reused()).toBe(0)
      expect(await enter(token)).toMatchObject({ status: 204 })
    },
  )

  test('ends when another browser shows the same token, since either may be the attacker', async () => {
    const { ask, enter, token, cookieOf, reused } = open()
    const cookie = cookieOf(await enter(token))
    expect(await enter(token, { cookie }), 'the same browser').toMatchObject({ status: 204 })
    expect(reused()).toBe(0)
    expect(await enter(token)).toMatchObject({ status: 401 })
    expect(reused()).toBe(1)
    expect(await ask('mcp', { cookie })).toMatchObject({ status: 401 })
    expect(await enter(token, { cookie })).toMatchObject({ status: 401 })
  })

  test('is opened by a POST only, and uses no authentication scheme of browsers', async () => {
    const { ask, token } = open()
    expect(await ask('session', { authorization: `Bearer ${token}` }, 'GET')).toMatchObject({ status: 405 })
    expect((await ask('mcp'))?.headers['WWW-Authenticate']).toMatch(/^Session /)
  })

  test('has a new path and token each time', () => {
    const [a, b] = [open(), open()]
    expect(a.token).not.toBe(b.token)
    expect(a.path).not.toBe(b.path)
  })
})
