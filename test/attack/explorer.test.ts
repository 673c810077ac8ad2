import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { listening } from '../support/listening.ts'
import { requires } from '../support/require.ts'

// The rows UI of the attack corpus about the page itself and the contents that it previews, in a real Chromium, against a real server. Whatever
// runs calls alert() and asks pwned.invalid: a dialog and a request elsewhere fail each test.

const act = "alert(1);new Image().src='http://pwned.invalid/x';top.pwned=1;parent.postMessage('pwned','*')"
const remote = 'http://pwned.invalid/x.png'

const contents: Readonly<Record<string, string>> = {
  'page.html': `<!doctype html><title>p</title><base href="http://pwned.invalid/"><meta http-equiv="refresh" content="0;url=${remote}">
<link rel="stylesheet" href="${remote}"><style>@import "${remote}"; p { color: rgb(1, 2, 3); background: url(${remote}) }</style>
<script>${act}</script><img src="${remote}" onerror="${act}"><svg onload="${act}"></svg><object data="${remote}"></object><embed src="${remote}">
<iframe src="${remote}"></iframe><iframe srcdoc="<script>${act}</script>"></iframe><video src="${remote}" poster="${remote}" autoplay></video>
<form action="http://pwned.invalid/f" target="_top"><button>send</button></form><a href="http://pwned.invalid/a" target="_top">top</a>
<a href="http://pwned.invalid/a">here</a><a href="javascript:${act}">run</a><p>styled</p>
<a href=" HTTP://pwned.invalid/b" ping="http://pwned.invalid/ping">spaced</a><a href="#below">within</a>
<svg width="90" height="20"><a xlink:href="http://pwned.invalid/c"><text y="15">drawn</text></a></svg>
<svg width="90" height="20"><a href="#b"><set attributeName="href" to="http://pwned.invalid/d" /><text y="15">moved</text></a></svg>
<math href="http://pwned.invalid/e"><mi href="http://pwned.invalid/f">formula</mi></math>
<div style="height: 3000px"></div><p id="below">below</p>`,
  'picture.svg': `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90" height="90" onload="${act}">
<style>@import "${remote}"; rect { fill: url(${remote}) }</style><script>${act}</script>
<foreignObject width="90" height="90"><body xmlns="http://www.w3.org/1999/xhtml"><img src="${remote}" onerror="${act}"/></body></foreignObject>
<use xlink:href="http://pwned.invalid/x.svg#a"/><image href="${remote}"/><a href="javascript:${act}"><rect width="90" height="90"/></a></svg>`,
  'text.md': `# Heading

<a id="page">x</a><form name="body" id="getElementById"><input name="attributes"></form><img name="cookie" src="${remote}" onerror="${act}">
<script>${act}</script><style>body { display: none }</style><svg><script>${act}</script></svg><math><mtext><img src=x onerror="${act}"></mtext></math>
<details open ontoggle="${act}"><summary>s</summary></details><input autofocus onfocus="${act}"><div style="position:fixed;inset:0">cover</div>

![remote](${remote}) [run](javascript:alert(1)) [data](data:text/html,<script>alert(1)</script>) <javascript:alert(1)>

<noscript><p title="</noscript><img src=x onerror=${act}>"></noscript> last`,
  'data.json': `{"__proto__": {"pwned": 1}, "constructor": {"prototype": {"pwned": 1}}, "html": "<\\/script><script>${act}</script>", "last": 1}`,
  'table.csv': `name,value\n"<img src=x onerror=${act}>",1\n=HYPERLINK("${remote}"),2\n"</script><script>${act}</script>",last\n`,
  'code.js': `// </script><script>${act}</script><img src=x onerror="${act}"> last\n`,
  'plain.txt': `<!doctype html><script>${act}</script><img src=x onerror="${act}"> last\n`,
  'feed.xml': `<?xml version="1.0"?><?xml-stylesheet href="${remote}"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><html xmlns="http://www.w3.org/1999/xhtml"><script>${act}</script>&x; last</html>`,
  'diagram.mmd': `graph TD\nA["<img src=x onerror=${act}>"] --> B\nclick A "javascript:alert(1)"\n%% last\n`,
  'drawn.md': `# Drawn

$\\href{javascript:${act}}{x}$ $\\includegraphics{${remote}}$ $\\text{<img src=x onerror="${act}">}$ $\\class{top}{x}$ $\\style{position:fixed}{x}$
$\\def\\a{\\a\\a}\\a$ $${'{'.repeat(2000)}x${'}'.repeat(2000)}$ $\\rule{90000em}{90000em}$ <code class="language-math-inline">\\url{${remote}}</code>

\`\`\`mermaid
%%{init: {"securityLevel": "loose", "themeCSS": "@import url(${remote})"}}%%
flowchart TD
A["<img src=x onerror=${act}>"] --> B["</text><script>${act}</script><image href='${remote}'/>"]
click A "javascript:${act}"
click B href "${remote}" _top
style A fill:url(${remote}),stroke:"/><script>alert(1)</script>
classDef evil fill:red,stroke:url(${remote})
class B evil
\`\`\`

last`,
  'both.gif': `GIF89a/*${act}*/=1;${act}//last`,
}

