import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPageHandler } from '../../src/explorer/index.ts'
import { chromiumReason, hasChromium, useBrowser } from '../support/browser.ts'
import { type Listening, listening } from '../support/listening.ts'
import { requires } from '../support/require.ts'

/** The listing and contents of an endpoint, sent exactly as given. */
interface RawEndpoint {
  readonly resources: readonly Readonly<Record<string, unknown>>[]
  /** The contents at a URI, without the URI. */
  readonly contents: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly server?: Readonly<Record<string, unknown>>
}

/**
 * Serves the built page beside an endpoint of 2026-07-28 that sends the given data without validation, as a hostile server could.
 */
async function serveRaw({ resources, contents, server = { name: 'raw', version: '1' } }: RawEndpoint) {
  const page = await createPageHandler()
  const mount = { uri: 'raw://all/', name: 'all', mimeType: 'inode/directory' }
  const results: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => unknown>> = {
    'server/discover': () => ({
      supportedVersions: ['2026-07-28'],
      capabilities: { resources: {} },
      serverInfo: server,
      _meta: { 'io.modelcontextprotocol/serverInfo': server },
    }),
    'tools/list': () => ({ tools: [] }),
    'resources/list': () => ({ resources, _meta: { 'dev.hikidashi/mounts': [mount] } }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
    'resources/directory/read': () => ({ resources }),
    'resources/read': ({ uri }) => {
      const content = contents[String(uri)]
      return content === undefined ? undefined : { contents: [{ uri, ...content }] }
    },
  }
  const answerTo = async (request: IncomingMessage): Promise<object> => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method, params = {} } = JSON.parse(Buffer.concat(chunks).toString())
    const result = results[method]?.(params)
    if (result !== undefined) return { jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }
    const code = method in results ? -32602 : -32601
    return { jsonrpc: '2.0', id, error: { code, message: 'Not found', data: { uri: params.uri } } }
  }
  const started: Listening = await listening(
    createServer(async (request, response) => {
      const found = await page(request)
      if (found !== undefined) {
        response.writeHead(found.status, found.headers).end('body' in found ? found.body : found.message)
        return
      }
      const answer = await answerTo(request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }),
  )
  return { url: `${started.url}/`, close: started.close }
}

// The rows UI of the attack corpus about what is said of resources: names, titles, descriptions, types, annotations, icons, addresses. The
// endpoint behind the page says all of it as it stands here, which no server of ours would pass on.

const markup = [
  '<img src=x onerror="globalThis.pwned=1">',
  '"><svg/onload=globalThis.pwned=2>',
  "'onmouseover='globalThis.pwned=3",
  '{{7*7}}${7*7}',
  '</title><script>globalThis.pwned=4</script>',
]
const schemes = [
  'javascript:globalThis.pwned=5',
  'data:text/html,<script>top.pwned=6</script>',
  'vbscript:pwned',
  'blob:http://127.0.0.1/x',
]
/** What does not show, or turns the rest around, and how it is told. */
const unseen = {
  'txt.\u202eexe': '202E',
  'a\u2066b\u2069': '2066',
  'zero\u200bwidth': '200B',
  'tags\u{e0041}\u{e0042}': 'E0041',
  'line\u2028end': '2028',
}
const shell = `raw://all/it's $(touch pwned) \`id\` "$HOME" \\ !x`
/** What may not be the name of a file, on one system or another. */
const names = ['..', 'con', 'a"b<c>|d?', '\u202etxt.exe', 'x'.repeat(4000), 'line\r\nSet-Cookie: a=b']

