import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { docx, xlsx } from '../fixtures/documents/office.ts'
import { japanesePdf } from '../fixtures/documents/pdf.ts'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { run } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { countPixels } from '../support/pixels.ts'
import { requires } from '../support/require.ts'

const counts = { guide: 30, deep: 4, many: 520 }

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored
  let config: string

  beforeAll(async () => {
    const numbered = (at: string, count: number) =>
      Array.from({ length: count }, (_, i) => [`site/${at}/part-${i}.txt`, `part ${i} of ${at}\n`])
    folder.write({
      ...Object.fromEntries([
        ...numbered('guide', counts.guide),
        ...numbered('guide/deep/er', counts.deep),
        ...numbered('many', counts.many),
      ]),
      'site/a.txt': 'a tea pot\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'search://all': { provider: 'search', over: ['file:///site'] },
        },
      }),
    })
    const site = (name: string) => join(folder.root, 'site', name)
    writeFileSync(site('design.docx'), docx())
    writeFileSync(site('numbers.xlsx'), xlsx())
    writeFileSync(site('manual.pdf'), japanesePdf([['日本語の文書です。'], ['二ページ目。']]))
    writeFileSync(
      site('broken.docx'),
      Uint8Array.from({ length: 200 }, (_, at) => (at * 37 + 0xff) % 256),
    )
    config = join(folder.root, 'hikidashi.json')
    explorer = await serveExplorer(['--config', config], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const open = (place = '', options = {}) => tabs.open(`${explorer.url}#${place}`, options)
  const show = (uri: string, options = {}) => open(`uri=${encodeURIComponent(uri)}`, options)
  const row = (page: Page, name: string) =>
    page.locator('#tree .row', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) })
  const count = (page: Page) => page.locator('.top-basket-count').innerText()
  /** Waits until the search has found so many files: its index may still be growing. */
  const found = async (page: Page, files: number) => {
    const last = page.locator('.group').nth(files - 1)
    while (
      !(await last.waitFor({ timeout: 2000 }).then(
        () => true,
        () => false,
      ))
    )
      await page.reload()
  }
  const dialog = (page: Page) => page.getByRole('dialog')

  test('a folder is added to the basket after a question with its size, is marked as partly picked without one of its files, and can be removed', async () => {
    const page = await open()
    await row(page, 'guide').hover()
    await row(page, 'guide').locator('.pick').click()
    await dialog(page)
      .getByText(/^34 files, about \d+ tokens$/)
      .waitFor()
    expect(await axe(page)).toEqual([])
    await dialog(page).getByRole('button', { name: 'Add 34 files' }).click()
    await expect.poll(() => count(page)).toBe('34')
    expect(await row(page, 'guide').getAttribute('aria-selected')).toBe('true')
    // One of them taken out: the folder is marked in part, and its whole counts again what is missing.
    await row(page, 'guide').locator('.row-twist').click()
    await row(page, 'part-0.txt').waitFor()
    await row(page, 'part-0.txt').locator('.pick').click()
    await expect.poll(() => count(page)).toBe('33')
    expect(await row(page, 'guide').getAttribute('aria-selected')).toBe('false')
    expect(await row(page, 'guide').locator('.pick').getAttribute('title')).toBe('33 of its files are in the basket')
    await row(page, 'guide').locator('.pick').click()
    await dialog(page).getByText('33 more are already in the basket.').waitFor()
    await dialog(page).getByRole('button', { name: 'Remove the 33 files already in the basket' }).click()
    await expect.poll(() => count(page)).toBe('0')
  })

  test('a basket holds 500 resources: of a larger folder the first are added, and a message says so', async () => {
    const page = await open()
    await row(page, 'many').locator('.pick').click({ force: true })
    await dialog(page).getByText('The basket holds 500: the first 500 are added.').waitFor()
    await dialog(page).getByRole('button', { name: 'Add 500 files' }).click()
    await expect.poll(() => count(page)).toBe('500')
    expect(await row(page, 'many').getAttribute('aria-selected')).toBe('false')
  })

  test('a range selection in the tree adds the files of its folders to the basket, and removes them when it shrinks', async () => {
    const page = await open()
    await row(page, 'guide').waitFor()
    await page.locator('#tree').focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('g')
    await page.keyboard.press('Shift+ArrowDown')
    await expect.poll(() => count(page)).not.toBe('0')
    await page.keyboard.press('Shift+ArrowUp')
    await expect.poll(() => count(page)).toBe(String(counts.guide + counts.deep))
    await page.keyboard.press('Space')
    await expect.poll(() => count(page)).toBe('0')
  })

  test('all results of a filter, and the files of all search hits, can be added to the basket at once', async () => {
    const page = await open('filter=guide+part-1')
    await page.getByRole('button', { name: 'Add all 12' }).click()
    await dialog(page).getByRole('button', { name: 'Add 12 files' }).click()
    await expect.poll(() => count(page)).toBe('12')
    await page.goto(`${explorer.url}#view=search&q=deep`)
    await found(page, 4)
    await page.getByRole('button', { name: 'Add all to the basket' }).click()
    await dialog(page).getByRole('button', { name: 'Add 3 files' }).click()
    await expect.poll(() => count(page)).toBe('15')
  })

  test('Word and Excel files are shown as formatted text, and PDF as text with a button for its pages', async () => {
    const page = await show('file:///site/design.docx')
    await expect.poll(() => page.locator('.preview-head .chip').first().textContent()).toBe('Word')
    await page.locator('.markdown h1', { hasText: '引き出しの設計書' }).waitFor()
    await page.getByText('The basket and hikidashi pack use the same text').waitFor()
    expect(await axe(page)).toEqual([])
    await page
      .getByRole('button', { name: 'Original' })
      .or(page.getByRole('radio', { name: 'Original' }))
      .click()
    await page.locator('.hex').waitFor()
    await page.goto(`${explorer.url}#uri=${encodeURIComponent('file:///site/numbers.xlsx')}`)
    await page.locator('.markdown table').first().waitFor()
    await page.goto(`${explorer.url}#uri=${encodeURIComponent('file:///site/manual.pdf')}`)
    await page.locator('.text .line', { hasText: '二ページ目。' }).waitFor()
    await page
      .getByRole('button', { name: 'Pages' })
      .or(page.getByRole('radio', { name: 'Pages' }))
      .click()
    await page.locator('.pdf-page canvas').first().waitFor()
    await expect.poll(() => page.locator('.pdf-page canvas').first().evaluate(countPixels, 'dark')).toBeGreaterThan(100)
  })

  test('a document that cannot be read shows the reason, and its bytes', async () => {
    const page = await show('file:///site/broken.docx', { locale: 'ja-JP', colorScheme: 'dark' })
    await page.getByText('この文書からはテキストを読み取れません').waitFor()
    await page.locator('.hex').waitFor()
    expect(await axe(page)).toEqual([])
  })

  test('the basket and hikidashi pack use the text of a Word document, and say so', async () => {
    const page = await open(`picks=${encodeURIComponent('auto file:///site/design.docx')}`)
    await page.getByText('the text of the document').waitFor()
    const tokens = Number((await page.locator('.basket-item .basket-tokens').innerText()).replace(/,/g, ''))
    expect(tokens).toBeGreaterThan(100)
    const packed = await run(['pack', '--pin', 'file:///site/design.docx', '--explain', '--config', config], {
      cwd: folder.outside,
    })
    expect(packed.out).toContain('引き出しの設計書')
    expect(packed.err).toContain('the text of the document')
  }, 60_000)
})
