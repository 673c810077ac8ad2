import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { chromiumReason, type Explored, explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { run, start } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const folder = createFolder()
folder.write({ 'readme.md': '# Hello\n', 'docs/引き出し.md': '引き出し\n' })
afterAll(folder.remove)

const fixture = (name: string, ...args: readonly string[]) =>
  [process.execPath, fileURLToPath(new URL(`../fixtures/mcp/${name}.mjs`, import.meta.url)), ...args]
    .map((word) => `"${word}"`)
    .join(' ')

/** Starts `hikidashi ui`, and waits until it has printed where its page is. */
async function ui(...args: readonly string[]): Promise<Explored> {
  const running = start(['ui', '--no-open', ...args], { cwd: folder.outside })
  const [address] = (await once(running.child.stdout, 'data')) as [string]
  return { ...(await explored(running, /(Open the address above)/)), url: address.trim() }
}

/** What a browser does with the address: shows the token, and keeps the cookie. */
async function enter(url: string): Promise<{ readonly url: string; readonly cookie: string }> {
  const [page = '', token = ''] = url.split('#token=')
  const answer = await fetch(`${page}session`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  expect(answer.status).toBe(204)
  return { url: `${page}mcp`, cookie: (answer.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '' }
}

describe('hikidashi ui', () => {
  test('prints a local address on stdout, serves requests with its token, and exits at Ctrl-C', async () => {
    const { url, running } = await ui(folder.root)
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/#token=[\w-]{43}$/)
    const { url: mcp, cookie } = await enter(url)
    await expect(connect({ url: mcp })).rejects.toMatchObject({ kind: 'unavailable' })
    const view = await connect({ url: mcp, headers: { cookie } })
    const { items } = await view.list()
    expect(items.map(({ uri }) => uri)).toContain(`file://${folder.root}/readme.md`)
    await view.close()
    running.child.kill('SIGINT')
    const { code, out, err } = await running.ended
    expect({ code, out: out.trim() }).toEqual({ code: 0, out: url })
    expect(err).not.toContain(url)
  })

  test.each([
    ['of the official SDK', 'official', []],
    ['of revision 2024-11-05', 'old', ['sdk100']],
    ['of revision 2025-06-18', 'old', ['sdk113']],
  ])('shows a server %s, which has no directories, as a tree', async (_, name, args) => {
    const { url, end } = await ui('--command', fixture(name, ...args))
    const { url: mcp, cookie } = await enter(url)
    const view = await connect({ url: mcp, headers: { cookie } })
    const mounts = await view.mounts()
    expect(mounts.length).toBeGreaterThan(0)
    const [mount] = mounts
    const below = await view.directory({ uri: mount?.uri ?? '' })
    expect(below.items.length).toBeGreaterThan(0)
    await view.close()
    await end()
  })

  test('exits with 1 and reports the end of the server that it shows', async () => {
    const { url, running } = await ui('--command', fixture('old', 'sdk112'))
    await enter(url)
    const pid = await childOf(running.child.pid ?? 0)
    process.kill(pid, 'SIGKILL')
    const { code, err } = await running.ended
    expect(code).toBe(1)
    expect(err).toMatch(/hikidashi: .*(?:ended|exited)/)
  })

  test('refuses invalid arguments, a missing folder and a port in use', async () => {
    const cwd = folder.outside
    const both = await run(['ui', '.', '--url', 'http://127.0.0.1:1/mcp'], { cwd })
    expect(both).toMatchObject({ code: 2, out: '' })
    expect(both.err).toContain('Give either folders')
    expect(await run(['ui', '--port', '99999'], { cwd })).toMatchObject({ code: 2, out: '' })
    expect(await run(['ui', '--no-open', 'nowhere'], { cwd })).toMatchObject({ code: 1, out: '' })
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const refused = await run(['ui', '--no-open', '--port', String(port), folder.root], { cwd })
    taken.close()
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toContain('the port is in use')
  })
})

/** The one process that a process has started. */
async function childOf(pid: number): Promise<number> {
  const { readFile } = await import('node:fs/promises')
  return Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')[0])
}

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in a browser,', () => {
  const tabs = useBrowser()
  let far: Explored
  beforeAll(async () => {
    far = await serveExplorer([folder.root, '--name', 'notes'], { cwd: folder.outside })
  })
  afterAll(() => far.end())

  test('the address of hikidashi ui opens a session that survives a reload, and its token is not stored', async () => {
    const { url, end } = await ui('--url', `${far.url}mcp`)
    const [, token = ''] = url.split('#token=')
    const page = await tabs.open(url)
    await page.getByRole('treeitem').first().waitFor()
    expect(page.url()).not.toContain('token')
    const kept = await page.evaluate(() => {
      const { localStorage, sessionStorage, document, history } = globalThis as unknown as Record<string, object>
      return JSON.stringify([localStorage, sessionStorage, (document as { cookie: string }).cookie, history])
    })
    expect(kept).not.toContain(token)
    expect(kept).not.toContain('hikidashi-ui')
    await page.reload()
    await page.getByRole('treeitem').first().waitFor()
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ name: 'hikidashi-ui', httpOnly: true, sameSite: 'Strict', expires: -1 })
    await page.close()
    await end()
  })

  test('a visitor without the token gets advice, and sees no resource', async () => {
    const { url, end } = await ui(folder.root)
    const page = await tabs.open(url.split('#')[0] ?? '', { allowed: [/401/] })
    await page.getByText('hikidashi ui', { exact: false }).first().waitFor()
    expect(await page.getByRole('treeitem').count()).toBe(0)
    expect(await page.getByRole('textbox').count()).toBe(0)
    await page.close()
    await end()
  })

  test('hikidashi ui shows a server of another implementation', async () => {
    const { url, end } = await ui('--command', fixture('old', 'sdk112'))
    const page = await tabs.open(url)
    await page.getByRole('treeitem').first().waitFor()
    await page.close()
    await end()
  })
})
