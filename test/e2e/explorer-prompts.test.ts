import { join } from 'node:path'
import type { APIResponse, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { wav } from '../support/preview-files.ts'
import { requires } from '../support/require.ts'

/** An image of one pixel. */
const dot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const review = `---
name: review
title: Review a document
description: Reads one document closely.
arguments:
  - name: path
    description: Which document
    required: true
    complete: "file:///site/{+path}"
  - name: depth
    values: [quick, deep]
---
Review this document <b>{{depth}}</b>:

![[file:///site/{{path}}]]

{{role "assistant"}}
I have read it.
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
      'site/opening.md': '# Opening\n\nA shop opens at nine.\n',
      'prompts/review.md': review,
      'prompts/look.md': '---\nname: look\n---\n![[file:///site/dot.png]]\n\n![[file:///site/beep.wav]]\n',
      'site/dot.png': dot,
      'site/beep.wav': wav(),
      'hikidashi.json': JSON.stringify({
        mounts: {
          'file:///site': { provider: 'files', root: 'site' },
          'zed://prompt-library': { provider: 'prompts', root: 'prompts' },
        },
      }),
    })
    explorer = await serveExplorer(['--config', join(folder.root, 'hikidashi.json')], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  test('an endless list of prompts is truncated, and the page and the palette (Ctrl K) say so', async () => {
    const page = await (await tabs.profile()).newPage()
    let pages = 0
    const answers: Promise<{ readonly response: APIResponse; readonly result: object }>[] = []
    const firstOf = async (route: Route) => {
      const response = await route.fetch()
      return { response, ...((await response.json()) as { readonly result: object }) }
    }
    // Each page of the list names one more. The server is asked for the first alone: fifty times over would take a busy machine too long.
    await page.route('**/mcp', async (route) => {
      const { id, method } = JSON.parse(route.request().postData() ?? '{}')
      if (method !== 'prompts/list') return route.continue()
      if (pages++ === 0) answers.push(firstOf(route))
      const [first] = await Promise.all(answers)
      if (first === undefined) throw new Error('no page was asked for')
      const result = { ...first.result, nextCursor: 'more' }
      return route.fulfill({ response: first.response, json: { jsonrpc: '2.0', id, result } })
    })
    await page.goto(`${explorer.url}#view=templates`)
    const pane = page.getByRole('region', { name: 'Prompts' })
    await pane.getByText('Only the first 150 prompts are shown: this server has more.').waitFor()
    expect(pages).toBeGreaterThanOrEqual(50)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('review')
    await page.getByText('Only the first 150 prompts are searched: this server has more.').waitFor()
  })

  test('a prompt is chosen and filled in with completion; its messages are shown and can be copied, and their document can be added to the basket', async () => {
    const page = await tabs.open(`${explorer.url}#view=templates`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const pane = page.getByRole('region', { name: 'Prompts' })
    await pane.getByRole('link', { name: 'Review a document' }).click()
    const run = pane.getByRole('button', { name: 'Show the messages' })
    expect(await run.isDisabled()).toBe(true)
    await pane.getByText('Fill in: path').waitFor()
    const field = pane.getByRole('combobox', { name: /path/ })
    await field.click()
    await field.pressSequentially('op')
    await pane.getByRole('option', { name: 'opening.md' }).click()
    await pane.getByRole('combobox', { name: /depth/ }).fill('deep')
    expect(await axe(page)).toEqual([])
    await run.click()
    await pane.getByRole('heading', { name: 'Assistant' }).waitFor()
    await pane.getByText('Review this document <b>deep</b>:').waitFor()
    await pane.getByText('A shop opens at nine.').waitFor()
    expect(await axe(page)).toEqual([])
    await pane.getByRole('button', { name: 'Copy all' }).click()
    await pane.getByRole('button', { name: 'Copied' }).waitFor()
    const other = await page.context().newPage()
    await other.setContent('<textarea></textarea>')
    await other.locator('textarea').click()
    await other.keyboard.press('Control+V')
    const copied = await other.locator('textarea').inputValue()
    await other.close()
    expect(copied).toMatch(/Review this document <b>deep<\/b>:[\s\S]*A shop opens at nine\.[\s\S]*I have read it\./)
    await pane.getByRole('button', { name: 'Add 1 resource to the basket' }).click()
    await page.locator('.top-basket-count', { hasText: '1' }).waitFor()
    await pane.getByRole('link', { name: 'file:///site/opening.md' }).click()
    await page.locator('.markdown h1', { hasText: 'Opening' }).waitFor()
  })

  test('templates are collapsed below the prompts', async () => {
    const page = await tabs.open(explorer.url)
    await page.getByRole('link', { name: 'Prompts', exact: true }).click()
    await page.getByRole('link', { name: 'Review a document' }).waitFor()
    const template = page.locator('.template code', { hasText: '{' }).first()
    await template.waitFor({ state: 'attached' })
    expect(await template.isVisible()).toBe(false)
    const fold = page.locator('summary', { hasText: 'Advanced: URI templates' })
    await fold.click()
    await template.waitFor()
    expect((await fold.boundingBox())?.height).toBe(28)
    expect(await axe(page)).toEqual([])
  })

  test('a missing document in a prompt is reported instead of its messages (in Japanese, dark theme)', async () => {
    const values = encodeURIComponent('path=nothing.md')
    const page = await tabs.open(`${explorer.url}#view=templates&prompt=review&values=${values}`, {
      locale: 'ja-JP',
      colorScheme: 'dark',
      allowed: [/status of 4\d\d/],
    })
    await page.getByRole('button', { name: 'メッセージを表示' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.locator('.prompt-message').count()).toBe(0)
    expect(await axe(page)).toEqual([])
  })

  test('images and sounds in the messages of a prompt are shown', async () => {
    const page = await tabs.open(`${explorer.url}#view=templates&prompt=look`)
    await page.getByRole('button', { name: 'Show the messages' }).click()
    const image = page.getByRole('img', { name: 'The image of this message' })
    await image.waitFor()
    await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBeGreaterThan(0)
    const sound = page.locator('.prompt-media audio')
    await expect.poll(() => sound.evaluate((element: HTMLAudioElement) => element.readyState)).toBeGreaterThanOrEqual(1)
    expect(await axe(page)).toEqual([])
  })

  test('Ctrl K finds prompts, and a new prompt is in the list without a reload', async () => {
    const page = await tabs.open(`${explorer.url}#view=templates`)
    const pane = page.getByRole('region', { name: 'Prompts' })
    await pane.getByRole('link', { name: 'Review a document' }).waitFor()
    folder.write({ 'prompts/new.md': '---\nname: fresh\ntitle: A fresh prompt\n---\nFresh.\n' })
    await pane.getByRole('link', { name: 'A fresh prompt' }).waitFor()
    await page.keyboard.press('Control+K')
    await page.getByRole('dialog').getByRole('combobox').fill('fresh prompt')
    await page.getByRole('option', { name: 'A fresh prompt fresh prompt' }).waitFor()
    await page.keyboard.press('Enter')
    await pane.getByRole('heading', { name: 'A fresh prompt' }).waitFor()
    folder.write({ 'prompts/new.md': '---\nname: fresh\ntitle: A changed prompt\n---\nChanged.\n' })
    await pane.getByRole('heading', { name: 'A changed prompt' }).waitFor()
  })

  test('letters that are typed after Ctrl K, while the palette loads, are in its field', async () => {
    const page = await tabs.open(explorer.url)
    await page.getByRole('tree').waitFor()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route(/palette-[^/]*\.js$/, async (route) => {
      await held
      await route.continue()
    })
    await page.keyboard.press('Control+K')
    await page.keyboard.type('review?')
    await page.keyboard.press('Backspace')
    expect(await page.getByRole('dialog').count()).toBe(0)
    release()
    const field = page.getByRole('dialog').getByRole('combobox')
    await field.waitFor()
    await expect.poll(() => field.inputValue()).toBe('review')
    await page.keyboard.type(' a')
    await expect.poll(() => field.inputValue()).toBe('review a')
    await page.getByRole('option', { name: 'Review a document review' }).waitFor()
  })
})
