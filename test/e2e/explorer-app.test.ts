import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AppHost, startAppHost } from '../support/app-host.ts'
import { chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

/** How long is waited for something to happen. */
const wait = { timeout: 15_000 }

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

  test('tells the model what is picked, as links and as contents, and when nothing is', async () => {
    const { app, seen } = await host.open()
    const last = async () => (await seen()).contexts.at(-1)?.content
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).click()
    await expect.poll(last, wait).toEqual([
      {
        type: 'text',
        text: expect.stringMatching(/picked these resources.*\n- file:\/\/\/site\/README\.md {2}README\.md$/),
      },
      { type: 'resource_link', uri: 'file:///site/README.md', name: 'README.md', mimeType: 'text/markdown' },
    ])
    await app.getByRole('button', { name: /^Basket/ }).click()
    await app.getByText('The conversation has 1 link.').waitFor()
    await app.getByRole('button', { name: 'the contents' }).click()
    await app.getByText(/The conversation has the contents: \d+ tokens\./).waitFor()
    expect(await last()).toEqual([{ type: 'text', text: expect.stringContaining('Tomatoes like the sun.') }])
    await app.getByRole('button', { name: 'Remove README.md' }).click()
    await expect.poll(last, wait).toEqual([])
  })
})
