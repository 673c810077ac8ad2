import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
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
    folder.write({
      'shop/README.md': '# The shop\n\nSells tea.\n',
      'shop/.env': 'PORT=8080\n',
      'shop/docs/checkout.md': '# Checkout\n\nHow an order is paid.\n\n## Refunds\n\nA refund of an order.\n',
      'shop/src/checkout.ts': 'export function pay(order: number): number {\n  return order * 2\n}\n',
      'shop/src/orders.ts': 'export const orders = [1, 2, 3]\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'config://shop': { provider: 'settings', root: 'shop' },
          'env://shop': { provider: 'env', file: 'shop/.env' },
          'file:///shop': { provider: 'files', root: 'shop' },
          'git://shop': { provider: 'git', repository: 'shop' },
          'search://shop': { provider: 'search', over: ['file:///shop'] },
        },
      }),
    })
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: join(folder.root, 'shop') })
    git('init', '-q')
    git('add', '-A')
    git('commit', '-qm', 'first')
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const open = (place = '', options = {}) => tabs.open(`${explorer.url}${place}`, options)
  /** Waits until the index has what is searched for: a search that begins at once may come before it. */
  const indexed = async (page: Page) => {
    const facts = page.locator('.home-mount-facts', { hasText: /documents? indexed/ })
    for (;;) {
      await facts.waitFor()
      if (/[1-9]\d* documents indexed$/.test(await facts.innerText())) return
      await page.reload()
    }
  }
  /** Whether an element is a hit that has the focus. */
  const focusedText = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '')

  for (const [language, titles, options] of [
    ['English', ['Files', 'Settings', 'Environment', 'History', 'Search'], {}],
    [
      'Japanese, in the dark theme',
      ['ファイル', '設定', '環境変数', '履歴', '検索'],
      { locale: 'ja-JP', colorScheme: 'dark' },
    ],
  ] as const)
    test(`the first page shows the mounts, the README, how to add the server to a host, and then what was opened last: ${language}`, async () => {
      const page = await open('', options)
      await page.locator('.home .markdown h1', { hasText: 'The shop' }).waitFor()
      const names = page.locator('.home-mount-name > bdi')
      await expect.poll(() => names.allInnerTexts()).toEqual(titles)
      const rows = page.locator('#tree [role=treeitem][aria-level="1"] .name')
      await expect.poll(() => rows.allInnerTexts()).toEqual(titles)
      await expect
        .poll(() => page.locator('.home-mount-facts').first().innerText())
        .toBe(language === 'English' ? '2 folders, 1 file' : '2 フォルダー、1 ファイル')
      await expect
        .poll(() => page.locator('.home-command pre').innerText())
        .toMatch(/^claude mcp add --transport http \S+ http:\/\/127\.0\.0\.1:\d+\/mcp$/)
      const search = page.locator('.home-search input')
      await page.locator('.home-list a', { hasText: 'orders.ts' }).waitFor()
      expect(await page.locator('.home details').getAttribute('open')).not.toBeNull()
      await page.locator('.home-list a', { hasText: 'orders.ts' }).click()
      await page.locator('.preview .text').waitFor()
      await page.goBack()
      await page.reload()
      await page.locator('#home-opened').waitFor()
      expect(await page.locator('.home details').getAttribute('open')).toBeNull()
      expect(await search.isVisible()).toBe(true)
      // A search is asked, not opened.
      expect(await page.locator('#tree .row', { hasText: titles[4] }).getAttribute('aria-expanded')).toBeNull()
      expect(await axe(page)).toEqual([])
    })

  test('a search while typing shows hits in names, then in contents, with a preview of the first, has arrow keys to move, and is kept once a hit was opened', async () => {
    const page = await open()
    await indexed(page)
    await page.keyboard.press('/')
    await page.keyboard.type('checkout')
    await page.locator('.name-hits .hit-link', { hasText: 'checkout.ts' }).first().waitFor()
    await page.locator('.group .hit-link').first().waitFor()
    // The first hit is previewed, and stands in no permalink.
    await page.locator('.preview h2', { hasText: 'checkout' }).waitFor()
    expect(page.url()).not.toContain('uri=')
    expect(await page.locator('#search').inputValue()).toBe('checkout')
    await page.keyboard.press('ArrowDown')
    const first = await focusedText(page)
    expect(first).toContain('checkout')
    await page.keyboard.press('ArrowDown')
    await page.locator(`.preview`).waitFor()
    await page.keyboard.press('ArrowUp')
    expect(await focusedText(page)).toBe(first)
    await page.keyboard.press('ArrowUp')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('search')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('uri=file')
    expect(await axe(page)).toEqual([])
    // What led somewhere is kept.
    await page.getByRole('link', { name: 'Tree', exact: true }).click()
    await page.goto(`${explorer.url}#view=search`)
    await page.getByRole('button', { name: 'checkout', exact: true }).click()
    await page.locator('.group .hit-link').first().waitFor()
  })

  test('the search field keeps every letter that is typed between two frames, and shows the query of an address', async () => {
    const page = await open()
    await page.locator('#search').focus()
    const typed = await page.evaluate(async () => {
      const field = document.querySelector<HTMLInputElement>('#search')
      if (field === null) return undefined
      for (const letter of 'checkout ') {
        field.value += letter
        field.dispatchEvent(new InputEvent('input', { bubbles: true }))
        // The page is rendered in a microtask; no frame is drawn before the next letter.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      }
      return field.value
    })
    expect(typed).toBe('checkout ')
    await page.locator('.name-hits .hit-link', { hasText: 'checkout.ts' }).first().waitFor()
    expect(await page.locator('#search').inputValue()).toBe('checkout ')
    // A query of the history stands in the field.
    await page.goto(`${explorer.url}#view=search&q=order`)
    await expect.poll(() => page.locator('#search').inputValue()).toBe('order')
  })

  test('a search groups the hits of a file, counts them, and shows code in a monospaced font', async () => {
    const page = await open()
    await indexed(page)
    await page.goto(`${explorer.url}#view=search&q=order`)
    await page.locator('.group', { hasText: 'orders.ts' }).waitFor()
    expect(await page.locator('.group', { hasText: 'checkout.md' }).count()).toBe(1)
    expect(await page.locator('.find-count').innerText()).toMatch(/^\d+ hits in 3 files$/)
    const code = page.locator('.group', { hasText: 'checkout.ts' }).locator('.hit-snippet')
    expect(await code.evaluate((element) => getComputedStyle(element).fontFamily)).toContain('monospace')
  })
})
