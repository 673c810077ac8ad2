import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

// What a new user does, and with how many actions: a click, a key and a typed text are one each.

/** A user whose actions are counted. */
interface User {
  readonly page: Page
  click(target: Locator): Promise<void>
  type(text: string): Promise<void>
  press(key: string): Promise<void>
  choose(field: Locator, value: string): Promise<void>
  /** Presses the button of the browser that goes back. */
  back(): Promise<void>
}

interface Task {
  readonly name: string
  /** Number of actions that it takes. */
  readonly actions: number
  /** The fragment of the address at which it begins. Default: the first screen. */
  readonly place?: string
  /** Performs the task, and resolves when its aim is reached. */
  walk(user: User): Promise<unknown>
}

const uri = (path: string) => `uri=${encodeURIComponent(`file:///shop/${path}`)}`
const row = (page: Page, name: string) =>
  page.locator('#tree .row', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) })
/** Pastes what was copied into a page of its own. */
const clipboard = async (page: Page) => {
  const other = await page.context().newPage()
  await other.setContent('<textarea></textarea>')
  await other.locator('textarea').click()
  await other.keyboard.press('Control+V')
  const text = await other.locator('textarea').inputValue()
  await other.close()
  return text
}
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
const preview = (page: Page) => page.locator('#middle .preview')

