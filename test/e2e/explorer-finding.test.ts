import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  axe,
  chromiumReason,
  type Explored,
  explored,
  hasChromium,
  serveExplorer,
  useBrowser,
} from '../support/browser.ts'
import { start } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const logLines = 5000

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored
  const log = join(folder.root, 'site/logs/app.log')

  beforeAll(async () => {
    folder.write({
      'site/README.md': '# The site\n\nAll about tea.\n',
      'site/zebra.txt': 'striped\n',
      'site/part10.md': '# Tenth part\n\nTea again.\n',
      'site/part9.md': '# Ninth part\n\nTea.\n',
      'site/設計 メモ/検索 設計.md': '# 検索\n\n設計です。\n',
      'site/logs/app.log': Array.from({ length: logLines }, (_, i) => `line ${i + 1} served a tea pot\n`).join(''),
      'site/logs/tea.csv': `name,place\n${Array.from({ length: 300 }, (_, i) => `tea ${i + 1},${i % 100 === 7 ? 'Uji' : 'Yame'}\n`).join('')}`,
      'site/logs/tea.json': '{"tea":{"sort":{"name":"sencha"}}}',
      'site/logs/large.txt': Array.from({ length: 30_000 }, (_, i) => `entry ${i + 1} of a text of many parts\n`).join(
        '',
      ),
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site', rules: [{ match: '**/*.md', title: 'heading' }] },
          'memo://hello': { provider: 'inline', text: 'Hello.' },
          'search://all': { provider: 'search', over: ['file:///site'] },
        },
      }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const show = (uri: string, options = {}, rest = '') =>
    tabs.open(`${explorer.url}#uri=${encodeURIComponent(uri)}${rest}`, options)
  const marked = (page: Page) =>
    page.locator('.text .line.marked').evaluateAll((lines) => lines.map((line) => line.getAttribute('data-n')))

  test('the tree shows names and beside them titles, folders before files, and numbers in order; a mount of a single resource is not a folder', async () => {
    const page = await tabs.open(explorer.url)
    const names = page.locator('#tree [aria-level="2"] .name')
    await names.first().waitFor()
    await expect
      .poll(() => names.allInnerTexts())
      .toEqual(['logs', '設計 メモ', 'part9.md', 'part10.md', 'README.md', 'zebra.txt'])
    expect(await page.locator('#tree .row', { hasText: 'part9.md' }).locator('.row-aside').innerText()).toBe(
      'Ninth part',
    )
    const memo = page.locator('#tree .row', { hasText: 'hello' })
    await page.locator('#tree .row:not([aria-expanded])', { hasText: 'hello' }).waitFor()
    await memo.click()
    await page.locator('.text .line', { hasText: 'Hello.' }).waitFor()
  })

  test('the path of a file is decoded, and each part of it is a link', async () => {
    const page = await show(
      'file:///site/%E8%A8%AD%E8%A8%88%20%E3%83%A1%E3%83%A2/%E6%A4%9C%E7%B4%A2%20%E8%A8%AD%E8%A8%88.md',
      {
        locale: 'ja-JP',
        colorScheme: 'dark',
      },
    )
    const way = page.getByRole('navigation', { name: '場所' })
    await expect.poll(() => way.locator('li').allInnerTexts()).toEqual(['ファイル', '設計 メモ'])
    await page.getByRole('heading', { name: '検索 設計.md', level: 2 }).waitFor()
    expect(await axe(page)).toEqual([])
    await way.getByRole('link', { name: '設計 メモ' }).click()
    await page.getByRole('option', { name: /検索 設計\.md/ }).waitFor()
    expect((await page.locator('.folder .preview-note').first().innerText()).trim()).toBe('1 ファイル')
  })

  test('a folder shows its README and how many entries it has, and can be added to the basket as a whole', async () => {
    const page = await show('file:///site/')
    await page.locator('.folder-readme h1', { hasText: 'The site' }).waitFor()
    expect(await page.locator('.folder .preview-note').first().innerText()).toContain('2 folders, 4 files')
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Add all to the basket' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Add 9 files' }).waitFor()
  })

  test('the search in a text covers more than the drawn part, and its lines have links', async () => {
    const page = await show('file:///site/logs/app.log')
    await page.locator('.text .line').first().waitFor()
    await page.keyboard.press('Control+f')
    await page.getByRole('searchbox', { name: 'Find in this text' }).fill('LINE 4321 ')
    await page.getByText('1 of 1').waitFor()
    await page.locator('.text mark.found-now', { hasText: 'line 4321 ' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByLabel('Go to line').fill('77')
    await page.keyboard.press('Enter')
    await expect.poll(() => marked(page)).toEqual(['77'])
    expect(page.url()).toContain('line=77')
    await page.keyboard.press('Escape')
    // The number of a line is its link; with Shift, of all up to it.
    await page.locator('.text .line[data-n="80"]').click({ position: { x: 6, y: 8 }, modifiers: ['Shift'] })
    await expect.poll(() => marked(page)).toEqual(['77', '78', '79', '80'])
    await page.reload()
    await expect.poll(() => marked(page)).toEqual(['77', '78', '79', '80'])
  })

  test('Ctrl F finds text in tables, Markdown and JSON alike, and the server searches the part that is not loaded', async () => {
    const page = await show('file:///site/logs/tea.csv')
    const find = async (text: string) => {
      await page.keyboard.press('Control+f')
      await page.getByRole('searchbox', { name: 'Find in this text' }).fill(text)
    }
    const cells = page.locator('.grid [role=gridcell]')
    await cells.first().waitFor()
    await find('uji')
    await page.getByText('1 of 3').waitFor()
    expect(await page.locator('.grid .number').allInnerTexts()).toEqual(expect.arrayContaining(['8', '108', '208']))
    expect(await cells.count()).toBe(6)
    await page.getByRole('button', { name: 'Only rows that match' }).click()
    await expect.poll(() => cells.count()).toBeGreaterThan(6)
    expect(await axe(page)).toEqual([])
    const go = (uri: string) => page.evaluate((hash) => location.assign(hash), `#uri=${encodeURIComponent(uri)}`)
    await go('file:///site/README.md')
    await page.locator('.markdown h1').waitFor()
    await find('tea')
    await page.getByText('1 of 1').waitFor()
    await go('file:///site/logs/tea.json')
    await page.getByRole('button', { name: 'Regular expression' }).click()
    await find('s.nch[ab]')
    await page.locator('.text mark.found-now', { hasText: 'sencha' }).waitFor()
    await go('file:///site/logs/large.txt')
    await find('entry 2999\\d ')
    await page.getByText('Not in lines 1–').waitFor()
    await page.getByRole('button', { name: /^Search (?:all|the whole)/ }).click()
    await page.getByText('10 lines of 30,000 match:').waitFor()
    await page.getByRole('link', { name: '29,995' }).click()
    await expect.poll(() => marked(page)).toEqual(['29995'])
    // The other lines stay within reach.
    await page.getByRole('link', { name: '29,996' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByRole('searchbox', { name: 'Find in this text' }).press('Escape')
    await page.locator('.find-bar').waitFor({ state: 'detached' })
  })

  test('a search of all lines goes on from answer to answer until the text ends, or has changed', async () => {
    const page = await show('file:///site/logs/large.txt')
    const cursors: unknown[] = []
    let isChanging = false
    await page.route('**/mcp', async (route) => {
      const message = route.request().postDataJSON()
      if (message?.params?.name !== 'search_in_resource') return route.continue()
      const given = message.params.arguments
      cursors.push(given.cursor)
      if (isChanging && given.cursor !== undefined) appendFileSync(join(folder.root, 'site/logs/large.txt'), 'more\n')
      given.limit = 3
      await route.continue({ postData: JSON.stringify(message) })
    })
    await page.locator('.text .line').first().waitFor()
    await page.keyboard.press('Control+f')
    const field = page.getByRole('searchbox', { name: 'Find in this text' })
    const search = () => page.getByRole('button', { name: /^Search (?:all|the whole)/ }).click()
    await field.fill('entry 2999')
    await search()
    await page.getByText('11 lines of 30,000 match:').waitFor()
    expect(cursors[0]).toBeUndefined()
    expect(new Set(cursors).size).toBe(4)
    isChanging = true
    await field.fill('entry 1999')
    await search()
    await page.getByText('or the resource has changed since').waitFor()
  })

  test('the end of a log is shown, and followed as it grows', async () => {
    const page = await show('file:///site/logs/app.log')
    await page.getByRole('link', { name: 'Show the end' }).click()
    const last = page.locator('.text .line').last()
    await expect.poll(() => last.innerText()).toContain(`line ${logLines} `)
    // The numbers are those of the whole text.
    await page.locator(`.text .line[data-n="${logLines}"]`, { hasText: `line ${logLines} ` }).waitFor()
    const isSeen = () =>
      page.locator('.text').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 5)
    await expect.poll(isSeen).toBe(true)
    appendFileSync(log, 'one more line\n')
    await page.locator('.text .line', { hasText: 'one more line' }).waitFor()
    await expect.poll(isSeen).toBe(true)
  })

  test('the tree and the preview recover after a restart of the server', async () => {
    const port = new URL(explorer.url).port
    const config = join(folder.root, 'hikidashi.json')
    const page = await show('file:///site/part9.md', { allowed: [/ERR_|Failed to load/] })
    await page.locator('.markdown h1', { hasText: 'Ninth part' }).waitFor()
    await explorer.end()
    await page.locator('.top-lost').waitFor()
    // What is opened while the server is away fails, in the tree and in the preview.
    await page.locator('#tree .row', { hasText: 'logs' }).locator('.row-twist').click()
    await page.locator('#tree .row-failed').waitFor()
    await page.locator('#tree .row', { hasText: 'zebra.txt' }).click()
    await page.getByRole('heading', { name: 'The source does not answer' }).waitFor()
    expect(await axe(page)).toEqual([])
    const running = start(['serve', '--config', config, '--http', port, '--log-level', 'error'], {
      cwd: folder.outside,
    })
    explorer = await explored(running, /Explore it in a browser: (\S+)/)
    await page
      .getByRole('button', { name: 'Reconnect now' })
      .click({ timeout: 2000 })
      .catch(() => {})
    await page.locator('.text .line', { hasText: 'striped' }).waitFor()
    await page.locator('#tree .row', { hasText: 'app.log' }).waitFor()
    await page.locator('.top-lost').waitFor({ state: 'detached' })
  })
})
