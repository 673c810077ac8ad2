import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { countPixels } from '../support/pixels.ts'
import { requires } from '../support/require.ts'

const fence = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`

const drawings = `# Drawn

A cup of $r = \\frac{1}{2}$ cm costs $5 and a pot $10, with $HOME/$PATH.

$$
V = \\int_0^h \\pi r(x)^2 \\, dx = \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}
$$

${fence('math', 'e^{i\\pi} + 1 = 0')}
${fence('mermaid', 'flowchart TD\n  A[Order tea] --> B{In stock?}\n  B -->|yes| C(決済は商品を渡すときに確定)\n  B -->|no| A')}
${fence('mermaid', 'sequenceDiagram\n  Customer->>Till: Pays\n  Till-->>Customer: Receipt')}
${fence('mermaid', 'pie title Teas\n  "Green" : 3')}
$\\undefined{x$ and $x^{$ stay.
`

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('formulas and diagrams in a text', () => {
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
  const drawn = (page: Page) => page.locator('.drawn img:visible')

  test('formulas are MathML, diagrams are images, and the rest stays as it is written', async () => {
    const page = await show('drawn.md')
    await expect.poll(() => page.locator('.formula math').count()).toBe(3)
    await expect.poll(() => drawn(page).count()).toBe(2)
    await expect
      .poll(() =>
        drawn(page)
          .first()
          .evaluate((image) => (image as { naturalWidth?: number }).naturalWidth ?? 0),
      )
      .toBeGreaterThan(100)
    expect(await page.locator('.formula math mfrac').first().isVisible()).toBe(true)
    expect(await page.locator('.markdown').innerText()).toContain('costs $5 and a pot $10, with $HOME/$PATH.')
    await page.getByText('Diagrams of the kind “pie” are not drawn here.').waitFor()
    await page.locator('code.formula-failed').nth(1).waitFor()
    // Its source is one press away.
    await page.locator('.drawn summary').first().click()
    expect(await page.locator('.drawn pre').first().innerText()).toContain('A[Order tea] --> B{In stock?}')
    expect(await axe(page)).toEqual([])
  })

  test('in the dark a diagram has the colours of the dark', async () => {
    const darkPixels = async (options: object) => {
      const page = await show('drawn.md', options)
      await drawn(page).nth(1).waitFor()
      await expect.poll(() => page.locator('.formula math').count()).toBe(3)
      expect(await axe(page)).toEqual([])
      const canvas = await page.evaluateHandle(`(async () => {
        const image = [...document.querySelectorAll('.drawn img')].find(({ offsetWidth }) => offsetWidth > 0)
        await image.decode()
        const canvas = document.createElement('canvas')
        Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight })
        canvas.getContext('2d').drawImage(image, 0, 0)
        return canvas
      })()`)
      const count = await canvas.evaluate(countPixels as (canvas: unknown, kind: string) => number, 'dark')
      return { page, count }
    }
    const { count: byDay } = await darkPixels({ colorScheme: 'light' })
    const { page, count: byNight } = await darkPixels({ colorScheme: 'dark', locale: 'ja-JP' })
    await page.getByText('「pie」の図はここでは描画できません。').waitFor()
    expect(byDay).toBeGreaterThan(50)
    expect(byNight).toBeGreaterThan(byDay * 4)
  })

  test('a notebook has formulas too', async () => {
    const page = await show('math.ipynb')
    await page.locator('.notebook .formula math').waitFor()
  })

  test('nothing of it is loaded for a text without any', async () => {
    const page = await show('plain.md')
    await page.locator('.markdown h1').waitFor()
    expect((await scripts(page)).filter((name) => /^(?:drawn|formula|mermaid|diagram-worker)/.test(name))).toEqual([])
    await page.goto(`${explorer.url}#uri=file:///site/drawn.md`)
    await page.locator('.formula math').first().waitFor()
    expect((await scripts(page)).some((name) => name.startsWith('drawn'))).toBe(true)
  })
})