const tasks: readonly Task[] = [
  {
    name: 'find a file by a part of its name',
    actions: 2,
    walk: async ({ page, press, type }) => {
      await press('/')
      await type('refund')
      await page.locator('.name-hit', { hasText: 'refunds.md' }).waitFor()
      // The file, or the passage in it.
      await preview(page).locator('.preview-content', { hasText: 'Refunds' }).waitFor()
    },
  },
  {
    name: 'find a passage from the first screen',
    actions: 3,
    walk: async ({ page, click, type, press }) => {
      await click(page.locator('.home-search input'))
      await type('kettle')
      await press('Enter')
      await page.locator('.hit mark', { hasText: 'kettle' }).waitFor()
      await preview(page).locator('.line', { hasText: 'kettle.boil' }).waitFor()
    },
  },
  {
    name: 'find a row of a database',
    actions: 2,
    walk: async ({ page, press, type }) => {
      await press('/')
      await type('Gyokuro')
      await page.locator('.hit-table th', { hasText: 'customer' }).waitFor()
      await page.locator('.hit-table td', { hasText: 'Ito' }).waitFor()
    },
  },
  {
    name: 'open a resource by typing its name',
    actions: 3,
    walk: async ({ page, press, type }) => {
      await press('Control+k')
      await type('brew.ts')
      await page.locator('[role=option]', { hasText: 'brew.ts' }).first().waitFor()
      await press('Enter')
      await preview(page).locator('.line', { hasText: 'kettle.boil' }).waitFor()
    },
  },
  {
    name: 'find a line anywhere in a large log',
    actions: 3,
    place: uri('app.log'),
    walk: async ({ page, press, type, click }) => {
      await preview(page).locator('.line').first().waitFor()
      await press('Control+f')
      await type('request 29995 ')
      await click(page.getByRole('button', { name: /^Search (?:all|the whole)/ }))
      await page.getByRole('link', { name: '29,995' }).waitFor()
    },
  },
  {
    name: 'filter the list by a part of the name',
    actions: 3,
    walk: async ({ page, click, type }) => {
      await click(page.getByRole('link', { name: 'List', exact: true }))
      await click(page.locator('#filter'))
      await type('.csv')
      await expect.poll(() => page.locator('#list .row').count()).toBe(1)
    },
  },
  {
    name: 'read what the project is about',
    actions: 0,
    walk: ({ page }) => page.locator('.readme h1', { hasText: 'Shop' }).waitFor(),
  },
  {
    name: 'read a file in a folder',
    actions: 2,
    walk: async ({ page, click }) => {
      await click(row(page, 'guide'))
      await click(page.locator('.folder-row', { hasText: 'refunds.md' }))
      await preview(page).locator('.markdown h1', { hasText: 'Refunds' }).waitFor()
    },
  },
  {
    name: 'read the end of a log, with the numbers of its lines',
    actions: 2,
    walk: async ({ page, click }) => {
      await click(row(page, 'app.log'))
      await click(page.getByRole('link', { name: 'Show the end' }))
      await preview(page).locator('.line[data-n="30000"]').waitFor()
    },
  },
  {
    name: 'see the largest value of a table',
    actions: 2,
    place: uri('sales.csv'),
    walk: async ({ page, click }) => {
      const head = page.locator('.grid [role=columnheader]', { hasText: 'cups' })
      await click(head)
      await click(head)
      await page.locator('.grid [role=row][aria-rowindex="2"] [role=gridcell]', { hasText: '299' }).waitFor()
    },
  },
  {
    name: 'switch the page to Japanese',
    actions: 2,
    walk: async ({ page, click, choose }) => {
      await click(page.locator('.menu > summary'))
      await choose(page.locator('.menu-body select').first(), 'ja')
      await page.getByText('コンテンツ').waitFor()
    },
  },
  {
    name: 'compare two files',
    actions: 2,
    place: uri('guide/refunds.md'),
    walk: async ({ page, click }) => {
      await click(button(page, 'Keep beside'))
      await click(row(page, 'payments.md'))
      await page.locator('.beside .markdown h1', { hasText: 'Refunds' }).waitFor()
      await preview(page).locator('.markdown h1', { hasText: 'Payments' }).first().waitFor()
    },
  },
  {
    name: 'collect one file',
    actions: 1,
    place: uri('guide/refunds.md'),
    walk: async ({ page, click }) => {
      await click(button(page, 'Add to the basket'))
      await page.locator('.top-basket-count', { hasText: '1' }).waitFor()
    },
  },
  {
    name: 'collect a folder after seeing how many tokens it has',
    actions: 2,
    walk: async ({ page, click }) => {
      await row(page, 'guide').hover()
      await click(row(page, 'guide').locator('.pick'))
      await page
        .getByRole('dialog')
        .getByText(/2 files, about \d+ tokens/)
        .waitFor()
      await click(page.getByRole('dialog').getByRole('button', { name: 'Add 2 files' }))
      await page.locator('.top-basket-count', { hasText: '2' }).waitFor()
    },
  },
  {
    name: 'collect all files of a search',
    actions: 4,
    walk: async ({ page, press, type, click }) => {
      await press('/')
      await type('refund')
      await page.locator('.group').nth(1).waitFor()
      await click(button(page, 'Add all to the basket'))
      await click(page.getByRole('dialog').getByRole('button', { name: /^Add \d files$/ }))
      await page.locator('.top-basket-count', { hasText: /^[2-9]$/ }).waitFor()
    },
  },
  {
    name: 'copy the prompt of two files',
    actions: 2,
    place: `picks=${encodeURIComponent('auto file:///shop/guide/refunds.md\nauto file:///shop/src/brew.ts')}`,
    walk: async ({ page, click }) => {
      await page.getByText('tokens left').waitFor()
      await click(page.locator('.basket').getByRole('button', { name: 'Copy', exact: true }))
      await page.getByText(/^Copied: \d+ tokens$/).waitFor()
      expect(await clipboard(page)).toContain('kettle.boil')
      await click(button(page, 'Close the basket'))
    },
  },
  {
    name: 'copy the address of a file',
    actions: 1,
    place: uri('guide/refunds.md'),
    walk: async ({ page, click }) => {
      await click(button(page, 'Copy URI'))
      await expect.poll(() => clipboard(page)).toBe('file:///shop/guide/refunds.md')
    },
  },
  {
    name: 'copy the command that adds the server to a host',
    actions: 1,
    walk: async ({ page, click }) => {
      await click(button(page, 'Copy this'))
      await expect.poll(() => clipboard(page)).toContain('mcp')
    },
  },
  {
    name: 'follow a link from one document to another, and come back',
    actions: 2,
    place: uri('README.md'),
    walk: async ({ page, click, back }) => {
      await click(preview(page).getByRole('link', { name: 'the refunds' }))
      await preview(page).locator('.markdown h1', { hasText: 'Refunds' }).waitFor()
      await back()
      await preview(page).locator('.markdown h1', { hasText: 'Shop' }).first().waitFor()
    },
  },
  {
    name: 'follow a log while it grows',
    actions: 1,
    place: uri('growing.log'),
    walk: async ({ page, click }) => {
      await preview(page).locator('.line', { hasText: 'the first line' }).waitFor()
      await click(page.getByRole('link', { name: 'Show the end' }))
      await preview(page).getByText('The last lines are shown.').waitFor()
      appendFileSync(growing, 'a line that came later\n')
      await preview(page).locator('.line', { hasText: 'a line that came later' }).waitFor()
    },
  },
]

