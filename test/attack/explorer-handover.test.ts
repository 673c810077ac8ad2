import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRedirectPage } from '../../src/cli/commands/ui.ts'
import { chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { type Running, start, writeNotes } from '../support/cli.ts'
import { requires } from '../support/require.ts'

// How `hikidashi ui` gives its one-time address to a browser: other users of the machine can read the arguments of every process.

let home = ''
let notes = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-handover-'))
  notes = await writeNotes(home)
  await mkdir(join(home, 'bin'))
  // The stand-in is CommonJS, whichever package.json lies above the folder of temporary files.
  await writeFile(join(home, 'bin', 'package.json'), '{"type":"commonjs"}')
})
afterAll(() => rm(home, { recursive: true, force: true }))

const files = () => readdir(join(home, 'state', 'hikidashi', 'ui'))

/** A stand-in for xdg-open: it tells what every other user could see of it, and of the file that it is given. */
async function useOpener(): Promise<void> {
  const opener = join(home, 'bin', 'xdg-open')
  await writeFile(
    opener,
    `#!${process.execPath}
const { readFileSync, renameSync, statSync, writeFileSync } = require('node:fs')
const { fileURLToPath } = require('node:url')
const words = process.argv.slice(2)
const file = fileURLToPath(words[0])
const told = {
  words,
  command: readFileSync('/proc/self/cmdline', 'utf8'),
  mode: statSync(file).mode & 0o777,
  folderMode: statSync(require('node:path').dirname(file)).mode & 0o777,
  text: readFileSync(file, 'utf8'),
}
writeFileSync(${JSON.stringify(join(home, 'opened.part'))}, JSON.stringify(told))
renameSync(${JSON.stringify(join(home, 'opened.part'))}, ${JSON.stringify(join(home, 'opened.json'))})
`,
  )
  await chmod(opener, 0o755)
}

interface Opened {
  readonly words: readonly string[]
  readonly command: string
  readonly mode: number
  readonly folderMode: number
  readonly text: string
}

/** Starts `hikidashi ui`, which opens the stand-in. Resolves with its address, and what the stand-in was given. */
async function ui(): Promise<{ readonly running: Running; readonly address: string; readonly opened: Opened }> {
  await rm(join(home, 'opened.json'), { force: true })
  await useOpener()
  const env = {
    DISPLAY: ':0',
    PATH: `${join(home, 'bin')}:${process.env.PATH ?? ''}`,
    XDG_STATE_HOME: join(home, 'state'),
  }
  const running = start(['ui', notes], { cwd: home, env })
  let out = ''
  running.child.stdout.on('data', (text: string) => {
    out += text
  })
  await running.says(/opens in your browser/)
  const opened = await until(async () => JSON.parse(await readFile(join(home, 'opened.json'), 'utf8')) as Opened)
  return { running, address: out.trim(), opened }
}

/** Tries again until it works; the test's own time limit ends it. */
async function until<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

const enter = (address: string, headers: Readonly<Record<string, string>> = {}) => {
  const [page = '', token = ''] = address.split('#token=')
  return fetch(`${page}session`, { method: 'POST', headers: { authorization: `Bearer ${token}`, ...headers } })
}

