import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AppHost, startAppHost } from '../support/app-host.ts'
import { axeIn, chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

/** How long is waited for something to happen. */
const wait = { timeout: 15_000 }

/** An image of one pixel. */
const dot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const harm = 'globalThis.harmed = true; parent.postMessage({ method: "harm" }, "*")'
const hostile = `# Hostile

<script>${harm}</script>
<img src="x" onerror='${harm}'>
<iframe srcdoc="<script>parent.harmed = true</script>"></iframe>
<svg onload='${harm}'></svg>

[press me](javascript:globalThis.harmed=true) [elsewhere](https://example.com/away)
`
const hostileName = `<img src=x onerror='globalThis.harmed=true'>.md`

/** Whether something has run in any of the documents. */
async function isHarmed(page: Page): Promise<boolean> {
  const found = await Promise.all(page.frames().map((frame) => frame.evaluate(() => 'harmed' in globalThis)))
  expect(found.length).toBeGreaterThanOrEqual(3)
  return found.includes(true)
}

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('the explorer in a host', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let host: AppHost

  beforeAll(async () => {
    folder.write({
      'site/README.md': '# Garden\n\nTomatoes like the sun.\n',
      'site/docs/water.md': '# Water\n\nWater the tomatoes in the morning, and look at [the rest](../README.md).\n',
      'site/dot.png': dot,
      'site/long.txt': Array.from({ length: 18_000 }, (_, at) => `This is line ${at + 1}.\n`).join(''),
      'site/wide.txt': 'ten bytes '.repeat(60_000),
      'site/hostile.md': hostile,
      'site/hostile.html': `<!doctype html><h1>Hostile page</h1><script>${harm}</script>`,
      'site/hostile.svg': `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>${harm}</script></svg>`,
      [`site/${hostileName}`]: '# Named\n',
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'search://all': { provider: 'search', over: '*' },
        },
      }),
    })
    host = await startAppHost(tabs, ['--config', `${folder.root}/hikidashi.json`], folder.outside)
  }, 60_000)
  afterAll(async () => {
    await host.end()
    folder.remove()
  })

  test('shows the tree and a preview, with requests through the host only', async () => {
    const { app, uri, meta, seen } = await host.open()
    expect(uri).toBe('ui://hikidashi/explorer')
    expect(meta).toMatchObject({ ui: { csp: { connectDomains: [], resourceDomains: [] } } })
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('heading', { name: 'Garden' }).waitFor()
    await app.getByRole('treeitem', { name: 'dot.png' }).click()
    const image = app.getByRole('img', { name: /dot\.png/ })
    await expect.poll(() => image.evaluate((one) => (one as HTMLImageElement).naturalWidth), wait).toBe(1)
    const { methods } = await seen()
    expect(new Set(methods)).toEqual(
      new Set([
        ...['ui/notifications/sandbox-proxy-ready', 'ui/initialize', 'ui/notifications/initialized'],
        ...['ui/notifications/size-changed', 'tools/call', 'resources/read'],
      ]),
    )
  })

  test('searches by words, and shows the matching lines', async () => {
    const { app } = await host.open()
    await app.getByRole('treeitem', { name: 'README.md' }).waitFor()
    const hit = app.getByRole('link', { name: 'Water' })
    // The index may still be made: a search is asked again meanwhile.
    await app.getByRole('searchbox').fill('morning')
    await hit.click()
    await app.getByText('Water the tomatoes in the').last().waitFor()
    await app.getByRole('button', { name: 'Tree' }).click()
    await app.getByRole('treeitem', { name: 'README.md' }).waitFor()
  })

  test('sends the picked resources to the model, as links and as contents, and an empty selection too', async () => {
    const { app, seen } = await host.open()
    const last = async () => (await seen()).contexts.at(-1)?.content
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).click()
    await expect.poll(last, wait).toEqual([
      {
        type: 'text',
        text: expect.stringMatching(
          /picked these resources.*\n- file:\/\/\/site\/README\.md {2}README\.md$/,
        ) as unknown,
      },
      { type: 'resource_link', uri: 'file:///site/README.md', name: 'README.md', mimeType: 'text/markdown' },
    ])
    await app.getByRole('button', { name: /^Basket/ }).click()
    await app.getByText('The conversation has 1 link.').waitFor()
    await app.getByRole('button', { name: 'the contents' }).click()
    await app.getByText(/The conversation has the contents: \d+ tokens\./).waitFor()
    expect(await last()).toEqual([{ type: 'text', text: expect.stringContaining('Tomatoes like the sun.') as unknown }])
    await app.getByRole('button', { name: 'Remove README.md' }).click()
    await expect.poll(last, wait).toEqual([])
  })

  test('runs no code of the contents that it shows', async () => {
    const { app, page, seen } = await host.open()
    await app.getByRole('treeitem', { name: 'hostile.md' }).click()
    await app.getByRole('heading', { name: 'Hostile', exact: true }).waitFor()
    await app.getByText('press me').click()
    await app.getByRole('link', { name: 'elsewhere' }).click()
    await expect.poll(async () => (await seen()).links, wait).toEqual(['https://example.com/away'])
    await app.getByRole('treeitem', { name: 'hostile.html' }).click()
    await app.getByText('<h1>Hostile page</h1>').waitFor()
    await app.getByRole('treeitem', { name: 'hostile.svg' }).click()
    await app.getByRole('img', { name: /hostile\.svg/ }).waitFor()
    await app.getByRole('treeitem', { name: /^<img src=x/ }).click()
    await app.getByRole('heading', { name: 'Named' }).waitFor()
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).click()
    await expect.poll(async () => (await seen()).contexts.length, wait).toBeGreaterThan(0)
    expect(await isHarmed(page)).toBe(false)
    expect((await seen()).methods).not.toContain('harm')
  })

  test('reads by tools if the host forwards no reads, and says that the host accepts no contexts', async () => {
    const { app, seen } = await host.open({ capabilities: { serverTools: {} } })
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('heading', { name: 'Garden' }).waitFor()
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).click()
    // A long text comes in parts: the tool gives so many tokens at once.
    await app.getByRole('treeitem', { name: 'long.txt' }).click()
    await app.getByText(/^Lines 1–\d/).waitFor()
    await app.getByRole('button', { name: 'Show more' }).click()
    await app.getByText('Lines 1–18,000').waitFor()
    await app.getByRole('treeitem', { name: 'wide.txt' }).click()
    await app.getByRole('button', { name: 'Show more' }).click()
    await app.getByText('The first 600 kB are shown.').waitFor()
    await app.getByRole('treeitem', { name: 'dot.png' }).click()
    const image = app.getByRole('img', { name: /dot\.png/ })
    await expect.poll(() => image.evaluate((one) => (one as HTMLImageElement).naturalWidth), wait).toBe(1)
    await app.getByRole('button', { name: /^Basket/ }).click()
    await app.getByText('This host accepts no context from pages.').waitFor()
    const { methods, contexts } = await seen()
    expect(methods).not.toContain('resources/read')
    expect(contexts).toEqual([])
    expect(await app.getByRole('button', { name: 'Download' }).count()).toBe(0)
  })

  test('opens the resource that the tool call names, follows links, and adopts the theme, language, height and display mode of the host', async () => {
    const { app, page, seen } = await host.open({
      args: { uri: 'file:///site/docs/water.md' },
      context: {
        ...{ theme: 'dark', locale: 'ja-JP', displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'] },
        containerDimensions: { maxHeight: 420 },
      },
    })
    await app.getByRole('heading', { name: 'Water', exact: true }).waitFor()
    await app.getByRole('button', { name: 'バスケットに追加' }).waitFor()
    const root = app.locator('html')
    expect(await root.getAttribute('data-theme')).toBe('dark')
    expect(await root.getAttribute('lang')).toBe('ja')
    expect((await seen()).sizes.at(-1)?.height).toBe(420)
    await app.getByRole('button', { name: 'ウィンドウ全体に表示' }).click()
    await app.getByRole('button', { name: '会話に戻す' }).waitFor()
    expect((await seen()).modes).toEqual(['fullscreen'])
    const background = () => app.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor)
    const change = (context: object) =>
      page.evaluate((given) => {
        const { bridge } = (globalThis as unknown as { host: { bridge: { setHostContext(context: object): void } } })
          .host
        bridge.setHostContext(given)
      }, context)
    await change({ theme: 'light', locale: 'en-GB' })
    await expect.poll(background, wait).toBe('rgb(255, 255, 255)')
    // One colour alone does not go together with the others of the page.
    await change({ styles: { variables: { '--color-background-primary': '#102030' } } })
    await app.getByRole('button', { name: 'Add to the basket', exact: true }).waitFor()
    expect(await background()).toBe('rgb(255, 255, 255)')
    const names = ['background-primary', 'background-secondary', 'background-tertiary', 'text-primary']
    const own = Object.fromEntries(names.map((name) => [`--color-${name}`, '#102030']))
    const rest = { '--color-text-secondary': '#aaaaaa', '--color-border-primary': '#888888' }
    await change({ styles: { variables: { ...own, ...rest } } })
    await expect.poll(background, wait).toBe('rgb(16, 32, 48)')
    await app.getByRole('link', { name: 'the rest' }).click()
    await app.getByRole('heading', { name: 'Garden' }).waitFor()
  })

  test('shows a new file in the tree, moves the focus to the search with the / key, and passes WCAG checks', async () => {
    const { app, page } = await host.open()
    await app.getByRole('treeitem', { name: 'README.md' }).click()
    await app.getByRole('heading', { name: 'Garden' }).waitFor()
    folder.write({ 'site/new.md': '# New\n' })
    await app.getByRole('treeitem', { name: 'new.md' }).waitFor()
    await app.locator('body').press('/')
    await expect.poll(() => app.locator(':focus').getAttribute('id'), wait).toBe('search')
    await app.getByRole('button', { name: /^Basket/ }).click()
    await app.getByText('The basket is empty.').waitFor()
    const [frame] = page.frames().slice(-1)
    expect(frame === undefined ? ['no frame'] : await axeIn(frame)).toEqual([])
  })
})
