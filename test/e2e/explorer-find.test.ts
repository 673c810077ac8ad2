import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCounter } from '../../src/context/index.ts'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const words = (count: number, about: string) =>
  Array.from({ length: count }, (_, at) => `${about} line ${at} says something of its own ${at * 7}.`).join('\n')

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
      'site/guide.md': `# Deploying\n\nHow to deploy the <b>service</b> safely.\n\n${words(200, 'deploy')}\n`,
      'site/設計.md': '# 設計メモ\n\n検索の設計では文字の組を使います。東京の例もあります。\n',
      'site/notes/big.md': `# Big\n\n${words(3000, 'big')}\n`,
      'site/notes/small.md': '# Small\n\nOnly a little about cats.\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
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

  const open = (place: string, options = {}) => tabs.open(`${explorer.url}#${place}`, options)
  /** Waits until the index has what is searched for: a search that begins at once may come before it. */
  const searched = async (page: Page, name: string) => {
    for (;;) {
      const hit = page.locator('.hit-link', { hasText: name }).first()
      if (
        await hit.waitFor({ timeout: 1000 }).then(
          () => true,
          () => false,
        )
      )
        return hit
      await page.reload()
    }
  }
  /** Waits until the index is there. */
  const searchedOnce = async (page: Page) => {
    await page.goto(`${explorer.url}#view=search&q=cats`)
    await searched(page, 'Small')
  }
  const total = async (page: Page) =>
    Number((await page.locator('.basket-sum strong').innerText()).replace(/ of .*|,/g, ''))

  test('search results mark the words of the query, and open at the lines that match', async () => {
    const page = await open('view=search&q=deploy')
    const hit = await searched(page, 'Deploying')
    await expect.poll(() => page.locator('.hit-snippet mark').first().innerText()).toMatch(/^deploy/i)
    // What is in a document is text, whatever it looks like.
    expect(await page.locator('.hit-snippet b').count()).toBe(0)
    await hit.focus()
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Remove from the basket' }).first().waitFor()
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('uri=file%3A%2F%2F%2Fsite%2Fguide.md%3Flines%3D')
    expect(await axe(page)).toEqual([])
  })

  test('the filter of a search is kept in the permalink, in Japanese and in the dark theme', async () => {
    const page = await open(`view=search&q=${encodeURIComponent('設計')}`, { locale: 'ja-JP', colorScheme: 'dark' })
    await searched(page, '設計メモ')
    await page.getByText('絞り込み').first().click()
    await page.getByLabel('種類').selectOption('image/*')
    await page.getByText('一致するものはありません').waitFor()
    expect(page.url()).toContain('mime=image')
    expect(await axe(page)).toEqual([])
    await page.goBack()
    await searched(page, '設計メモ')
  })

  test('Enter does not search while an input method composes', async () => {
    const page = await open('view=search&q=deploy')
    await searched(page, 'Deploying')
    const field = page.locator('#search')
    await field.fill('とうきょう')
    await expect.poll(() => decodeURIComponent(page.url())).toContain('とうきょう')
    const place = page.url()
    await field.evaluate((element) => {
      element.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }))
      const init = { key: 'Enter', bubbles: true, cancelable: true, isComposing: true, keyCode: 229 }
      element.dispatchEvent(new KeyboardEvent('keydown', init))
    })
    expect(page.url()).toBe(place)
  })

  test('a template is filled in by the keyboard alone', async () => {
    const page = await open(`view=templates&template=${encodeURIComponent('file:///site/{+path}')}`)
    const field = page.getByRole('combobox', { name: 'path' })
    await field.focus()
    await page.getByRole('option', { name: 'notes/' }).waitFor()
    await page.keyboard.type('not')
    await page.getByRole('option', { name: 'notes/' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    // A folder goes on with what is in it.
    await page.getByRole('option', { name: 'notes/small.md' }).waitFor()
    await page.keyboard.type('sm')
    await page.getByRole('option', { name: 'notes/big.md' }).waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('uri=file%3A%2F%2F%2Fsite%2Fnotes%2Fsmall.md')
  })

  test('a basket is counted exactly, kept below the budget, downloaded as a text, and kept over a reload', async () => {
    const picks = ['auto file:///site/guide.md', 'auto file:///site/notes/big.md', 'auto file:///site/gone.md'].join(
      '\n',
    )
    const page = await open(`picks=${encodeURIComponent(picks)}`, { acceptDownloads: true })
    await page.getByText('This resource no longer exists').waitFor()
    await page.getByLabel('Budget').selectOption('8000')
    await expect.poll(() => total(page)).toBeGreaterThan(1000)
    const shown = await total(page)
    expect(shown).toBeLessThanOrEqual(7760)
    expect(await axe(page)).toEqual([])

    await page.getByLabel('Format').selectOption('markdown')
    await expect.poll(() => total(page)).toBeGreaterThan(1000)
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const file = await (await downloading).path()
    const text = readFileSync(file, 'utf8')
    const counter = await openCounter('o200k_base')
    const counted = await counter.count(text)
    expect(counted).toBeLessThanOrEqual(7760)
    expect(counted).toBe(await total(page))
    expect(text).toContain('file:///site/guide.md')
    // What was taken out of another link is kept over a reload.
    await page.reload()
    await page.getByRole('heading', { name: 'Basket' }).waitFor()
    await page.locator('.basket-item').nth(2).waitFor()
  })

  test('a basket over the budget suggests savings, and can be copied only when it fits', async () => {
    const picks = ['full file:///site/guide.md', 'full file:///site/notes/big.md'].join('\n')
    const page = await open(`picks=${encodeURIComponent(picks)}`)
    await page.getByLabel('Budget').selectOption('8000')
    await page.getByText('tokens over budget').waitFor()
    expect(await page.getByRole('button', { name: 'Copy', exact: true }).isDisabled()).toBe(true)
    await page.locator('.basket-savings button').first().click()
    await page.getByText('tokens left').waitFor()
    expect(await page.getByRole('button', { name: 'Copy', exact: true }).isEnabled()).toBe(true)
  })

  test('the command palette opens a resource by a part of its name, and the key ? shows the keys', async () => {
    const page = await open('')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: /^Type a name/ })
    await field.fill('設計')
    await page.getByRole('option', { name: /設計\.md/ }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.keyboard.press('Enter')
    await expect.poll(() => decodeURIComponent(page.url())).toContain('uri=file:///site/')
    await page.keyboard.press('?')
    await page.getByRole('heading', { name: 'Keys' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Keys' }).waitFor({ state: 'detached' })
  })

  test('the command palette searches the contents of documents on the server', async () => {
    const page = await open('')
    await searchedOnce(page)
    await page.keyboard.press('Control+k')
    // No name, title or address has this word: only the search of the server knows it.
    await page.getByRole('combobox', { name: /^Type a name/ }).fill('cats')
    await page.getByRole('option', { name: /small\.md/ }).waitFor()
  })
})
