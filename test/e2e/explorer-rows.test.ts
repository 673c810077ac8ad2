import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { type Database, startDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const sql = `
CREATE TABLE orders (id bigint PRIMARY KEY, customer text, tea text, cups int, note text);
INSERT INTO orders VALUES (1, 'Aoki', 'Sencha', 3, 'a lantern on the table');
INSERT INTO orders VALUES (9007199254740993, 'Lantern & Co', 'Gyokuro', 12, NULL);
INSERT INTO orders VALUES (3, 'Ito', 'Hojicha', 1, 'weekly');
CREATE TABLE log (line text, level text);
INSERT INTO log VALUES ('the lantern went out', 'warn'), ('all is well', 'info');`

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored
  let database: Database

  beforeAll(async () => {
    database = await startDatabase(sql)
    const file = new DatabaseSync(join(folder.root, 'app.db'))
    file.exec(sql)
    file.close()
    folder.write({
      'site/tea.md': '# Tea\n\nGreen tea.\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'sqlite://lite': { provider: 'sqlite', file: 'app.db', rows: true },
          'postgres://large': { provider: 'postgres', url: { env: 'DATABASE_URL' }, rows: true },
          'search://all': { provider: 'search', over: '*' },
        },
      }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], {
      cwd: folder.outside,
      env: { DATABASE_URL: database.readerUrl },
    })
  })
  afterAll(async () => {
    await explorer.end()
    await database.remove()
    folder.remove()
  })

  const search = (page: Page, place: string) => page.goto(`${explorer.url}#view=search&${place}`)
  /** Opens a search again until its hits are in the index. */
  const found = async (page: Page, selector: string, count: number) => {
    for (;;) {
      const rows = page.locator(selector).nth(count - 1)
      const isThere = await rows.waitFor({ timeout: 1500 }).then(
        () => true,
        () => false,
      )
      if (isThere) return
      await page.reload()
    }
  }

  for (const mount of ['sqlite://lite', 'postgres://large'])
    test(`search hits in rows of ${mount} are shown as tables with column names, and the first hit is previewed`, async () => {
      const page = await tabs.open(explorer.url)
      await search(page, `q=lantern&mount=${encodeURIComponent(mount)}`)
      await found(page, '.hit-table tbody tr', 3)
      const orders = page.locator('.group', { has: page.locator('.group-name', { hasText: /^orders$/ }) })
      const cellsOf = (group: typeof orders, row: number) =>
        group.locator('tr').nth(row).locator('th, td').allInnerTexts()
      expect(await cellsOf(orders, 0)).toEqual(['', 'id', 'customer', 'tea', 'cups', 'note'])
      const rows = [await cellsOf(orders, 1), await cellsOf(orders, 2)].sort()
      expect(rows).toEqual([
        ['', '1', 'Aoki', 'Sencha', '3', 'a lantern on the table'],
        ['', '9007199254740993', 'Lantern & Co', 'Gyokuro', '12', ''],
      ])
      expect(await orders.locator('mark').allInnerTexts()).toHaveLength(2)
      const log = page.locator('.group', { has: page.locator('.group-name', { hasText: /^log$/ }) })
      expect(await log.locator('tbody tr').allInnerTexts()).toEqual([expect.stringContaining('the lantern went out')])
      // The preview is that of the first row, and it is marked.
      const first = page.locator('.hit-link').first()
      await page.locator('.hit-table tr.hit-open').waitFor()
      expect(await page.locator('.hit-table tr.hit-open .hit-link').innerText()).toBe(await first.innerText())
      await page
        .locator('.preview-content', { hasText: 'customer' })
        .or(page.locator('.preview-content', { hasText: 'level' }))
        .first()
        .waitFor()
      expect(await axe(page)).toEqual([])
      // Arrow keys go from row to row, and the space bar adds one to the basket.
      await first.focus()
      await page.keyboard.press('ArrowDown')
      await expect.poll(() => page.locator('.hit-table tr.hit-open').count()).toBe(1)
      await page.keyboard.press(' ')
      await page.locator('.top-basket-count', { hasText: '1' }).waitFor()
    })

  test('a search without a hit shows nothing of the search before it', async () => {
    const page = await tabs.open(explorer.url)
    await search(page, 'q=lantern')
    await found(page, '.hit-table tbody tr', 3)
    await page.locator('.preview-content').waitFor()
    await page.locator('#search').fill('zzzzqq')
    await page.getByText('Nothing was found for “zzzzqq”.').waitFor()
    await page.locator('.home').waitFor()
    expect(await page.locator('.group, .name-hit, .preview').count()).toBe(0)
    // Neither does a filter that no hit passes.
    await page.locator('#search').fill('lantern')
    await page.locator('.preview-content').waitFor()
    await search(page, 'q=lantern&mime=image%2F*')
    await page.getByText('Nothing was found for “lantern”.').waitFor()
    await page.locator('.home').waitFor()
    await page.locator('#search').fill('')
    await page.getByText('Type in the field above').waitFor()
    expect(await page.locator('.preview').count()).toBe(0)
  })
})
