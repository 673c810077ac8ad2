import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { analysisOf } from '../support/results.ts'

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('an analysis in the explorer', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored

  beforeAll(async () => {
    const one = analysisOf('Is the tea ready?')
    const votes = ['a', 'b'].map((name) => ({
      ...{ provider: `model-${name}`, model: `${name}-1`, content: `Answer ${name}`, confidence: 0.75 },
      ...{ agreement: 1, tokens: 120, cost: 0.25, duration: 1500 },
    }))
    folder.write({
      'site/analysis.json': JSON.stringify({
        ...{ ...one, votes, created: '2026-05-02T09:30:00Z', expires: '2026-05-03T09:30:00Z', tags: ['tea'] },
      }),
      'hikidashi.json': JSON.stringify({ mounts: { 'file:///site': { provider: 'files', root: 'site' } } }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  test('has its question, when it was made, whether it still holds, and its answers side by side', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/analysis.json`, {
      viewport: { width: 1400, height: 900 },
      timezoneId: 'UTC',
    })
    await page.getByText('Is the tea ready?', { exact: true }).waitFor()
    expect(await page.locator('.analysis-facts').innerText()).toMatch(/^Made .*2026.* · expired .*2026.* · #tea$/)
    const [first, second] = await Promise.all(
      ['a', 'b'].map((name) => page.locator('.vote', { hasText: `Answer ${name}` }).boundingBox()),
    )
    expect(first?.y).toBe(second?.y)
    expect(second?.x).toBeGreaterThan((first?.x ?? 0) + (first?.width ?? 0))
    expect(await axe(page)).toEqual([])
  })
})