const described = markup.map((text, i) => ({
  uri: `raw://all/markup-${i}`,
  name: text,
  title: text,
  description: text,
  mimeType: 'text/plain',
  annotations: { audience: [text], priority: 0.5 },
  icons: [
    { src: 'javascript:globalThis.pwned=7' },
    { src: 'http://icons.invalid/big.png', mimeType: 'image/png' },
    { src: 'https://icons.invalid/a.svg', mimeType: 'image/svg+xml' },
    { src: 'file:///etc/passwd' },
    { src: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" onload="top.pwned=8"/>' },
  ],
  _meta: { 'dev.hikidashi/link': schemes[i % schemes.length], other: text },
}))
const addressed = schemes.map((uri, i) => ({ uri, name: `scheme-${i}` }))
const hidden = Object.keys(unseen).map((name, i) => ({ uri: `raw://all/hidden-${i}`, name, mimeType: 'text/plain' }))
const junk = [
  { priority: 1e9, audience: 'everybody', lastModified: 'garbage' },
  { priority: 'high', audience: [1, null], lastModified: '9999999-99-99' },
  { priority: -1, audience: {}, lastModified: 1e300 },
].map((annotations, i) => ({
  uri: `raw://all/junk-${i}`,
  name: `junk-${i}`,
  size: [-5, 2 ** 60, '12'][i],
  mimeType: ['text/html\r\nX: y', 'text/plain; x=<b>', '/'][i],
  annotations,
}))
const saved = names.map((name) => ({ uri: `raw://all/${encodeURIComponent(name)}`, name, mimeType: 'text/plain' }))

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const tabs = useBrowser()
  let endpoint: Awaited<ReturnType<typeof serveRaw>>
  beforeAll(async () => {
    const text = { text: '<b>not bold</b>', mimeType: 'text/plain' }
    endpoint = await serveRaw({
      server: { name: markup[0], title: markup[1], version: markup[4] },
      resources: [...described, ...addressed, ...hidden, ...junk, ...saved, { uri: shell, name: 'shell' }],
      contents: Object.fromEntries(
        [...described, ...addressed, ...hidden, ...junk, ...saved, { uri: shell }].map(({ uri }) => [uri, text]),
      ),
    })
  })
  afterAll(() => endpoint.close())

  const at = (place: Readonly<Record<string, string>>) => `${endpoint.url}#${new URLSearchParams(place)}`
  const open = (place: Readonly<Record<string, string>>) => tabs.open(at(place))
  /** Goes to a resource on a page, and shows all that is known of it. */
  const showOn = async (page: Page, uri: string) => {
    await page.goto(at({ view: 'list', sort: '-priority', uri }))
    const details = page.getByRole('button', { name: 'Details' })
    if ((await details.getAttribute('aria-pressed')) !== 'true') await details.click()
    await page.getByRole('main').locator('code').getByText(uri, { exact: true }).first().waitFor()
    await page.getByRole('main').getByText('not bold').waitFor()
  }
  /** What must hold of every page, whatever was shown on it. */
  const unharmed = async (page: Page) => {
    const found = await page.evaluate(() => {
      const { document } = globalThis as unknown as { document: { querySelectorAll(css: string): Iterable<Element> } }
      type Element = { getAttribute(name: string): string | null; getAttributeNames(): string[] }
      const all = [...document.querySelectorAll('*')]
      return {
        pwned: (globalThis as { pwned?: unknown }).pwned,
        handlers: all.flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith('on'))),
        links: [...document.querySelectorAll('a[href], area[href]')].map((link) => link.getAttribute('href') ?? ''),
        sources: [...document.querySelectorAll('body [src]')].map((element) => element.getAttribute('src') ?? ''),
        injected: [...document.querySelectorAll('body script, body svg[onload], base, object, embed')].length,
      }
    })
    expect(found.pwned).toBeUndefined()
    expect({ handlers: found.handlers, injected: found.injected }).toEqual({ handlers: [], injected: 0 })
    for (const link of found.links) expect(link).toMatch(/^(?:#|https?:\/\/)/)
    for (const source of found.sources) expect(source).toMatch(/^(?:blob:|frame\.html$)/)
    expect(page.url().startsWith(endpoint.url)).toBe(true)
    expect(page.context().pages()).toHaveLength(1)
  }

  test('markup in names, titles and descriptions is shown as text, and icons are not fetched (UI01, UI17)', async () => {
    const page = await open({ view: 'tree' })
    await page.getByText('scheme-0').waitFor()
    const inTree = await page.locator('body').textContent()
    for (const text of markup) expect(inTree).toContain(text)
    await unharmed(page)
    for (const [i, { uri }] of described.entries()) {
      await showOn(page, uri)
      // In the list, above the preview, and in the details.
      expect((await page.locator('body').textContent())?.split(markup[i] ?? '').length).toBeGreaterThan(3)
      await unharmed(page)
    }
  })

  test('links with a scheme that browsers execute are not clickable (UI01)', async () => {
    const page = await open({})
    for (const uri of schemes) {
      await showOn(page, uri)
      await unharmed(page)
    }
  })

  test('invisible and direction-changing characters in a name are marked (UI16, UI26)', async () => {
    const page = await open({ view: 'list' })
    await page.getByText('txt.', { exact: false }).first().waitFor()
    const shown = (await page.locator('body').textContent()) ?? ''
    expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u2028]|[\u{e0000}-\u{e007f}]/u)
    for (const code of Object.values(unseen)) expect(shown).toContain(`U+${code}`)
    await showOn(page, hidden[0]?.uri ?? '')
    expect(await page.title()).not.toMatch(/[\u202a-\u202e]/)
    await unharmed(page)
  })

  test('a resource with invalid types, sizes and annotations is shown as text, without "NaN", "Invalid" or "undefined" (UI27, UI28)', async () => {
    const page = await open({})
    for (const { uri } of junk) {
      await showOn(page, uri)
      const shown = await page.getByRole('main').innerText()
      expect(shown).toContain('<b>not bold</b>')
      expect(shown).not.toMatch(/NaN|Infinity|Invalid|undefined|\[object/)
      expect(await page.getByRole('main').locator('b').count()).toBe(0)
      await unharmed(page)
    }
  })

  test('a saved file has the bytes of the resource, and a name of at most 255 bytes that every file system accepts (UI08, UI09)', async () => {
    const page = await open({})
    for (const { uri } of saved) {
      await showOn(page, uri)
      const saving = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Download' }).click()
      const download = await saving
      expect(download.url()).toMatch(/^blob:/)
      const name = download.suggestedFilename()
      expect(name).not.toMatch(/[\p{C}<>:"/\\|?*]|^\.|\.$|^(?:con|nul|aux|prn)(?:\.|$)/iu)
      expect(Buffer.byteLength(name)).toBeGreaterThan(0)
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
      expect(readFileSync(await download.path(), 'utf8')).toBe('<b>not bold</b>')
    }
    await unharmed(page)
  })

  test('the command that is shown for an address with quotes, dollar signs and backticks gives a shell exactly this address (UI24)', async () => {
    const page = await open({})
    await showOn(page, shell)
    const command = await page.locator('code', { hasText: 'hikidashi read' }).first().innerText()
    const printed = execFileSync('sh', ['-c', command.replace(/^.*?hikidashi read/, "printf '%s'")], { cwd: '/' })
    expect(printed.toString()).toBe(shell)
    await unharmed(page)
  })
})
