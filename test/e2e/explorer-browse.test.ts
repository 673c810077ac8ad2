import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { useExplored } from '../support/explored.ts'
import { live } from '../support/live.ts'
import { requires } from '../support/require.ts'
import { volumeOf } from '../support/volume.ts'

/** 100,000 at full volume. */
const many = volumeOf(100_000, 20_000)
const nameOf = (i: number) => `measurement-${String(i).padStart(6, '0')}.json`

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const tabs = useBrowser()
  const serve = useExplored()
  const docs = live({
    'apple.md': { text: '# Apple', mimeType: 'text/markdown', modified: Date.UTC(2026, 0, 2), size: 7, priority: 1 },
    'avocado.txt': { text: 'green', mimeType: 'text/plain', size: 5 },
    'guide/setup.md': { text: '# Setup', mimeType: 'text/markdown', size: 7 },
    'guide/deep/er/end.json': { text: '{}', mimeType: 'application/json', size: 2 },
    'カタログ.md': { text: '# カタログ', mimeType: 'text/markdown' },
    'zz\u202egpj.exe': { text: 'x' },
  })
  const big = live(
    Object.fromEntries(Array.from({ length: many }, (_, i) => [nameOf(i), { mimeType: 'application/json', size: i }])),
  )
  let url = ''
  let few = ''
  let asking = { url: '', token: '' }
  beforeAll(async () => {
    ;({ url } = await serve([
      { address: 'mem://docs', title: 'Docs', provider: docs },
      { address: 'mem://big', title: 'Big', provider: big },
    ]))
    ;({ url: few } = await serve([{ address: 'mem://docs', title: 'Docs', provider: docs }]))
    asking = await serve([{ address: 'mem://docs', title: 'Docs', provider: docs }], { asks: true })
  })

  const open = async (place = '', options = {}, at = url) => {
    const page = await tabs.open(`${at}#${place}`, options)
    await page.locator('[role=tree], [role=grid]').first().waitFor()
    return page
  }
  const row = (page: Page, name: string) => page.locator('.rows .row', { hasText: name }).first()
  /** The row that the reader stands on, as a screen reader is told of it. */
  const active = (page: Page) =>
    page.evaluate(() => {
      const focused = document.activeElement
      const id = focused?.getAttribute('aria-activedescendant') ?? ''
      return document.getElementById(id)?.querySelector('.name')?.textContent ?? ''
    })
  const press = async (page: Page, ...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }

  test('the keyboard moves in the tree, picks and shows resources, and the address of the page names the shown resource', async () => {
    const page = await open()
    await page.locator('#tree').focus()
    expect(await active(page)).toBe('Big')
    await press(page, 'ArrowDown', 'ArrowRight')
    await row(page, 'apple.md').waitFor()
    await press(page, 'ArrowRight')
    // Folders come first.
    expect(await active(page)).toBe('guide')
    await press(page, 'ArrowDown')
    expect(await active(page)).toBe('apple.md')
    await press(page, 'End', 'Home', 'a', 'v')
    expect(await active(page)).toBe('avocado.txt')
    await press(page, 'ArrowUp')
    await press(page, 'Shift+ArrowDown', 'Shift+ArrowDown', 'Shift+ArrowUp')
    expect(await page.locator('.row[aria-selected=true]').allInnerTexts()).toEqual(['apple.md', 'avocado.txt'])
    await press(page, 'ArrowUp', 'Space', 'Enter')
    expect(await page.locator('.row[aria-selected=true]').allInnerTexts()).toEqual(['avocado.txt'])
    expect(new URL(page.url()).hash).toBe('#uri=mem%3A%2F%2Fdocs%2Fapple.md')
    await expect.poll(() => page.title()).toBe('apple.md · drawers')
    await press(page, 'ArrowDown', 'Enter')
    await press(page, 'ArrowLeft')
    expect(await active(page)).toBe('Docs')
    // All that lies beside is opened.
    await press(page, 'ArrowRight', '*')
    await row(page, 'setup.md').waitFor()
    const facts = (name: string) =>
      row(page, name).evaluate((element) =>
        ['aria-level', 'aria-posinset', 'aria-setsize', 'aria-expanded'].map((name) => element.getAttribute(name)),
      )
    expect(await facts('guide')).toEqual(['2', '1', '5', 'true'])
    expect(await facts('setup.md')).toEqual(['3', '2', '2', null])
    // What turns text around is to be seen, and turns nothing around.
    expect(await row(page, 'gpj.exe').innerText()).toBe('zz\\u202egpj.exe')
    await page.goBack()
    await expect.poll(() => page.title()).toBe('apple.md · drawers')
    await page.goForward()
    await expect.poll(() => page.title()).toBe('avocado.txt · drawers')
    expect(await axe(page)).toEqual([])
  })

  test('a link to a deep resource opens it, and shows it in the tree', async () => {
    const page = await open('uri=mem%3A%2F%2Fdocs%2Fguide%2Fdeep%2Fer%2Fend.json')
    await page.locator('.row-shown', { hasText: 'end.json' }).waitFor()
    expect(await page.locator('.row-shown').getAttribute('aria-level')).toBe('5')
    await expect.poll(() => page.title()).toContain('end.json')
  })

  test.each(['mem%3A%2F%2Fdocs%2Fguide', 'mem%3A%2F%2Fdocs%2Fguide%2F'])(
    'opening %s shows the folder, not a file in it',
    async (uri) => {
      const page = await open(`uri=${uri}`, {}, few)
      const entries = page.locator('.folder-rows')
      await entries.locator('text=setup.md').waitFor()
      expect(await entries.innerText()).toContain('deep')
      await expect.poll(() => page.title()).toContain('guide')
    },
  )

  test('a directory with very many resources can be scrolled, filtered and sorted with less than 80 rows in the DOM', async () => {
    const page = await open()
    await page.locator('#tree').focus()
    await press(page, 'ArrowRight')
    await row(page, nameOf(0)).waitFor()
    expect(await row(page, nameOf(0)).getAttribute('aria-setsize')).toBe('-1')
    // The next pages come when one comes near.
    await press(page, 'End')
    await page.locator('#tree .row', { hasText: nameOf(1034) }).waitFor({ state: 'attached' })
    expect(await page.locator('.row').count()).toBeLessThan(80)

    await page.getByRole('link', { name: 'List' }).click()
    const total = (many + 6).toLocaleString('en-US')
    await page.locator('.browse-foot', { hasText: `${total} resources` }).waitFor()
    await page.locator('#list').focus()
    await press(page, 'Home', 'ArrowDown', 'End')
    expect(await active(page)).toBe('カタログ.md')
    // The digits that the last hundred begin with.
    const digits = nameOf(many - 1)
      .replace(/\D/g, '')
      .slice(0, 4)
    const matching = Array.from({ length: many }, (_, i) => nameOf(i)).filter((name) => name.includes(digits)).length
    await page.locator('#filter').fill(`ｍｅａｓｕｒｅment ${digits}`)
    await page.locator('.browse-foot', { hasText: `${matching} of ${total}` }).waitFor()
    expect(await page.locator('.row').count()).toBeLessThan(80)
    expect(await page.locator('.row .name mark').first().innerText()).toBe('measurement')
    await page.getByRole('button', { name: 'Size' }).click()
    await row(page, nameOf(many - 1)).waitFor()
    expect(new URL(page.url()).hash).toContain('sort=-size')
    // From here into the tree, through all pages that are before it.
    await row(page, nameOf(many - 10)).click()
    await page.locator('#list').focus()
    await press(page, 'Control+Enter')
    await page.locator('#tree .row-shown', { hasText: nameOf(many - 10) }).waitFor({ timeout: 60_000 })
    expect(await page.locator('#filter').inputValue()).toBe('')
  }, 180_000)

  test('facets with counts filter the tree and the list', async () => {
    const page = await open('view=list&in=mem%3A%2F%2Fdocs%2Fguide%2F&audience=user', {}, few)
    await page.locator('.browse-foot', { hasText: '2 of 6' }).waitFor()
    await page.getByRole('link', { name: 'Everything' }).click()
    const type = page.locator('.facet-choice', { hasText: 'Type' }).locator('select')
    expect(await type.locator('option').allInnerTexts()).toContain('text/markdown (3)')
    await type.selectOption('text/markdown')
    await page.locator('.browse-foot', { hasText: '3 of 6' }).waitFor()
    await page.getByRole('link', { name: 'Tree' }).click()
    await page.locator('#tree').waitFor()
    expect(await page.locator('.row').allInnerTexts()).toEqual(['Docs', 'apple.md', 'guide', 'setup.md', 'カタログ.md'])
    await page.getByRole('button', { name: 'Clear' }).click()
    await row(page, 'avocado.txt').waitFor()
  })

  test('the tree keeps its position when resources appear and disappear, and marks changes', async () => {
    const page = await open()
    await page.locator('#tree').focus()
    await press(page, 'ArrowRight')
    await row(page, nameOf(0)).waitFor()
    await page.locator('#tree').evaluate((tree) => {
      tree.scrollTop = 100 * 24 + 5
    })
    const held = row(page, nameOf(110))
    await held.waitFor()
    const before = await held.boundingBox()
    big.set('a-new-one.json', { mimeType: 'application/json' })
    big.set(nameOf(3), undefined)
    big.set('b-new-one.json', { mimeType: 'application/json' })
    // The marks come with the list: the new rows are above.
    await page.waitForFunction(
      (id) => document.querySelector(`[title="mem://big/${id}"]`)?.getAttribute('aria-posinset') === '112',
      nameOf(110),
    )
    expect((await held.boundingBox())?.y).toBe(before?.y)
    await press(page, 'Home')
    await page.locator('.row', { hasText: 'a-new-one' }).locator('.dot').waitFor()
    await row(page, 'a-new-one').click()
    await page.locator('.row-shown', { hasText: 'a-new-one' }).waitFor()
    expect(await page.locator('.row-shown .dot').count()).toBe(0)
  })

  test('Enter is left to the input method, the filter ignores the width of kana, and the chosen language is kept', async () => {
    const page = await open('', { locale: 'ja-JP' }, few)
    expect(await page.locator('html').getAttribute('lang')).toBe('ja')
    await page.getByRole('link', { name: '一覧' }).waitFor()
    // Nothing is searched for before it is composed.
    const field = page.locator('#search')
    await field.focus()
    const composing = await page.context().newCDPSession(page)
    await composing.send('Input.imeSetComposition', { text: 'かたろぐ', selectionStart: 4, selectionEnd: 4 })
    await field.evaluate((element) => {
      const init = { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }
      element.dispatchEvent(new KeyboardEvent('keydown', init))
    })
    expect(await field.inputValue()).toBe('かたろぐ')
    expect(new URL(page.url()).hash).toBe('')
    await composing.send('Input.insertText', { text: 'かたろぐ' })
    await page.waitForFunction(() => decodeURIComponent(location.hash).includes('q=かたろぐ'))
    await page.getByRole('link', { name: 'ツリー' }).click()
    await page.locator('#filter').fill('ｶﾀﾛｸﾞ')
    await page.locator('.row mark', { hasText: 'カタログ' }).waitFor()
    await page.locator('summary').first().click()
    await page.getByLabel('言語').selectOption('en')
    await page.getByRole('link', { name: 'Tree' }).waitFor()
    await page.reload()
    await page.getByRole('link', { name: 'Tree' }).waitFor()
  })

  test('a narrow window shows one pane at a time, with a way back', async () => {
    const page = await open('view=tree', { viewport: { width: 360, height: 640 }, colorScheme: 'dark' })
    expect(await axe(page)).toEqual([])
    await row(page, 'Big').locator('.row-twist').click()
    await row(page, nameOf(0)).waitFor()
    await page.locator('#tree').evaluate((tree) => {
      tree.scrollTop = 2407
    })
    await row(page, nameOf(110)).click()
    await page.locator('#middle').waitFor()
    expect(await page.locator('#left').isVisible()).toBe(false)
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
    await page.getByRole('button', { name: 'Back' }).click()
    await row(page, nameOf(110)).waitFor()
    expect(await page.locator('#tree').evaluate((tree) => tree.scrollTop)).toBe(2407)
    expect(await page.locator('#middle').isVisible()).toBe(false)
  })

  test('the list passes the accessibility check (axe) in the dark theme, and the panes keep their width over a reload', async () => {
    const page = await open('view=list&mime=text%2Fmarkdown', { colorScheme: 'dark' }, few)
    await page.locator('.browse-foot', { hasText: '3 of' }).waitFor()
    expect(await axe(page)).toEqual([])
    // The panes are moved by keyboard, and stay where they were put.
    await page.getByRole('separator').focus()
    const before = (await page.locator('#left').boundingBox())?.width ?? 0
    await press(page, 'ArrowLeft', 'ArrowLeft')
    expect((await page.locator('#left').boundingBox())?.width).toBe(before - 32)
    await page.reload()
    await page.locator('#list').waitFor()
    expect((await page.locator('#left').boundingBox())?.width).toBe(before - 32)
  })

  test('the token that a server requires is requested, again after a refusal, and not stored', async () => {
    const page = await tabs.open(asking.url, { allowed: [/status of 401/] })
    const field = page.getByLabel('Access token')
    await field.fill('hkd_wrong')
    await press(page, 'Enter')
    await page.getByText('did not accept').waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByLabel('Access token').fill(asking.token)
    await press(page, 'Enter')
    await page.locator('#tree').waitFor()
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    )
    expect(kept).not.toContain(asking.token)
  })
})