const cookieOf = (answer: Response) => (answer.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''

describe.runIf(process.platform === 'linux')('the address of hikidashi ui', () => {
  test('is in no argument of the browser, but in a file that only its user can read, which is removed after use', async () => {
    const { running, address, opened } = await ui()
    const [page = '', token = ''] = address.split('#token=')
    const secretFolder = new URL(page).pathname.replaceAll('/', '')
    expect(token).toHaveLength(43)
    for (const secret of [token, secretFolder, new URL(page).port]) expect(opened.command).not.toContain(secret)
    expect(opened.words).toHaveLength(1)
    expect(opened.words[0]).toMatch(/^file:\/\/.*\/state\/hikidashi\/ui\/open-[0-9a-f]{16}\.html$/)
    expect(opened.mode).toBe(0o600)
    expect(opened.folderMode).toBe(0o700)
    expect(opened.text).toContain(`content="0; url=${address}"`)

    expect(await files()).toHaveLength(1)
    expect((await enter(address)).status).toBe(204)
    await until(async () => expect(await files()).toEqual([]))
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(0)
  })

  test('leaves no file behind when the command ends, if nobody opened it', async () => {
    const { running } = await ui()
    expect(await files()).toHaveLength(1)
    running.child.kill('SIGINT')
    await running.ended
    expect(await files()).toEqual([])
  })

  test('is accepted again in the same browser; in another browser it is refused with a message, and from then on in both', async () => {
    const { running, address } = await ui()
    const first = await enter(address)
    const cookie = cookieOf(first)
    expect(first.headers.get('hikidashi-session')).toBeNull()
    const again = await enter(address, { cookie })
    expect([again.status, again.headers.get('hikidashi-session')]).toEqual([204, 'continued'])
    const other = await enter(address)
    expect(other.status).toBe(401)
    expect(other.headers.get('www-authenticate')).toContain('error="reused"')
    await running.says(/A second browser used the address/)
    // The first browser is told too, and nobody gets in any more.
    const after = await enter(address, { cookie })
    expect([after.status, after.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('error="reused"'),
    ])
    const wrong = await enter(`${address.split('#')[0]}#token=${'x'.repeat(43)}`)
    expect(wrong.status).toBe(401)
    running.child.kill('SIGINT')
    const { err } = await running.ended
    expect(err.match(/A second browser/g)).toHaveLength(1)
  })

  test('is escaped in the HTML file that holds it, so that it cannot inject markup', async () => {
    const address = 'http://127.0.0.1:1/x/#token="><script>alert(1)</script>&\''
    const { url, remove } = await createRedirectPage(address, { XDG_STATE_HOME: join(home, 'state') })
    const text = await readFile(new URL(url), 'utf8')
    expect(text).not.toContain('<script>')
    expect(text).toContain('token=&#34;&#62;&#60;script&#62;')
    await remove()
    await remove()
  })
})

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in a browser', () => {
  const tabs = useBrowser()

  test('opens the explorer, also in a second tab; opened in a second browser, it locks out both, with a message', async () => {
    const { running, address } = await ui()
    const [name = ''] = await files()
    const context = await tabs.profile({ allowed: [/401/, /^asked elsewhere: file:/] })
    const page = await context.newPage()
    await page.goto(`file://${join(home, 'state', 'hikidashi', 'ui', name)}`)
    await page.getByRole('treeitem').first().waitFor()
    expect(page.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\//)
    expect(page.url()).not.toContain('token')
    expect(await page.getByText('This browser had already opened the address of this page').count()).toBe(0)
    await until(async () => expect(await files()).toEqual([]))

    const second = await context.newPage()
    await second.goto(address)
    await second.getByRole('treeitem').first().waitFor()
    const notice = second.getByText('This browser had already opened the address of this page')
    await notice.waitFor()
    if (process.env.HIKIDASHI_SHOTS) await second.screenshot({ path: join(process.env.HIKIDASHI_SHOTS, 'again.png') })
    await second.getByRole('button', { name: 'OK' }).click()
    await notice.waitFor({ state: 'detached' })

    const stranger = await tabs.open(address, { allowed: [/401/] })
    await stranger.getByRole('heading', { name: 'A second browser used the address of this page' }).waitFor()
    if (process.env.HIKIDASHI_SHOTS)
      await stranger.screenshot({ path: join(process.env.HIKIDASHI_SHOTS, 'reused.png') })
    await page.reload()
    await page.getByRole('heading', { name: 'A second browser used the address of this page' }).waitFor()
    expect(await page.getByRole('treeitem').count()).toBe(0)
    // A page that is still open would complain that its server has gone.
    await Promise.all([context.close(), stranger.context().close()])
    running.child.kill('SIGINT')
    await running.ended
  })
})
