import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  axe,
  chromiumReason,
  type Explored,
  hasChromium,
  type OpenOptions,
  serveExplorer,
  useBrowser,
} from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { countPixels } from '../support/pixels.ts'
import { createShop, previewFiles, seriesDocument, wav } from '../support/preview-files.ts'
import { requires } from '../support/require.ts'

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored

  beforeAll(async () => {
    for (const [name, content] of Object.entries(previewFiles())) folder.write({ [`site/${name}`]: content })
    createShop(join(folder.root, 'shop.db'), 100)
    folder.write({
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site', language: 'ja' },
          'sqlite://shop': { provider: 'sqlite', file: 'shop.db', rows: true },
          'memo://metrics': {
            provider: 'inline',
            resources: { 'queue.json': { text: seriesDocument(), mimeType: 'application/json' } },
          },
        },
      }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const open = (uri: string, options: OpenOptions = {}) =>
    tabs.open(`${explorer.url}#${new URLSearchParams({ uri })}`, options)
  const show = (page: Page, uri: string) =>
    page.evaluate(
      (place) => {
        location.hash = place
      },
      `#${new URLSearchParams({ uri })}`,
    )
  // What would have run in documents is told as an error.
  const handlers = [/inline event handler/, /Blocked script execution/]
  const ran = (page: Page) => page.evaluate(() => Reflect.get(window, 'ran') === true)

  test('a Markdown document is rendered and sanitized, and its links open other files', async () => {
    const page = await open('file:///site/guide.md', { allowed: handlers })
    const document = page.locator('.markdown')
    await document.locator('h1', { hasText: '引き出しの手引き' }).waitFor()
    expect(await document.getAttribute('lang')).toBe('ja')
    expect(await document.locator('td', { hasText: 'りんご' }).count()).toBe(1)
    expect(await document.locator('input[type=checkbox]').count()).toBe(2)
    await document.locator('code .hljs-keyword', { hasText: 'const' }).waitFor()
    // What would run, send or fetch something is not there.
    expect(await document.locator('script, form, [onclick], img[src^="http"], a[href^="javascript"]').count()).toBe(0)
    expect(await ran(page)).toBe(false)
    const outside = document.locator('a.outside')
    expect(await outside.getAttribute('rel')).toBe('noopener noreferrer')
    expect(await axe(page)).toEqual([])
    // A picture of this server is shown by itself.
    await document.locator('img[src^="blob:"]').waitFor()
    expect(await document.getByRole('button', { name: '図' }).count()).toBe(0)
    await document.getByText('隣の文書').click()
    await page.locator('.text .line', { hasText: 'one' }).waitFor()
    expect(page.url()).toContain(encodeURIComponent('file:///site/folder/one.txt'))
  })

  test('source code is shown in colours, line by line; a script in a plain text is shown and not run', async () => {
    const page = await open('file:///site/code.ts')
    await page.locator('.text .hljs-keyword', { hasText: 'export' }).first().waitFor()
    expect(await page.locator('.text .line').count()).toBe(7)
    await show(page, 'file:///site/plain.txt')
    await page.locator('.text .line', { hasText: '<script>window.ran = true</script>' }).waitFor()
    expect(await ran(page)).toBe(false)
    expect(await axe(page)).toEqual([])
  })

  test('a text that was opened before and has changed since shows the difference, or says that the earlier text is no longer kept', async () => {
    const lines = Array.from({ length: 80 }, (_, at) => `line ${at}`)
    folder.write({ 'site/log/day.txt': `${lines.join('\n')}\n`, 'site/log/short.txt': 'one\n' })
    const page = await open('file:///site/log/day.txt')
    const first = page.locator('.text .line', { hasText: 'line 1' }).first()
    const look = async (name: string, text: string) => {
      await show(page, `file:///site/log/${name}`)
      await page.locator('.text .line', { hasText: text }).first().waitFor()
    }
    const noted = (name: string) =>
      expect
        .poll(() =>
          page.evaluate(() => {
            const [, text = ''] = Object.entries(localStorage).find(([key]) => key.startsWith('hikidashi.looked')) ?? []
            return String(text)
          }),
        )
        .toContain(`file:///site/log/${name}`)
    await first.waitFor()
    await noted('day.txt')
    expect(await page.getByText('has changed since').count()).toBe(0)
    await look('short.txt', 'one')
    await noted('short.txt')
    folder.write({ 'site/log/day.txt': `${lines.toSpliced(40, 1, 'another line').join('\n')}\n` })
    await look('day.txt', 'line 1')
    await page.getByRole('button', { name: 'Show the changes' }).click()
    const diff = page.getByRole('region', { name: 'Show the changes' })
    await diff.locator('.added', { hasText: '+another line' }).waitFor()
    expect(await diff.locator('.removed', { hasText: '-line 40' }).count()).toBe(1)
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Show the text' }).click()
    await first.waitFor()
    folder.write({ 'site/log/short.txt': 'two\n' })
    await look('short.txt', 'two')
    await page.getByText('The changes are not listed, because the list would be longer than the text.').waitFor()
    await look('day.txt', 'line 1')
    expect(await page.getByText('has changed since').count()).toBe(0)
    await page.evaluate(() => {
      for (const [key, text] of Object.entries(localStorage))
        if (key.startsWith('hikidashi.looked'))
          localStorage.setItem(key, String(text).replaceAll('sha256.', 'sha256.x'))
    })
    await look('short.txt', 'two')
    await page.getByText('The earlier text is no longer kept.').waitFor()
  })

  test('the lines of a search hit are marked in their context, and a long text is loaded in parts', async () => {
    const page = await open('file:///site/long.log?lines=500-502')
    await page.locator('.line.marked').first().waitFor()
    expect(
      await page.locator('.line.marked').evaluateAll((lines) => lines.map((line) => (line as HTMLElement).dataset.n)),
    ).toEqual(['500', '501', '502'])
    await page.locator('.line[data-n="480"]').waitFor()
    await page.getByRole('link', { name: 'Open the whole text' }).click()
    const note = page.locator('.preview-banner', { hasText: 'are shown' })
    await note.getByText(/^Lines 1–2\d,\d{3}/).waitFor()
    await page.getByRole('button', { name: 'Show more' }).click()
    await note.getByText(/^Lines 1–5\d,\d{3}/).waitFor()
    // What was read on is not what has changed.
    expect(await page.locator('.line.fresh').count()).toBe(0)
    // Of tens of thousands of lines, only those near what is seen are there.
    expect(await page.locator('.text .line').count()).toBeLessThan(2000)
    await page.locator('.text').focus()
    await page.keyboard.press('End')
    await expect
      .poll(async () => Number(await page.locator('.text .line').last().getAttribute('data-n')))
      .toBeGreaterThan(30_000)
  })

  test('JSON is a tree that the keyboard opens, its source has a permalink, and invalid JSON is reported', async () => {
    const page = await open('file:///site/data.json')
    const tree = page.getByRole('tree', { name: 'JSON as a tree' })
    await tree.getByText('引き出し').waitFor()
    await tree.focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowRight')
    await tree.locator('[aria-level="4"][aria-setsize="4"]').first().waitFor()
    expect(await page.locator('.pointer').innerText()).toBe('/nested/a~1b')
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Source', exact: true }).click()
    await page.locator('.text .line').first().waitFor()
    expect(page.url()).toContain('source=1')
    await show(page, 'file:///site/broken.json')
    await page.getByText('This is not valid JSON').waitFor()
  })

  test('a table in Shift_JIS is decoded and sorted, and a table of 100,000 rows is scrolled to its end', async () => {
    const page = await open('file:///site/sales.csv')
    const grid = page.getByRole('grid')
    await grid.getByText('りんご, 3', { exact: true }).waitFor()
    await grid.getByRole('button', { name: /金額/ }).click()
    await grid.getByRole('button', { name: /金額/ }).click()
    await expect.poll(() => grid.locator('.grid-row').nth(1).innerText()).toContain('35880')
    expect(await axe(page)).toEqual([])
    await show(page, 'file:///site/big.csv')
    await page.getByText('100,000 rows').waitFor()
    await grid.focus()
    await page.keyboard.press('Control+ArrowDown')
    await grid.getByText('name 99999', { exact: true }).waitFor()
    expect(await grid.locator('.grid-row').count()).toBeLessThan(120)
    await show(page, 'file:///site/events.ndjson')
    await page.getByText('50 rows').waitFor()
  })

  test('time series are drawn as a chart, with their values as a table', async () => {
    const page = await open('memo://metrics/queue.json')
    await page.locator('.chart-box canvas').waitFor()
    const table = page.locator('.chart-table')
    expect(await table.locator('tbody tr').count()).toBe(2)
    await expect.poll(() => table.innerText()).toMatch(/host=b[\s\S]*MiB/)
    // Something is drawn in the colours of the series.
    expect(await page.locator('.chart-box canvas').evaluate(countPixels, 'warm')).toBeGreaterThan(200)
    await page.locator('.chart-box').focus()
    await page.keyboard.press('Home')
    await table.locator('th', { hasText: 'Selected' }).waitFor()
    expect(await axe(page)).toEqual([])
    await show(page, 'file:///site/temperature.csv')
    await page.getByRole('button', { name: 'Chart', exact: true }).click()
    await page.locator('.chart-box canvas').waitFor()
    expect(await page.locator('.chart-table tbody tr').count()).toBe(2)
  })

  test('pictures are drawn from bytes, and an SVG picture runs no code', async () => {
    const page = await open('file:///site/picture.png')
    await page.getByText('120 × 80 pixels').waitFor()
    await show(page, 'file:///site/drawing.svg')
    await page.getByText('200 × 100 pixels').waitFor()
    expect(await page.locator('.picture svg').count()).toBe(0)
    expect(await axe(page)).toEqual([])
    expect(await ran(page)).toBe(false)
  })

  test('HTML is shown in a sandbox with its own styles', async () => {
    const page = await open('file:///site/page.html', { allowed: handlers })
    const inner = page.frameLocator('.page-frame').frameLocator('iframe')
    await inner.locator('h1', { hasText: '見出し' }).waitFor()
    const frame = page.frameLocator('.page-frame').locator('iframe')
    expect(await frame.getAttribute('sandbox')).toBe('')
    const inside = page.frames().find((one) => one.url() === 'about:srcdoc')
    // The frame runs no scripts: what it looks like is asked through the debugger.
    expect(await inside?.locator('h1').evaluate((heading) => getComputedStyle(heading).color)).toBe('rgb(0, 92, 143)')
    expect(await inside?.locator('script, link, [onload]').count()).toBe(0)
    expect(await ran(page)).toBe(false)
  })

  test('a Japanese PDF without embedded fonts is drawn, with selectable text', async () => {
    const page = await open('file:///site/manual.pdf')
    // Its text is shown first: it is what a model gets.
    await page.locator('.text .line', { hasText: '二ページ目。' }).waitFor()
    await page.getByRole('button', { name: 'Pages' }).click()
    await page.locator('.text-layer', { hasText: '日本語の文書です。' }).waitFor()
    expect(await page.locator('.pdf-page canvas').first().evaluate(countPixels, 'dark')).toBeGreaterThan(300)
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Text', exact: true }).click()
    await page.locator('.text .line', { hasText: '二ページ目。' }).waitFor()
  })

  test('the overview of a database is shown as a diagram with links to its tables', async () => {
    const page = await open('sqlite://shop/overview')
    const table = page.locator('.diagram-table', { hasText: 'customers' })
    await table.waitFor()
    expect(await page.locator('.diagram-table').count()).toBe(105)
    expect(await page.locator('.diagram-link').count()).toBeGreaterThan(200)
    expect(await axe(page)).toEqual([])
    await table.focus()
    await page.keyboard.press('Enter')
    await page.locator('.sheet th', { hasText: '住所' }).waitFor()
    await page.locator('.sheet a', { hasText: 'orders' }).click()
    await page.locator('.sheet td a', { hasText: 'customers (id)' }).waitFor()
    await show(page, 'sqlite://shop/customers/rows')
    await page.getByRole('grid').getByText('花子').waitFor()
  })

  test('a folder is a list with links, a binary file shows its bytes, a sound has a player, and an empty or missing file says so', async () => {
    const page = await open('file:///site/folder/')
    await page.getByRole('option', { name: /二\.txt/ }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByRole('listbox').focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.locator('.text .line', { hasText: 'one' }).waitFor()
    await show(page, 'file:///site/data.bin')
    await page.getByText('00 25 4a 6f').first().waitFor()
    await show(page, 'file:///site/empty.txt')
    await page.getByText('This resource is empty.').waitFor()
    await show(page, 'file:///site/nothing.txt')
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await show(page, 'file:///site/sound.wav')
    await page.locator('audio[src^="blob:"]').waitFor()
  })

  test('a sound that is too large for an answer is played and saved from a link', async () => {
    const seconds = 2100
    const sound = wav(seconds * 8000)
    folder.write({ 'site/long.wav': sound })
    const page = await open('file:///site/long.wav')
    const player = page.locator('audio[src*="/content/"]')
    await player.waitFor()
    expect(new URL((await player.getAttribute('src')) ?? '').origin).toBe(new URL(explorer.url).origin)
    // The browser has read the beginning, and then jumps to the end without reading what lies between.
    const reached = await player.evaluate(
      (element: HTMLAudioElement) =>
        new Promise<number>((resolve, reject) => {
          element.onerror = () => reject(new Error(element.error?.message))
          element.onseeked = () => resolve(element.currentTime)
          const jump = () => {
            element.currentTime = element.duration - 1
          }
          if (element.readyState >= HTMLMediaElement.HAVE_METADATA) jump()
          else element.onloadedmetadata = jump
        }),
    )
    expect(reached).toBeCloseTo(seconds - 1, 0)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const download = await saved
    expect(download.suggestedFilename()).toBe('long.wav')
    expect(readFileSync(await download.path()).equals(sound)).toBe(true)
  })

  test('a changed resource is read again in place, and a deleted one is reported', async () => {
    folder.write({ 'site/live.txt': Array.from({ length: 300 }, (_, index) => `line ${index + 1}\n`).join('') })
    const page = await open('file:///site/live.txt')
    const text = page.locator('.text')
    await text.locator('.line').nth(299).waitFor({ state: 'attached' })
    await text.evaluate((element) => {
      element.scrollTop = 2000
    })
    const change = async () => {
      // The page may not listen yet: it is written until it is heard.
      for (let times = 0; ; times++) {
        const lines = Array.from({ length: 300 }, (_, index) =>
          index === 104 ? `changed ${times}` : `line ${index + 1}`,
        )
        writeFileSync(folder.at('site/live.txt'), `${lines.join('\n')}\n`)
        const heard = await text
          .locator('.line.fresh', { hasText: 'changed' })
          .waitFor({ timeout: 2000 })
          .then(
            () => true,
            () => false,
          )
        if (heard) return
      }
    }
    await change()
    expect(await text.locator('.line.fresh').count()).toBe(1)
    await expect.poll(() => text.evaluate((element) => element.scrollTop)).toBe(2000)
    await page
      .getByText(/Changed/)
      .first()
      .waitFor()
    rmSync(folder.at('site/live.txt'))
    await page.getByText('This resource no longer exists').waitFor()
    await text.locator('.line', { hasText: 'changed' }).waitFor()
  })

  test('a source that does not answer is tried again automatically', async () => {
    const page = await open('file:///site/empty.txt', { allowed: [/Failed to load resource/] })
    await page.getByText('This resource is empty.').waitFor()
    await page.route('**/mcp', (route) =>
      route.request().postData()?.includes('"resources/read"') === true ? route.abort() : route.continue(),
    )
    await show(page, 'file:///site/plain.txt')
    await page.getByRole('heading', { name: 'The source does not answer' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.unroute('**/mcp')
    await page.locator('.text .line', { hasText: 'not bold' }).waitFor()
  })

  test('the details show the encoding and the command that reads the file, and a download has the name of the file', async () => {
    const page = await open('file:///site/sales.csv', { locale: 'ja-JP' })
    await page.getByRole('button', { name: '詳細' }).click()
    const details = page.locator('.details')
    await details.getByText('hikidashi read file:///site/sales.csv').waitFor()
    // The encoding comes with the content.
    await expect.poll(() => details.innerText()).toMatch(/shift_jis/i)
    expect(await axe(page)).toEqual([])
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'ダウンロード' }).click()
    expect((await saved).suggestedFilename()).toBe('sales.csv')
  })
})
