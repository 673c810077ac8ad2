/**
 * The scenes of the explorer that the documentation shows: a sample folder, and the steps before each picture. `npm run pictures` takes
 * the pictures, and a test runs axe on each scene.
 */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { docx, p } from '../test/fixtures/documents/office.ts'

/** One picture: the window, the address, and the steps before the screenshot. */
export interface Scene {
  /** NAME in the file name `explorer-NAME.png`. */
  readonly name: string
  readonly window: BrowserContextOptions
  /** The fragment of the address, without `#`. */
  readonly place: string
  /** Performs the steps, and waits until everything in the picture is drawn. */
  arrange(page: Page): Promise<void>
}

const root = 'file:///teahouse'
const desk: BrowserContextOptions = { viewport: { width: 1200, height: 720 }, locale: 'en-US', timezoneId: 'UTC' }
const uriPlace = (uri: string, rest = '') => `uri=${encodeURIComponent(uri)}${rest}`

const guide = `# Opening a shop

A shop opens when its **stock**, its *staff* and its **till** are ready.[^1]

| Step | Who | Days |
|---|---|---:|
| Order the tea | Buyer | 14 |
| Train the staff | Manager | 5 |
| Connect the till | Engineer | 1 |

\`\`\`ts
export function isReady(shop: Shop): boolean {
  return shop.stock > 0 && shop.staff.length >= 2
}
\`\`\`

[^1]: The till works offline for one day.
`

const shownTime = new Date('2026-05-02T09:30:00Z')

/** Writes the sample folder and a configuration. Returns the path of the configuration. */
export function writePictureFolder(folder: string): string {
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'README.md': `# Teahouse\n\nThe software of a chain of tea shops: stock, staff and till.\n\n- \`guide/\`: how things are done\n- \`src/\`: the code\n- \`designs/\`: what was decided\n`,
    'guide/opening.md': guide,
    'guide/payments.md':
      '# Payments\n\nA payment is captured when the tea is handed over.\n\n## Refunds\n\nA refund goes to the card that paid. A refund after 30 days needs a manager.\n',
    'guide/stock.md': '# Stock\n\nThe stock is counted each evening. A refund puts unopened tea back into the stock.\n',
    'guide/決済.md': '# 決済\n\n決済は商品を渡すときに確定します。返金は同じカードに戻します。\n',
    'designs/till.docx': docx({
      body: [
        p('The till', '<w:pStyle w:val="1"/>'),
        p('The till keeps a journal of payments and sends it when the network is back.'),
        p('A day without network is the longest that it has to bear.'),
      ].join(''),
    }),
    'src/payment.ts': `/** Takes money for tea. */\nexport async function capture(payment: Payment): Promise<Receipt> {\n  const receipt = await bank.capture(payment.id, payment.amount)\n  return { ...receipt, at: new Date() }\n}\n\n/** Gives money back. */\nexport async function refund(receipt: Receipt): Promise<void> {\n  await bank.refund(receipt.id)\n}\n`,
    'src/stock.ts': 'export const stock = new Map<string, number>()\n',
    'data/sales.csv': 'day,shop,cups\n2026-05-01,Uji,210\n2026-05-02,Uji,198\n2026-05-01,Shizuoka,154\n',
  }
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, 'teahouse', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    // Use the same time in each run, so that the pictures change only when the page does.
    utimesSync(file, shownTime, shownTime)
  }
  const config = join(folder, 'hikidashi.json')
  const mounts = {
    [root]: { provider: 'files', root: 'teahouse' },
    'search://all': { provider: 'search', over: [root] },
  }
  writeFileSync(config, JSON.stringify({ mounts }))
  return config
}

const readme = (page: Page) => page.getByRole('heading', { name: 'Teahouse' }).first().waitFor()
const opening = (page: Page) => page.locator('.markdown h1', { hasText: 'Opening a shop' }).waitFor()

export const scenes: readonly Scene[] = [
  { name: 'first', window: desk, place: '', arrange: readme },
  {
    name: 'search',
    window: desk,
    place: 'view=search&q=refund',
    arrange: async (page) => {
      // Search again while the index is still growing.
      for (;;) {
        const isFound = await page
          .locator('.group')
          .nth(2)
          .waitFor({ timeout: 2000 })
          .then(
            () => true,
            () => false,
          )
        if (isFound) break
        await page.reload()
      }
      await page.locator('.hit-link').first().focus()
      await page.locator('.preview-content').waitFor()
    },
  },
  {
    name: 'folder',
    window: desk,
    place: uriPlace(`${root}/guide/`),
    arrange: (page) => page.locator('.preview').getByText('opening.md').waitFor(),
  },
  {
    name: 'word',
    window: desk,
    place: uriPlace(`${root}/designs/till.docx`),
    arrange: (page) => page.getByText('keeps a journal of payments').waitFor(),
  },
  {
    name: 'basket',
    window: desk,
    place: uriPlace(`${root}/guide/opening.md`),
    arrange: async (page) => {
      await opening(page)
      const folder = page.locator('#tree .row', { has: page.locator('.name', { hasText: /^guide$/ }) })
      await folder.hover()
      await folder.locator('.pick').click()
      await page.getByRole('dialog').getByRole('button', { name: 'Add 4 files' }).click()
      await page.locator('.top-basket-count', { hasText: '4' }).waitFor()
      if (!(await page.locator('.basket').isVisible())) await page.locator('.top-basket-count').click()
      await page.getByText('tokens left').waitFor()
    },
  },
  {
    name: 'phone',
    window: { viewport: { width: 390, height: 780 }, locale: 'en-US', hasTouch: true, isMobile: true },
    place: uriPlace(`${root}/guide/opening.md`),
    arrange: opening,
  },
  {
    name: 'dark',
    window: { ...desk, colorScheme: 'dark', locale: 'ja-JP' },
    place: uriPlace(`${root}/guide/opening.md`),
    arrange: opening,
  },
]
