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
    const long = Array.from({ length: 3000 }, (_, i) => `Line ${i} of a long text about tea.`).join('\n')
    folder.write({
      ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`site/notes/note-${i}.md`, `# Note ${i}\n\nTea.\n`])),
      ...Object.fromEntries(
        Array.from({ length: 484 }, (_, i) => [`site/many/${i}.txt`, `${'A line about cups. '.repeat(30)}\n`]),
      ),
      'site/long.md': `# Long\n\n## Part\n\n${long}\n`,
      'site/brew.ts': 'export function brew(cups: number): void {\n  kettle.boil(cups)\n}\n',
      'site/README.md': '# Site\n\nSee [the long one](long.md).\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'file:///empty': { provider: 'files', root: 'empty' },
          'memo://kind': { provider: 'inline', text: 'Be kind.' },
          'search://all': { provider: 'search', over: ['file:///site'] },
        },
      }),
      'empty/': null,
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const notes = Array.from({ length: 40 }, (_, i) => `auto file:///site/notes/note-${i}.md`)
  const open = (picks: readonly string[], options = {}) =>
    tabs.open(`${explorer.url}#picks=${encodeURIComponent(picks.join('\n'))}`, options)
  const boxOf = async (page: Page, selector: string) =>
    (await page.locator(selector).first().boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }

  test('an item of the basket takes one line, and the actions for all items stay visible', async () => {
    const page = await open(notes)
    await page.locator('.basket-item').nth(39).waitFor({ state: 'attached' })
    const { height } = await boxOf(page, '.basket-line')
    expect(height).toBeLessThan(32)
    for (const name of ['Copy', 'Preview', 'Download'])
      expect((await page.locator('.basket').getByRole('button', { name, exact: true }).boundingBox())?.y).toBeLessThan(
        800,
      )
    await page.getByText('models count slightly differently').waitFor()
    expect(await axe(page)).toEqual([])
  })

  test('the filter field refers to the rows that it filters (aria-controls), and to none if there are none', async () => {
    const page = await tabs.open(`${explorer.url}#filter=zzzz`)
    await page.getByText('No matches.').waitFor()
    await page.locator('#filter:not([aria-controls])').waitFor()
    expect(await axe(page)).toEqual([])
    await page.locator('#filter').fill('')
    await page.locator('#tree').waitFor()
    await page.locator('#filter[aria-controls="tree"]').waitFor()
  })

  test('a text that is truncated for the budget is marked, and the prompt can be read before it is copied', async () => {
    const page = await open(['auto file:///site/long.md', 'auto file:///site/notes/note-1.md'], {
      locale: 'ja-JP',
      colorScheme: 'dark',
    })
    await page.getByLabel('予算').selectOption('4000')
    await page.getByText('2 件のうち 1 件を、収まるように短縮しています。').waitFor()
    expect(await page.locator('.basket-short').innerText()).toContain('long.md')
    expect(await axe(page)).toEqual([])
    await page.locator('.basket').getByRole('button', { name: 'プレビュー' }).click()
    const prompt = page.getByRole('dialog', { name: 'プロンプト' })
    await prompt.getByText('file:///site/long.md').first().waitFor()
    expect(await axe(page)).toEqual([])
    await prompt.getByRole('button', { name: '閉じる' }).click()
    await prompt.waitFor({ state: 'detached' })
  })

  test('on a phone the header, and all that is above a content, takes at most a tenth of the height, and the links to the views are at the bottom', async () => {
    const page = await tabs.open(`${explorer.url}#view=tree`, { viewport: { width: 390, height: 780 } })
    await page.locator('#tree').waitFor()
    expect((await boxOf(page, '.top')).height).toBeLessThanOrEqual(78)
    const views = await boxOf(page, '.views')
    expect(views.y + views.height).toBe(780)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(await axe(page)).toEqual([])
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${explorer.url}#view=tree&uri=${encodeURIComponent('file:///site/brew.ts')}`)
    await page.locator('.preview-content').waitFor()
    // Above the content stand the search, the way back, the name and the way there; the rest lies below it.
    const content = await boxOf(page, '.preview-content')
    expect(content.y).toBeLessThanOrEqual(84.4)
    for (const part of ['.preview-actions', '.preview-body > .preview-bar'])
      expect((await boxOf(page, part)).y).toBeGreaterThanOrEqual(content.y + content.height)
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Back' }).click()
    await page.locator('#tree').waitFor()
  })

  test('mounts of one kind are told apart by name, a mount of one document says so, the README has the colours of the page, and an empty folder says so without a basket button', async () => {
    const page = await open([])
    const cards = page.locator('.home-mounts a')
    await cards.getByText('one document').waitFor()
    await cards.getByText('2 folders, 3 files').first().waitFor()
    expect(await cards.locator('bdi').allInnerTexts()).toEqual([
      'empty',
      'Files',
      'site',
      'Files',
      'kind',
      'Search',
      'all',
    ])
    // The README is laid out in the colours of the page, although nothing was previewed so far.
    const link = page.locator('.readme .markdown a')
    const colourOf = (selector: string) => page.locator(selector).evaluate((one) => getComputedStyle(one).color)
    await link.waitFor()
    expect(await colourOf('.readme .markdown a')).toBe(await colourOf('.readme > h3 a'))
    expect(await axe(page)).toEqual([])
    await page.locator('#tree .row', { hasText: 'empty' }).first().click()
    await page.getByText('This folder is empty.').waitFor()
    // The button disappears in an effect, after the text has been drawn.
    await expect
      .poll(() =>
        page
          .locator('.preview-actions')
          .getByRole('button', { name: /basket/ })
          .count(),
      )
      .toBe(0)
    expect(await page.locator('.crumbs').innerText()).toBe('file:///empty')
  })

  test('the confirmation for adding a folder has the style of the page, also before a basket was opened', async () => {
    const page = await open([])
    const row = page.locator('#tree .row', { has: page.locator('.name', { hasText: /^notes$/ }) })
    await row.hover()
    await row.locator('.pick').click()
    const dialog = page.getByRole('dialog', { name: 'Add the folder “notes”' })
    await dialog.getByRole('button', { name: 'Add 40 files' }).waitFor()
    expect(await dialog.evaluate((one) => getComputedStyle(one).borderRadius)).toBe('8px')
    expect(await axe(page)).toEqual([])
  })

  test('a folder of many files shows its tokens before it is added, and is one group afterwards, which can be opened and removed', async () => {
    const page = await open([])
    const add = async (name: RegExp) => {
      const row = page.locator('#tree .row', { has: page.locator('.name', { hasText: name }) })
      await row.hover()
      await row.locator('.pick').click()
    }
    await add(/^many$/)
    const dialog = page.getByRole('dialog', { name: 'Add the folder “many”' })
    const told = await dialog.locator('.adding-sum').innerText()
    expect(told).toMatch(/^484 files, about [\d,]+ tokens$/)
    await dialog.getByText(/tokens over the budget of 31,040/).waitFor()
    await dialog.getByRole('button', { name: 'Add 484 files' }).click()
    await add(/^brew\.ts$/)
    await page.locator('.top-basket-count', { hasText: '485' }).click()
    const group = page.locator('.basket-group')
    await group.getByText('484 files').waitFor()
    expect(await page.locator('.basket-item').count()).toBe(1)
    expect(await axe(page)).toEqual([])
    const head = group.getByRole('button', { name: /many/ }).first()
    await head.press('Enter')
    await expect.poll(() => page.locator('.basket-item').count()).toBe(485)
    await head.press('Enter')
    await group.getByRole('button', { name: 'Remove the 484 files of site › many' }).click()
    await page.locator('.top-basket-count', { hasText: /^1$/ }).waitFor()
    expect(await page.locator('.basket-item').innerText()).toContain('brew.ts')
  })

  test('a source file has the badge of its language, and a Markdown file an icon without text', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/`)
    const iconOf = (name: string) => page.locator('.folder-row', { hasText: name }).locator('svg')
    await iconOf('brew.ts').waitFor()
    expect(await iconOf('brew.ts').locator('text').textContent()).toBe('TS')
    expect(await iconOf('README.md').locator('text').count()).toBe(0)
  })

  test('columns of the list without values leave their room to the names', async () => {
    const page = await tabs.open(`${explorer.url}#view=list`)
    await page.locator('#list .row').first().waitFor()
    expect(await page.locator('.browse.without-priority').count()).toBe(1)
    const wide = await boxOf(page, '#list .row .cell-name')
    expect(wide.width).toBeGreaterThan(160)
    await page.locator('#filter').fill('kind')
    await page.locator('.browse.without-modified').waitFor()
    expect((await boxOf(page, '#list .row .cell-name')).width).toBeGreaterThan(wide.width)
    await page.locator('.list-sort.cell-modified').waitFor({ state: 'hidden' })
  })

  test('on a touch screen buttons, fields and rows are at least 44 pixels high in each view', async () => {
    const page = await open(notes.slice(0, 2), {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    })
    await page.locator('.basket-line').first().waitFor()
    const views: readonly (readonly [place: string, drawn: string])[] = [
      ['basket=1', '.basket-line'],
      ['', '.home-mounts a'],
      ['view=tree', '#tree .row >> nth=1'],
      ['view=list', '#list .row >> nth=1'],
      ['view=search&q=kettle', '.hit-link'],
      ['view=templates', '.template a'],
      ['view=tree&uri=file:///site/', '.folder-row >> nth=1'],
      ['view=tree&uri=file:///site/README.md', '.markdown h1'],
    ]
    for (const [place, drawn] of views) {
      await page.goto(`${explorer.url}#${place}`)
      await page.locator(drawn).first().waitFor()
      if (place === 'basket=1') expect((await boxOf(page, '.basket-line > a')).width).toBeGreaterThan(150)
      const small = await page.evaluate(() =>
        [...document.querySelectorAll('button, select, input, summary, .row, .folder-row, .views a, .button, .home a')]
          // A link in a text is as high as its line.
          .filter((one) => one.checkVisibility() && !one.matches('.skip, .readme *, .markdown *'))
          .filter((one) => one.getBoundingClientRect().height < 44)
          .map((one) => one.outerHTML.slice(0, 120)),
      )
      expect({ place, small }).toEqual({ place, small: [] })
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
      expect(await axe(page)).toEqual([])
    }
  })

  test.each([
    ['on a phone', { width: 390, height: 844 }],
    ['at 200 % zoom', { width: 640, height: 400 }],
  ])('%s the first screen is the start page, and one step leads to a view and back', async (_, viewport) => {
    const page = await tabs.open(explorer.url, { viewport })
    await page.locator('.home-mounts a', { hasText: 'site' }).waitFor()
    const field = await boxOf(page, '.home-search input')
    expect([field.x >= 16, field.x + field.width <= viewport.width - 16]).toEqual([true, true])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(viewport.width)
    expect(await page.getByRole('button', { name: 'Back' }).count()).toBe(0)
    expect(await axe(page)).toEqual([])
    await page.getByRole('link', { name: 'Tree', exact: true }).click()
    await page.locator('#tree .row', { hasText: 'brew.ts' }).click()
    await page.locator('.preview-content').waitFor()
    // A view shows itself, also over a preview.
    await page.getByRole('link', { name: 'List', exact: true }).click()
    await page.locator('#list').waitFor()
    await page.getByRole('link', { name: 'Start', exact: true }).click()
    await page.locator('.home-mounts a', { hasText: 'site' }).click()
    await page.locator('.folder-row', { hasText: 'brew.ts' }).waitFor()
    await page.getByRole('button', { name: 'Back' }).click()
    await page.locator('.home-mounts').waitFor()
  })

  test('a hit in code keeps its line breaks, and shows line numbers and the found word', async () => {
    const page = await tabs.open(`${explorer.url}#view=search&q=kettle`)
    const hit = page.locator('.hit-snippet.mono')
    await hit.waitFor()
    expect(await hit.innerText()).toBe('  kettle.boil(cups)\n}')
    expect(await hit.locator('.hit-line').first().getAttribute('data-n')).toMatch(/^\d+$/)
    expect(await hit.locator('mark').innerText()).toBe('kettle')
  })

  test('at 200 % zoom the basket is more than 400 pixels wide', async () => {
    const page = await open(notes.slice(0, 3), { viewport: { width: 720, height: 450 } })
    await page.locator('.basket-line').first().waitFor()
    expect((await boxOf(page, '.right')).width).toBeGreaterThan(400)
    expect(await axe(page)).toEqual([])
  })

  test('the help opens at its top, with the focus on its first heading', async () => {
    const page = await open([], { viewport: { width: 1280, height: 420 } })
    await page.locator('#tree').waitFor()
    await page.keyboard.press('?')
    const heading = page.getByRole('heading', { name: 'Keys' })
    await heading.waitFor()
    expect(await page.locator('.help').evaluate((help) => help.scrollTop)).toBe(0)
    expect(await heading.evaluate((element) => element === document.activeElement)).toBe(true)
  })

  test('the heading for the time of change in the list begins where its column begins', async () => {
    const page = await tabs.open(`${explorer.url}#view=list`)
    await page.locator('#list .row').first().waitFor()
    const head = await boxOf(page, '.list-head .cell-modified')
    const cell = await boxOf(page, '#list .row .cell-modified')
    expect(Math.abs(head.x - cell.x)).toBeLessThan(2)
  })

  test('a notebook shows its texts, code and outputs, and a footnote links to its note', async () => {
    const cells = [
      { cell_type: 'markdown', source: '# Cups of tea[^1]\n\n[^1]: Green ones.\n' },
      {
        ...{ cell_type: 'code', execution_count: 7, source: 'import tea\ntea.count()' },
        outputs: [{ output_type: 'execute_result', data: { 'text/html': '<b>42 cups</b>', 'text/plain': '42 cups' } }],
      },
    ]
    folder.write({ 'site/tea.ipynb': JSON.stringify({ nbformat: 4, metadata: {}, cells }) })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/tea.ipynb`)
    const notebook = page.locator('.notebook')
    await notebook.locator('h1', { hasText: 'Cups of tea' }).waitFor()
    await notebook.locator('code .hljs-keyword', { hasText: 'import' }).waitFor()
    expect(await notebook.locator('pre.notebook-output').innerText()).toBe('42 cups')
    await notebook.locator('sup a').click()
    await notebook.locator('section[id="user-content-footnote-1"]', { hasText: 'Green ones.' }).waitFor()
    expect(await axe(page)).toEqual([])
  })

  test('the list of all files of a folder with a README does not scroll by itself', async () => {
    folder.write({
      ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`site/shelf/box-${i}.txt`, 'Tea.\n'])),
      'site/shelf/README.md': '# The shelf\n',
    })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/shelf/`)
    await page.locator('.folder-readme h1', { hasText: 'The shelf' }).waitFor()
    const list = page.locator('.folder-rows')
    await expect.poll(() => page.locator('.folder-row').count()).toBe(31)
    expect(await list.evaluate((one) => one.scrollHeight - one.clientHeight)).toBe(0)
    await list.focus()
    await page.keyboard.press('End')
    const last = page.locator('.folder-row.active', { hasText: 'README.md' })
    await expect.poll(async () => (await last.boundingBox())?.y ?? 800).toBeLessThan(800)
  })

  test('two previews begin at the same height, with their actions in one row, and the second can be closed', async () => {
    const page = await tabs.open(
      `${explorer.url}#uri=file:///site/README.md&beside=${encodeURIComponent('file:///site/brew.ts')}`,
    )
    await page.locator('.beside .line').first().waitFor()
    await page.locator('#middle .markdown h1').waitFor()
    const tops = await page
      .locator('.preview-name')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().y))
    expect(new Set(tops).size).toBe(1)
    for (const actions of await page.locator('.preview-actions').all())
      expect((await actions.boundingBox())?.height).toBe(28)
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Close the second preview' }).click()
    await page.locator('.beside').waitFor({ state: 'detached' })
  })

  test('at 200 % zoom the content of a preview takes more than half of the height of the window', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/brew.ts`, { viewport: { width: 640, height: 400 } })
    await page.locator('.line').first().waitFor()
    expect((await boxOf(page, '.preview-content')).height).toBeGreaterThan(200)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(640)
    expect(await axe(page)).toEqual([])
  })

  test('the words of a search are marked in the preview of a hit, which keeps its colours', async () => {
    const page = await tabs.open(`${explorer.url}#view=search&q=kettle`)
    const line = page.locator('#middle .line.marked', { hasText: 'kettle' })
    await line.locator('mark', { hasText: 'kettle' }).waitFor()
    await page.locator('#middle .line .hljs-keyword', { hasText: 'export' }).waitFor()
    expect(await line.innerText()).toBe('  kettle.boil(cups)')
  })

  test('added, removed and unchanged lines of a diff have different backgrounds, and begin close to their numbers', async () => {
    folder.write({ 'site/change.diff': '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n' })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/change.diff`)
    await page.locator('.hljs-addition', { hasText: 'new' }).waitFor()
    const colourOf = (text: string) =>
      page.locator('.line', { hasText: text }).evaluate((one) => getComputedStyle(one).backgroundColor)
    const [added, removed, same] = [await colourOf('+new'), await colourOf('-old'), await colourOf('same')]
    expect(new Set([added, removed, same]).size).toBe(3)
    // The text begins close to its number.
    expect((await boxOf(page, '.line code')).x - (await boxOf(page, '.line')).x).toBeLessThan(48)
    expect(await axe(page)).toEqual([])
  })

  test('the head of a column of numbers is aligned right, as the numbers are, and a date in a table does not wrap', async () => {
    folder.write({
      'site/cups.csv': 'shop,cups\nUji,1200\nKyoto,98\n',
      'site/table.md': `| Day | Note |\n|---|---|\n| 2026-05-01 | ${'A long note about the guests. '.repeat(20)} |\n`,
    })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/cups.csv`)
    const head = page.locator('.grid-head bdi', { hasText: 'cups' })
    await head.waitFor()
    const cell = page.getByRole('gridcell', { name: '1200' })
    const rightOf = async (box: Promise<{ x: number; width: number } | null>) => {
      const { x, width } = (await box) ?? { x: 0, width: 0 }
      return x + width
    }
    // The head has a place for the sign of its order, and the cell its padding.
    expect(Math.abs((await rightOf(head.boundingBox())) - (await rightOf(cell.boundingBox())))).toBeLessThan(16)
    await page.goto(`${explorer.url}#uri=file:///site/table.md`)
    const date = page.locator('.markdown td', { hasText: '2026-05-01' })
    await date.waitFor()
    expect(await date.evaluate((one) => getComputedStyle(one).whiteSpace)).toBe('nowrap')
  })

  test('a missing resource leads to its folder, and to a search for its name', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/notes/note-7.markdown`)
    await page.getByRole('link', { name: 'Open its folder' }).waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByRole('link', { name: 'Search for “note-7.markdown”' }).click()
    await page.locator('.find').waitFor()
    expect(await page.locator('#search').inputValue()).toBe('note-7.markdown')
  })

  test('a returning reader sees the recently opened resources first', async () => {
    const page = await tabs.open(explorer.url)
    const headings = page.locator('.home h3[id]')
    await expect
      .poll(() => headings.allInnerTexts())
      .toEqual(['Contents', 'Recently changed', 'Add this server to a host'])
    await page.goto(`${explorer.url}#uri=file:///site/brew.ts`)
    await page.locator('.line').first().waitFor()
    await page.goto('about:blank')
    await page.goto(explorer.url)
    await page.getByRole('link', { name: 'brew.ts' }).first().waitFor()
    expect((await headings.allInnerTexts()).slice(0, 1)).toEqual(['Recently opened'])
  })

  test('a folder highlights no entry before it has the focus, and names the types of entries in the language of the page', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/`, { locale: 'ja-JP' })
    const first = page.locator('.folder-row').first()
    await first.waitFor()
    const colour = () => first.evaluate((one) => getComputedStyle(one).backgroundColor)
    expect(await colour()).toBe('rgba(0, 0, 0, 0)')
    await page.locator('.folder-rows').focus()
    expect(await colour()).not.toBe('rgba(0, 0, 0, 0)')
    expect(await page.locator('.folder-row', { hasText: 'many' }).locator('.folder-type').innerText()).toBe(
      'フォルダー',
    )
    folder.write({ 'site/plain.txt': 'Tea.\n' })
    await page.goto(`${explorer.url}#uri=file:///site/plain.txt`)
    await page.locator('.preview-head .chip', { hasText: 'テキスト' }).waitFor()
  })

  test('a link to a mount of a single document shows the document, also after each reload', async () => {
    const page = await tabs.open(`${explorer.url}#uri=memo://kind`, { viewport: { width: 390, height: 844 } })
    for (let times = 0; times < 5; times++) {
      await page.locator('.preview-content', { hasText: 'Be kind.' }).waitFor()
      await page.reload()
    }
  })

  test('a notebook leaves out empty cells, and shows errors as such', async () => {
    const failed = { output_type: 'error', ename: 'KeyError', evalue: "'cup'", traceback: [] }
    const cells = [
      { cell_type: 'code', execution_count: 1, source: 'cups["cup"]', outputs: [failed] },
      { cell_type: 'code', execution_count: null, source: '', outputs: [] },
    ]
    folder.write({ 'site/failed.ipynb': JSON.stringify({ nbformat: 4, metadata: {}, cells }) })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/failed.ipynb`)
    await page.locator('.notebook-output.failed', { hasText: "KeyError: 'cup'" }).waitFor()
    expect(await page.locator('.notebook-cell').count()).toBe(1)
    expect(await axe(page)).toEqual([])
  })

  test('a transparent picture is on light squares in the dark theme too', async () => {
    folder.write({
      'site/sign.svg':
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" width="40" height="20"><text y="15">A</text></svg>',
    })
    const page = await tabs.open(`${explorer.url}#uri=file:///site/sign.svg`, { colorScheme: 'dark' })
    const picture = page.locator('.checkered img')
    await picture.waitFor()
    expect(await picture.evaluate((one) => getComputedStyle(one).backgroundImage)).toContain('rgb(255, 255, 255)')
  })

  test('a lost connection leaves the page of a phone as wide as the phone', async () => {
    const other = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
    const page = await tabs.open(`${other.url}#uri=file:///site/brew.ts`, {
      ...{ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
      allowed: [/ERR_|Failed to load/],
    })
    await page.locator('.line').first().waitFor()
    await other.end()
    await page.getByRole('button', { name: 'Reconnect now' }).waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(await axe(page)).toEqual([])
  })
})
