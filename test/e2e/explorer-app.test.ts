import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AppHost, startAppHost } from '../support/app-host.ts'
import { chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('the explorer inside of a host', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let host: AppHost

  beforeAll(async () => {
    folder.write({
      'site/README.md': '# Garden\n\nTomatoes like the sun.\n',
      'site/docs/water.md': '# Water\n\nWater the tomatoes in the morning.\n',
      'hikidashi.json': JSON.stringify({ mounts: { 'file:///site': { provider: 'files', root: 'site' } } }),
    })
    host = await startAppHost(tabs, ['--config', `${folder.root}/hikidashi.json`], folder.outside)
  }, 60_000)
  afterAll(() => host.end())

  test('shows the tree and a preview, asking only through the host', async () => {
    const { app, uri, meta, seen } = await host.open()
    expect(uri).toBe('ui://hikidashi/explorer')
    expect(meta).toMatchObject({ ui: { csp: { connectDomains: [], resourceDomains: [] } } })
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('heading', { name: 'Garden' }).waitFor()
    const { methods } = await seen()
    expect(new Set(methods)).toEqual(
      new Set([
        ...['ui/notifications/sandbox-proxy-ready', 'ui/initialize', 'ui/notifications/initialized'],
        ...['ui/notifications/size-changed', 'tools/call', 'resources/read'],
      ]),
    )
  })
})
