import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { run } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { analysisOf } from '../support/results.ts'

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
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
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'results://shop': { provider: 'results' },
        },
        store: { sqlite: 'store.sqlite' },
      }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  test('the page of an analysis has its question, its time, its validity, and its answers side by side', async () => {
    const page = await tabs.open(`${explorer.url}#uri=file:///site/analysis.json`, {
      viewport: { width: 1400, height: 900 },
      timezoneId: 'UTC',
    })
    await page.getByText('Is the tea ready?', { exact: true }).waitFor()
    expect(await page.locator('.analysis-facts').innerText()).toMatch(/^Created .*2026.* · expired .*2026.* · #tea$/)
    const [first, second] = await Promise.all(
      ['a', 'b'].map((name) => page.locator('.vote', { hasText: `Answer ${name}` }).boundingBox()),
    )
    expect(first?.y).toBe(second?.y)
    expect(second?.x).toBeGreaterThan((first?.x ?? 0) + (first?.width ?? 0))
    expect(await axe(page)).toEqual([])
  })

  test('the list of analyses has the newest first, with links to each, its report and its tags, and shows a new one without a reload', async () => {
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
    const made = [
      analysisOf('Is the kettle on?', { id: 'kettle', created: minutesAgo(20), tags: ['tea/green'] }),
      analysisOf('Who pours?', {
        id: 'pours',
        created: minutesAgo(10),
        thresholds: { met: false, confidence: 0.95 },
      }),
    ]
    folder.write({ 'made.json': JSON.stringify(made) })
    const config = join(folder.root, 'hikidashi.json')
    expect(
      await run(['results', 'put', join(folder.root, 'made.json'), '--config', config], { cwd: folder.outside }),
    ).toMatchObject({ code: 0 })
    const page = await tabs.open(`${explorer.url}#uri=results://shop/`, { timezoneId: 'UTC' })
    await page.getByRole('option', { name: /^recent/ }).click()
    const rows = page.locator('.sheet tbody tr')
    await rows.nth(1).waitFor()
    expect(await rows.getByRole('rowheader').allInnerTexts()).toEqual(['Who pours?', 'Is the kettle on? #tea/green'])
    await rows.nth(0).getByText('90%').waitFor()
    expect(await axe(page)).toEqual([])
    // One that is new comes by itself.
    folder.write({ 'more.json': JSON.stringify(analysisOf('Is it sweet?', { id: 'sweet' })) })
    await run(['results', 'put', join(folder.root, 'more.json'), '--config', config], { cwd: folder.outside })
    await rows.nth(2).waitFor()
    await rows.nth(2).getByRole('link', { name: '#tea/green' }).click()
    await expect.poll(() => rows.count()).toBe(1)
    await rows.getByRole('link', { name: 'Report: Is the kettle on?' }).click()
    await page.locator('.markdown').getByText('It is so: Is the kettle on?').waitFor()
    await page.goBack()
    await rows.getByRole('link', { name: 'Is the kettle on?', exact: true }).click()
    await page.locator('.vote', { hasText: 'About Is the kettle on?' }).waitFor()
  })
})