interface Box {
  getBoundingClientRect(): { readonly top: number }
}

/** What Chromium says when it has held something back in a preview. The page itself never tries. */
const heldBack = [
  /Blocked script execution in 'about:srcdoc(?:#\w+)?'/,
  /violates the following Content Security Policy directive:? ['"](?:default-src 'none'|img-src data:|media-src data:|style-src 'unsafe-inline')['"]/,
  /Refused to execute the redirect specified via '<meta http-equiv='refresh'/,
  /Blocked form submission to/,
  /Unsafe attempt to initiate navigation/,
  /Framing 'http:\/\/pwned.invalid\/' violates/,
  /'base' element|base-uri/,
]

/** Chromium tells of what DOMPurify takes away, as soon as that has parsed it: in a document that is shown nowhere. */
const takenAway = [
  /(?:Executing inline event handler|Applying inline style) violates [\s\S]*\/assets\/(?:markdown|purify)/,
]

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('in the explorer,', () => {
  const folder = createFolder()
  // One of them looks at what becomes of an opener.
  const tabs = useBrowser(true)
  let explorer: Explored
  beforeAll(async () => {
    folder.write(contents)
    explorer = await serveExplorer([folder.root, '--name', 'hostile'], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  const at = (name: string, more: Readonly<Record<string, string>> = {}) =>
    `${explorer.url}#${new URLSearchParams({ uri: `file:///hostile/${name}`, ...more })}`

  const unharmed = async (page: Page) => {
    const found = await page.evaluate(() => {
      const { document, pwned, getComputedStyle } = globalThis as unknown as {
        pwned: unknown
        getComputedStyle(element: unknown): { display: string }
        document: {
          body: unknown
          cookie: unknown
          getElementById: unknown
          querySelectorAll(css: string): { length: number }
        }
      }
      return {
        pwned: pwned ?? ({} as { pwned?: unknown }).pwned,
        display: getComputedStyle(document.body).display,
        clobbered: typeof document.getElementById !== 'function' || typeof document.cookie !== 'string',
        injected: document.querySelectorAll(
          'body script, body style, base, object, embed, form[name], [onerror], [onload]',
        ).length,
      }
    })
    expect(found).toEqual({
      pwned: undefined,
      display: expect.not.stringMatching('none'),
      clobbered: false,
      injected: 0,
    })
    expect(page.url().startsWith(explorer.url)).toBe(true)
    expect(page.context().pages()).toHaveLength(1)
  }

  test('the checks of these tests notice code that runs in a page without protection', async () => {
    const harmed = await listening(
      createServer((_, response) => {
        response.setHeader('content-type', 'text/html')
        response.setHeader('content-security-policy', "img-src 'none'")
        response.end(
          `<body><script>${act};fetch('http://pwned.invalid/y');console.error('told');throw new Error('thrown')</script>`,
        )
      }),
    )
    const page = await tabs.open(harmed.url)
    await expect(unharmed(page)).rejects.toThrow()
    const found: string[] = []
    await expect
      .poll(() => found.push(...tabs.complaints()) && found, { timeout: 15_000 })
      .toEqual(
        expect.arrayContaining([
          'asked elsewhere: pwned.invalid/y',
          'asked elsewhere: http://pwned.invalid/y',
          'connected elsewhere',
        ]),
      )
    await page.goto('about:blank')
    found.push(...tabs.complaints())
    for (const kind of [
      /asked the reader: 1/,
      /asked elsewhere: http:\/\/pwned\.invalid\/y/,
      /Content Security Policy/,
      /^told/m,
      /thrown: Error: thrown/,
    ])
      expect(found.join('\n')).toMatch(kind)
    await harmed.close()
  })

  test('HTML is shown in a frame that runs no script, loads nothing and cannot navigate (UI04, UI14)', async () => {
    const page = await tabs.open(at('page.html'), { allowed: heldBack })
    const inner = page.frameLocator('iframe').frameLocator('iframe')
    await inner.getByText('styled').waitFor()
    expect(
      await inner
        .getByText('styled')
        .evaluate(
          (p) =>
            (globalThis as unknown as { getComputedStyle(e: unknown): { color: string } }).getComputedStyle(p).color,
        ),
    ).toBe('rgb(1, 2, 3)')
    for (const name of ['top', 'run']) await inner.getByText(name, { exact: true }).click()
    await inner.getByRole('button', { name: 'send' }).click()
    await unharmed(page)
    for (const name of ['here', 'spaced', 'drawn', 'moved', 'formula']) {
      await inner.getByText(name, { exact: true }).click()
      await unharmed(page)
    }
    // It is still there, says where the links would lead, and those within it work.
    expect(await inner.getByText('here', { exact: true }).getAttribute('title')).toBe('http://pwned.invalid/a')
    await inner.getByText('within', { exact: true }).click()
    await expect
      .poll(() => inner.getByText('below').evaluate((p) => (p as unknown as Box).getBoundingClientRect().top), {
        timeout: 15_000,
      })
      .toBeLessThan(800)
    const sandboxed = page.frameLocator('iframe').locator('iframe')
    expect(await sandboxed.getAttribute('sandbox')).toBe('')
    // A script of the page itself cannot look into it either: it has an origin of its own.
    expect(
      await sandboxed.evaluate((frame) => (frame as unknown as { contentDocument: unknown }).contentDocument === null),
    ).toBe(true)
  })

  test('SVG is drawn as an image without its scripts, and a file that only looks like a GIF runs nothing (UI03, UI08)', async () => {
    const page = await tabs.open(at('picture.svg'), { allowed: [...heldBack, /Failed to load resource/] })
    const picture = page.getByRole('main').locator('img')
    await picture.waitFor()
    await picture.evaluate((img) => (img as unknown as { decode(): Promise<void> }).decode().catch(() => {}))
    expect(await picture.getAttribute('src')).toMatch(/^blob:/)
    expect(await page.getByRole('main').locator('svg script, foreignObject').count()).toBe(0)
    await unharmed(page)
    await page.goto(at('both.gif'))
    await page.getByRole('main').getByText('both.gif').first().waitFor()
    await unharmed(page)
  })

  test('Markdown, JSON, CSV, code, text and diagrams are shown, and run nothing (UI02, UI06, UI27)', async () => {
    const page = await tabs.open(explorer.url, { allowed: takenAway })
    for (const name of Object.keys(contents).filter((one) => !/\.(?:html|svg|gif)$/.test(one))) {
      for (const source of ['', '1']) {
        await page.goto(at(name, source === '' ? {} : { source }))
        await page.getByRole('main').getByText('last').first().waitFor()
        await unharmed(page)
      }
    }
    for (const href of await page.locator('a[href]').evaluateAll((links) => links.map((link) => String(link))))
      expect(href).toMatch(/^https?:/)
  })

  test('formulas are drawn without active commands, and diagrams are shown as source (UI03)', async () => {
    const page = await (await tabs.profile()).newPage()
    await page.goto(at('drawn.md'))
    await page.locator('.formula math').first().waitFor()
    await page.locator('pre > code.language-mermaid').waitFor()
    await unharmed(page)
    expect(await page.locator('.markdown script, .markdown svg, .formula [href], pre [href]').count()).toBe(0)
    const formula = await page.locator('.formula').last().boundingBox()
    expect(formula?.height).toBeLessThan(2000)
  })

  test('code in a permalink does not run (UI06)', async () => {
    const page = await tabs.open(
      `${explorer.url}#__proto__=x&constructor=y&view=<img+src=x+onerror=${act}>&q="><script>${act}</script>&in=javascript:alert(1)`,
    )
    await page.getByRole('banner').waitFor()
    await unharmed(page)
  })

  test('messages that are posted to the window of the page are ignored (UI14)', async () => {
    const page = await tabs.open(at('plain.txt'))
    await page.getByRole('main').getByText('last').first().waitFor()
    const before = await page.locator('body').innerText()
    await page.evaluate(() => {
      const window = globalThis as unknown as { postMessage(data: unknown, to: string): void }
      for (const data of ['pwned', { type: 'go', uri: 'javascript:alert(1)' }, { method: 'resources/read' }, null, [1]])
        window.postMessage(data, '*')
    })
    expect(await page.locator('body').innerText()).toBe(before)
    await unharmed(page)
  })

  test('other pages cannot frame the explorer, or keep a reference to its window (UI13)', async () => {
    const embedding = await listening(
      createServer((_, response) => {
        response.setHeader('content-type', 'text/html')
        response.end(`<iframe src="${explorer.url}"></iframe><iframe src="${explorer.url}frame.html"></iframe>`)
      }),
    )
    const page = await tabs.open(embedding.url, { allowed: [/frame-ancestors|X-Frame-Options|Refused to display/] })
    // What is refused may come after the page around it is there.
    const kept = /^chrome-error:/
    const urls = () =>
      page
        .frames()
        .slice(1)
        .map((frame) => frame.url())
    await expect.poll(() => urls().map((url) => kept.test(url))).toEqual([true, true])
    const opening = page.context().waitForEvent('page')
    const opened = page.evaluate((url) => {
      const other = (globalThis as unknown as { open(url: string): { closed: boolean } | null }).open(url)
      return new Promise((resolve) => setInterval(() => other?.closed !== false && resolve('severed'), 20))
    }, explorer.url)
    await (await opening).getByRole('banner').waitFor()
    expect(await opened, 'the opener is told that the window is gone').toBe('severed')
    await embedding.close()
  })
})
