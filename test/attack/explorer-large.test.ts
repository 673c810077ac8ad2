import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { someOf } from '../support/volume.ts'

// A document that would hold the page up while it is laid out: too many cells, elements, levels. The page draws a part, and says so.

const columns = 60_000
const cells = (text: string) => `|${`${text}|`.repeat(columns)}\n`
const tags = (open: string, close: string, count: number) => open.repeat(count) + close.repeat(count)

const documents: Readonly<Record<string, string>> = {
  'columns.md': `# Wide\n\n${cells('a')}${cells('-')}${cells('b')}`,
  'rows.md': `# Long\n\n|a|b|\n|-|-|\n${'|x|y|\n'.repeat(60_000)}`,
  'inline.md': `# Marks\n\n${'*a* `b` '.repeat(60_000)}`,
  'html.md': `# Cells\n\n<table><tr>${'<td>x</td>'.repeat(columns)}</tr></table>\n`,
  'quotes.md': `# Quotes\n\n${'>'.repeat(20_000)} deep\n`,
  'headings.md': '# a\n\n'.repeat(30_000),
  'code.md': `# Code\n\n${'```js\nconst a = [1, 2, 3]\n```\n\n'.repeat(25_000)}`,
  'lists.md': `# Lists\n\n${'- '.repeat(5000)}deep\n`,
  'columns.csv': `${'name,'.repeat(columns)}\n${'1,'.repeat(columns)}\n${'2,'.repeat(columns)}\n`,
  'columns.html': `<table><tr>${'<td>x</td>'.repeat(columns)}</tr></table>`,
  'deep.html': `<p>${tags('<div>', '</div>', 30_000)}`,
  'many.html': '<p>x</p>'.repeat(60_000),
  'many.svg': `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">${'<rect width="1" height="1"/>'.repeat(60_000)}</svg>`,
  'votes.json': JSON.stringify({
    question: 'q',
    consensus: { text: 'x' },
    votes: Array.from({ length: 60_000 }, (_, id) => ({ id, text: 'x' })),
  }),
  'many.json': JSON.stringify(Array.from({ length: 300_000 }, (_, id) => id)),
}

/** The most elements that the page has, with the one document, all of its panes, and the frame of a document in HTML. */
const maxElements = 45_000

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored
  beforeAll(async () => {
    folder.write({ 'a.md': '# Small\n', ...documents })
    explorer = await serveExplorer([folder.root, '--name', 'large'], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  test.each([...someOf('large', Object.keys(documents))])(
    'the large document %s is drawn in part, with a note, and the page still reacts',
    async (name) => {
      const page = await tabs.open(`${explorer.url}#${new URLSearchParams({ uri: `file:///large/${name}` })}`)
      await page.getByText(/This preview is shortened|This drawing has more elements/).waitFor({ timeout: 60_000 })
      expect(await elementsOf(page)).toBeLessThan(maxElements)
      // It is not still at work on it: the next document comes, and what was drawn is gone.
      await page.goto(`${explorer.url}#${new URLSearchParams({ uri: 'file:///large/a.md' })}`)
      await page.locator('.markdown h1', { hasText: 'Small' }).waitFor()
      expect(await elementsOf(page)).toBeLessThan(2000)
      expect(await page.getByText('This preview is shortened').count()).toBe(0)
      await page.close()
    },
    120_000,
  )
})

/** How many elements all frames of a page have together. */
async function elementsOf(page: Page): Promise<number> {
  const counts = await Promise.all(page.frames().map((frame) => frame.locator('*').count()))
  return counts.reduce((sum, count) => sum + count, 0)
}
