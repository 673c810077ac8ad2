import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumReason, type Explored, explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { start } from '../support/cli.ts'
import { runHere as run } from '../support/cli-here.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

// The rows UI and HT of the attack corpus about who gets to see anything: headers, tokens, sessions.

const folder = createFolder()
folder.write({ 'public/a.md': '# a\n', 'internal/b.md': '# b\n' })
const configuration = join(folder.outside, 'hikidashi.json')
const tokens = join(folder.outside, 'tokens.json')
const access = ['staff', 'guest', { deny: ['guest'], match: 'internal/**' }]
const mounts = { 'file:///shared': { provider: 'files', root: folder.root, access } }
writeFileSync(configuration, JSON.stringify({ mounts, http: { auth: { tokens } } }))

let guarded: Explored
let open: Explored
let own: Explored
const given = { staff: '', guest: '' }

beforeAll(async () => {
  const cwd = folder.outside
  for (const role of ['staff', 'guest'] as const)
    given[role] = (await run(['token', 'add', '--tokens', tokens, '--role', role], { cwd })).out.trim()
  guarded = await serveExplorer(['--config', configuration], { cwd })
  open = await serveExplorer([folder.root, '--name', 'open'], { cwd })
  const running = start(['ui', '--no-open', folder.root], { cwd })
  const [address] = (await once(running.child.stdout, 'data')) as [string]
  own = { ...(await explored(running, /(Open the address)/)), url: address.trim() }
})
afterAll(async () => {
  await Promise.all([guarded.end(), open.end(), own.end()])
  folder.remove()
})

const message = (method: string, params: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'hikidashi-explorer', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})

/** Asks an MCP endpoint as the page does. */
function ask(url: string, method: string, headers: Readonly<Record<string, string>> = {}, params: object = {}) {
  return fetch(url, {
    method: 'POST',
    body: JSON.stringify(message(method, params)),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...headers,
    },
  })
}

const beside = (page: string, name: string) => `${page.split('#')[0]}${name}`

describe('the answers to the explorer page', () => {
  test('have a strict content security policy, and headers that keep other sites out (UI07)', async () => {
    const index = await (await fetch(open.url)).text()
    const assets = [...index.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name = '']) => name)
    expect(assets.length).toBeGreaterThan(1)
    for (const name of ['', ...assets]) {
      const { headers, status } = await fetch(beside(open.url, name))
      expect(status).toBe(200)
      const policy = new Map(
        (headers.get('content-security-policy') ?? '').split('; ').map((rule) => {
          const [directive = '', ...values] = rule.split(' ')
          return [directive, values.join(' ')]
        }),
      )
      expect(Object.fromEntries(policy)).toMatchObject({
        'default-src': "'none'",
        'script-src': "'self'",
        'style-src': "'self'",
        'connect-src': "'self'",
        'worker-src': "'self'",
        'base-uri': "'none'",
        'form-action': "'none'",
        'frame-ancestors': "'none'",
        'require-trusted-types-for': "'script'",
      })
      expect([...policy.values()].join(' ')).not.toMatch(/unsafe|\*|https?:/)
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'x-frame-options': 'DENY',
      })
      expect(headers.get('permissions-policy')).toContain('camera=()')
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
    expect(index, 'nothing inline').not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/)
  })

  test('are HTML for the page and its frame, 404 for addresses of resources, and 405 for methods other than GET and HEAD (UI08)', async () => {
    for (const [name, type] of [
      ['', /^text\/html/],
      ['frame.html', /^text\/html/],
    ] as const)
      expect((await fetch(beside(open.url, name))).headers.get('content-type')).toMatch(type)
    for (const name of [
      'public/a.md',
      'file:///open/public/a.md',
      'assets/',
      '..%2fpackage.json',
      'assets/..%2findex.html',
    ])
      expect((await fetch(beside(open.url, name))).status, name).toBe(404)
    const head = await fetch(open.url, { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.headers.get('content-security-policy')).not.toBeNull()
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const refused = await fetch(open.url, { method })
      expect(refused.status).toBe(405)
      expect(refused.headers.get('allow')).toBe('GET, HEAD')
    }
  })
})

