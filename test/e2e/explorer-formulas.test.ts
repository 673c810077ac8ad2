import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const fence = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`

const drawings = `# Drawn

A cup of $r = \\frac{1}{2}$ cm costs $5 and a pot $10, with $HOME/$PATH.

$$
V = \\int_0^h \\pi r(x)^2 \\, dx = \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}
$$

${fence('math', 'e^{i\\pi} + 1 = 0')}
${fence('mermaid', 'flowchart TD\n  A[Order tea] --> B{In stock?}')}
$\\undefined{x$ and $x^{$ stay.
`

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
      'site/drawn.md': drawings,
      'site/plain.md': '# Plain\n\nA text that costs $5.\n',
      'site/math.ipynb': JSON.stringify({
        ...{ nbformat: 4, metadata: {} },
        cells: [{ cell_type: 'markdown', source: 'The area is $\\pi r^2$.' }],
      }),
      'hikidashi.json': JSON.stringify({ mounts: { 'file:///site': { provider: 'files', root: 'site' } } }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const show = (name: string, options = {}) => tabs.open(`${explorer.url}#uri=file:///site/${name}`, options)
  const scripts = (page: Page) =>
    page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1) ?? ''))

  test.each(['light', 'dark'] as const)(
    'formulas are drawn as MathML in the %s theme; invalid formulas, diagrams and other text are shown as text',
    async (colorScheme) => {
      const page = await show('drawn.md', { colorScheme })
      await expect.poll(() => page.locator('.formula math').count()).toBe(3)
      expect(await page.locator('.formula math mfrac').first().isVisible()).toBe(true)
      expect(await page.locator('.markdown').innerText()).toContain('costs $5 and a pot $10, with $HOME/$PATH.')
      await page.locator('code.formula-failed').nth(1).waitFor()
      expect(await page.locator('pre > code.language-mermaid').innerText()).toContain('A[Order tea] --> B{In stock?}')
      expect(await axe(page)).toEqual([])
    },
  )

  test('formulas in a notebook are drawn as well', async () => {
    const page = await show('math.ipynb')
    await page.locator('.notebook .formula math').waitFor()
  })

  test('a text without formulas does not load their library', async () => {
    const page = await show('plain.md')
    await page.locator('.markdown h1').waitFor()
    expect((await scripts(page)).filter((name) => /^formula/.test(name))).toEqual([])
    await page.goto(`${explorer.url}#uri=file:///site/drawn.md`)
    await page.locator('.formula math').first().waitFor()
    expect((await scripts(page)).some((name) => name.startsWith('formulas'))).toBe(true)
  })
})