let growing = ''

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored

  beforeAll(async () => {
    const database = new DatabaseSync(join(folder.root, 'app.db'))
    database.exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, tea TEXT);
      INSERT INTO orders VALUES (1, 'Aoki', 'Sencha'), (2, 'Ito', 'Gyokuro')`)
    database.close()
    const lines = (count: number) =>
      Array.from({ length: count }, (_, i) => `request ${i + 1} of a customer was answered in time\n`).join('')
    folder.write({
      'shop/README.md': '# Shop\n\nTea and its software. See [the refunds](guide/refunds.md).\n',
      'shop/guide/refunds.md': '# Refunds\n\nA refund goes to the card that paid.\n',
      'shop/guide/payments.md': '# Payments\n\nA payment can become a refund.\n',
      'shop/src/brew.ts': 'export function brew(cups: number): void {\n  kettle.boil(cups)\n}\n',
      'shop/sales.csv': `day,cups\n${Array.from({ length: 300 }, (_, i) => `${i + 1},${(i * 7) % 300}\n`).join('')}`,
      'shop/app.log': lines(30_000),
      'shop/growing.log': `the first line\n${lines(20_000)}`,
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///shop': { provider: 'files', root: 'shop' },
          'sqlite://app': { provider: 'sqlite', file: 'app.db', rows: true },
          'search://all': { provider: 'search', over: '*' },
        },
      }),
    })
    growing = join(folder.root, 'shop/growing.log')
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
    // Everything is in the index before the first task.
    const page = await tabs.open(`${explorer.url}#view=search&q=Gyokuro`)
    for (;;) {
      const isThere = await page
        .locator('.hit-table')
        .waitFor({ timeout: 1500 })
        .then(
          () => true,
          () => false,
        )
      if (isThere) break
      await page.reload()
    }
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  for (const { name, actions, place = '', walk } of tasks)
    test(`a user can ${name}, with ${actions} actions`, async () => {
      const page = await tabs.open(`${explorer.url}#${place}`, { permissions: ['clipboard-read', 'clipboard-write'] })
      await page.locator('#tree .row').first().waitFor()
      let count = 0
      const counted = async (action: Promise<unknown>) => {
        count++
        await action
      }
      await walk({
        page,
        click: (target) => counted(target.click()),
        type: (text) => counted(page.keyboard.type(text)),
        press: (key) => counted(page.keyboard.press(key)),
        choose: (field, value) => counted(field.selectOption(value)),
        back: () => counted(page.goBack()),
      })
      expect(count).toBe(actions)
    })

  test('a user reaches each control of a view with the Tab key, and sees where the focus is', async () => {
    const page = await tabs.open(explorer.url)
    const picks = `picks=${encodeURIComponent('auto file:///shop/guide/refunds.md\nauto file:///shop/guide/payments.md')}`
    for (const place of ['', 'view=search&q=Gyokuro', 'view=list', uri('guide/refunds.md'), uri('sales.csv'), picks]) {
      await page.goto('about:blank')
      await page.goto(`${explorer.url}#${place}`)
      await page.locator('#tree .row, #list .row, .hit-link').first().waitFor()
      await page.locator('.home .markdown a, .preview-content').first().waitFor()
      const hidden: string[] = []
      for (let isNew = true; isNew; ) {
        await page.keyboard.press('Tab')
        const now = await page.evaluate(() => {
          const { activeElement: element } = document
          if (element === null || element === document.body || element.hasAttribute('data-reached')) return undefined
          element.setAttribute('data-reached', '')
          const owner = document.getElementById(element.getAttribute('aria-activedescendant') ?? '') ?? element
          const { outlineStyle, backgroundColor } = getComputedStyle(owner)
          const isSplit = element.classList.contains('split')
          return { html: element.outerHTML.slice(0, 120), isSeen: outlineStyle !== 'none' || isSplit, backgroundColor }
        })
        isNew = now !== undefined
        if (now?.isSeen === false) hidden.push(now.html)
      }
      const missed = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, summary, [tabindex="0"]')]
          .filter((one) => one.checkVisibility() && one.tabIndex >= 0 && !one.matches(':disabled, [data-reached]'))
          .map((one) => one.outerHTML.slice(0, 120)),
      )
      expect({ place, hidden, missed }).toEqual({ place, hidden: [], missed: [] })
    }
  })

  test('a user finds a passage, collects it and copies it with the keyboard alone', async () => {
    const page = await tabs.open(explorer.url, { permissions: ['clipboard-read', 'clipboard-write'] })
    await page.locator('#tree .row').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('kettle')
    await page.locator('.hit-link').first().waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press(' ')
    await page.locator('.top-basket-count', { hasText: '1' }).waitFor()
    await page.keyboard.press('Enter')
    await preview(page).locator('.line', { hasText: 'kettle.boil' }).waitFor()
    const focus = async (name: string) => {
      const isFocused = () =>
        page.evaluate((text) => {
          const { activeElement: one } = document
          return one?.getAttribute('title')?.startsWith(text) === true || one?.textContent === text
        }, name)
      for (let presses = 0; presses < 200 && !(await isFocused()); presses++) await page.keyboard.press('Tab')
    }
    await focus('Basket, 1 picked')
    await page.keyboard.press('Enter')
    await page.getByText('tokens left').waitFor()
    await focus('Copy')
    await page.keyboard.press('Enter')
    await page.getByText(/^Copied: \d+ tokens$/).waitFor()
    expect(await clipboard(page)).toContain('kettle.boil')
  })

  test('axe finds no problem of accessibility in any view, light or dark', async () => {
    const places = ['', 'view=list', 'view=search&q=refund', 'view=search&q=Gyokuro', 'view=templates', uri('guide/')]
    const files = ['README.md', 'src/brew.ts', 'sales.csv', 'app.log', 'missing.md'].map(uri)
    const others = [
      ...['view=search&q=zzqqxx', 'filter=zzqqxx', 'uri=sqlite://app/overview', `${uri('app.log')}%3Ftail%3D500`],
      `${uri('guide/refunds.md')}&beside=${encodeURIComponent('file:///shop/guide/payments.md')}`,
    ]
    const picks = `picks=${encodeURIComponent('auto file:///shop/guide/refunds.md\nauto file:///shop/guide/payments.md')}`
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await tabs.open(explorer.url, { colorScheme })
      for (const place of [...places, ...files, ...others, picks]) {
        await page.goto('about:blank')
        await page.goto(`${explorer.url}#${place}`)
        await page.locator('#tree .row, #list .row, .hit-link, .template, .find-count, .browse-note').first().waitFor()
        await page.locator('.home, .preview-content, .folder-row, .preview-failure').first().waitFor()
        expect(await axe(page), `${colorScheme} ${place}`).toEqual([])
      }
    }
  }, 240_000)
})
