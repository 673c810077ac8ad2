/**
 * `npm run pictures [NAME]`, after `npm run build`: takes the pictures of the explorer for the documentation, or only the one with this
 * name. It serves a sample folder, and writes `docs/images/explorer-*.png`. The name `mark` draws `src/explorer/web/icon.png` instead.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'
import { startAppHost } from '../test/support/app-host.ts'
import { scenes, writePictureFolder } from './picture-scenes.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const [wanted, into = join(project, 'docs/images')] = process.argv.slice(2)
const installed = ['chromium', 'chromium-headless-shell', 'google-chrome'].map((name) => `/usr/bin/${name}`)
const browsers = [process.env.HIKIDASHI_CHROMIUM, ...installed]
const executablePath = browsers.find((file) => file !== undefined && existsSync(file))
if (executablePath === undefined) throw new Error('There is no Chromium: name one in HIKIDASHI_CHROMIUM.')

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-pictures-'))
const config = writePictureFolder(folder)
const command = [join(project, 'dist/cli/main.js'), 'serve', '--config', config, '--http', '0', '--log-level', 'error']
const server = spawn(process.execPath, command, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
try {
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, address] = /Explore it in a browser: (\S+)/.exec(said) ?? []
      if (address !== undefined) resolve(address)
    })
    server.once('close', () => reject(new Error(`The server has ended: ${said}`)))
  })
  // Chromium cannot run its sandbox as root, which is the user in containers.
  const browser = await chromium.launch({
    executablePath,
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
  try {
    for (const { name, window, place, arrange } of scenes) {
      if (wanted !== undefined && wanted !== 'all' && wanted !== name) continue
      const context = await browser.newContext({ ...window, reducedMotion: 'reduce' })
      context.setDefaultTimeout(20_000)
      const page = await context.newPage()
      await page.goto(`${url}#${place}`)
      await arrange(page)
      const path = join(into, `explorer-${name}.png`)
      await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
      await context.close()
      process.stdout.write(`${path}\n`)
    }
    if (wanted === undefined || wanted === 'all' || wanted === 'host') await takeInHost(browser)
    if (wanted === 'mark') await drawMark(browser)
  } finally {
    await browser.close()
  }
} finally {
  server.kill('SIGTERM')
  await new Promise<void>((resolve) => (server.exitCode === null ? server.once('close', () => resolve()) : resolve()))
  rmSync(folder, { recursive: true, force: true })
}

/** Draws the mark as the icon of bundles, with a transparent background. */
async function drawMark(browser: Browser): Promise<void> {
  const web = join(project, 'src/explorer/web')
  const page = await browser.newPage({ viewport: { width: 512, height: 512 } })
  const mark = readFileSync(join(web, 'icon.svg')).toString('base64')
  await page.setContent(
    `<body style="margin:0"><img width="512" height="512" alt="" src="data:image/svg+xml;base64,${mark}"></body>`,
  )
  await page.evaluate('document.images[0].decode()')
  const path = join(web, 'icon.png')
  await page.screenshot({ path, omitBackground: true })
  process.stdout.write(`${path}\n`)
}

/** Takes the picture of the explorer inside a host, with one resource in the basket. */
async function takeInHost(browser: Browser): Promise<void> {
  const profile = () =>
    browser.newContext({ viewport: { width: 1120, height: 600 }, locale: 'en-US', reducedMotion: 'reduce' })
  const host = await startAppHost({ profile }, ['--config', config], folder)
  try {
    const { app, page } = await host.open({ context: { theme: 'light' } })
    await app.getByRole('treeitem', { name: 'guide' }).waitFor()
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).click()
    await app.getByRole('button', { name: /^Basket/ }).click()
    await app.getByText('The conversation has 1 link.').waitFor()
    await app.getByText('tokens left').waitFor()
    const path = join(into, 'explorer-host.png')
    await page.locator('#sandbox').screenshot({ path, animations: 'disabled', caret: 'hide' })
    process.stdout.write(`${path}\n`)
  } finally {
    await host.end()
  }
}