describe('access to the explorer:', () => {
  const streams = ['subscriptions/listen', 'resources/read', 'resources/list', 'tools/call', 'server/discover']

  test('no request, stream or socket is accepted without a token or a session (UI18)', async () => {
    for (const page of [guarded.url, own.url]) {
      for (const method of streams) {
        const refused = await ask(beside(page, 'mcp'), method)
        expect(refused.status, method).toBe(401)
        expect(await refused.text()).not.toMatch(/public|internal/)
      }
      const stream = await fetch(beside(page, 'mcp'), { headers: { accept: 'text/event-stream' } })
      expect(stream.status).toBe(401)
      const { hostname, port, pathname } = new URL(beside(page, 'mcp'))
      const socket = connect(Number(port), hostname)
      const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x']
      socket.write([`GET ${pathname} HTTP/1.1`, `Host: ${hostname}:${port}`, ...upgrade, '', ''].join('\r\n'))
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 (?:400|401) /)
      socket.destroy()
    }
  })

  test('the session of hikidashi ui cannot be planted, guessed, or used by another site (UI11, HT33)', async () => {
    const page = own.url.split('#')[0] ?? ''
    const [, token = ''] = own.url.split('#token=')
    for (const cookie of ['hikidashi-ui=x', 'hikidashi-ui=', `hikidashi-ui=${token}`, `session=${token}`])
      expect((await ask(beside(page, 'mcp'), 'resources/list', { cookie })).status).toBe(401)
    for (const from of [{ origin: 'http://evil.example' }, { origin: 'null' }, { origin: 'http://127.0.0.1:1' }]) {
      const headers = { authorization: `Bearer ${token}`, ...from }
      expect((await fetch(beside(page, 'session'), { method: 'POST', headers })).status).toBe(403)
    }
    for (const query of [`?token=${token}`, `?session=${token}`, `?access_token=${token}`])
      expect((await ask(beside(page, `mcp${query}`), 'resources/list')).status).toBe(401)
    // None of that has used the token up, or opened anything.
    const planted = 'hikidashi-ui=planted'
    const headers = { authorization: `Bearer ${token}`, cookie: planted }
    const entered = await fetch(beside(page, 'session'), { method: 'POST', headers })
    const [set = ''] = entered.headers.getSetCookie()
    expect(entered.status).toBe(204)
    expect(set).toMatch(/; HttpOnly; SameSite=Strict$/)
    expect(set).toContain(`; Path=${new URL(page).pathname};`)
    const [cookie = ''] = set.split(';')
    expect((await ask(beside(page, 'mcp'), 'resources/list', { cookie: planted })).status).toBe(401)
    expect((await ask(beside(page, 'mcp'), 'resources/list', { cookie })).status).toBe(200)
    const crossSite = { cookie, origin: 'http://evil.example' }
    expect((await ask(beside(page, 'mcp'), 'resources/list', crossSite)).status).toBe(403)
    expect(own.running.child.spawnargs.join(' ')).not.toContain(token)
  })

  test('a server with tokens neither sets nor reads cookies (HT33)', async () => {
    const listed = await ask(beside(guarded.url, 'mcp'), 'resources/list', { authorization: `Bearer ${given.staff}` })
    expect(listed.status).toBe(200)
    for (const url of ['', 'mcp', 'session'])
      expect((await fetch(beside(guarded.url, url))).headers.getSetCookie()).toEqual([])
    const cookie = `hikidashi-ui=${given.staff}; token=${given.staff}`
    expect((await ask(beside(guarded.url, 'mcp'), 'resources/list', { cookie })).status).toBe(401)
  })
})

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('with a server that requires tokens,', () => {
  const tabs = useBrowser()

  test('the explorer shows each token only what it may see, and stores no token (UI11, UI19)', async () => {
    const seen = { staff: '', guest: '' }
    for (const role of ['guest', 'staff'] as const) {
      const page = await tabs.open(guarded.url, { allowed: [/401/] })
      const field = page.locator('input[type=password]')
      await field.fill(given[role])
      await field.press('Enter')
      await page.getByRole('treeitem').first().waitFor()
      await page.goto(`${guarded.url}#view=list`)
      await page.getByText('a.md').first().waitFor()
      seen[role] = await page.locator('body').innerText()
      const kept = await page.evaluate(() => {
        const { localStorage, sessionStorage, document, location } = globalThis as unknown as Record<string, object>
        const { cookie, documentElement } = document as { cookie: string; documentElement: { outerHTML: string } }
        return JSON.stringify([localStorage, sessionStorage, cookie, String(location), documentElement.outerHTML])
      })
      expect(kept).not.toContain(given[role])
      await page.reload()
      await page.locator('input[type=password]').waitFor()
      expect(await page.getByText('a.md').count(), 'another one on this machine starts with nothing').toBe(0)
    }
    expect(seen.staff).toContain('b.md')
    expect(seen.guest).not.toContain('b.md')
    expect(seen.guest).not.toContain('internal')
  })
})
