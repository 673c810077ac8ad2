import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { fixed, progress, table } from './support.ts'

// Measures the built explorer with 100,000 files in Chromium: the duration of frames while the list scrolls and after jumps to random
// positions, and the time from a key in the filter to the second frame after it.

const folders = 100
const files = 1000
const root = mkdtempSync(join(tmpdir(), 'hikidashi-explorer-'))
progress('writing 100,000 files …')
for (let d = 0; d < folders; d++) {
  mkdirSync(join(root, `d${d}`))
  for (let i = 0; i < files; i++) writeFileSync(join(root, `d${d}`, `file-${i}.md`), `# ${d} ${i}\n`)
}
const server = spawn(process.execPath, [join(import.meta.dirname, '../dist/cli/main.js'), 'serve', root, '--http', '0'])
const url = await new Promise<string>((resolve, reject) => {
  let said = ''
  server.once('exit', () => reject(new Error(`the server ended: ${said}`)))
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
    const [, found] = /Explore it in a browser: (\S+)/.exec(said) ?? []
    if (found !== undefined) resolve(found)
  })
})
const executablePath = process.env.HIKIDASHI_CHROMIUM ?? '/usr/bin/chromium'
const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${url}#view=list`)
  progress('listing …')
  await page.getByText('100,000').first().waitFor({ timeout: 60_000 })
  progress('scrolling and filtering …')
  // The code is a string, because it runs in the browser.
  const times: Record<string, number[]> = await page.evaluate(`(async () => {
    const frame = () => new Promise(requestAnimationFrame)
    const timed = async (act, frames) => { const begun = performance.now(); act(); for (let i = 0; i < frames; i++) await frame(); return performance.now() - begun }
    const tall = [...document.querySelectorAll('*')].sort((a, b) => b.scrollHeight - b.clientHeight - a.scrollHeight + a.clientHeight)
    const box = tall[0], filter = document.querySelector('input[type=search]:not(#search), input:not(#search)')
    const scroll = [], jump = [], type = []
    for (let i = 0; i < 300; i++) scroll.push(await timed(() => { box.scrollTop += 480 }, 1))
    for (let i = 0; i < 60; i++) jump.push(await timed(() => { box.scrollTop = Math.random() * box.scrollHeight }, 2))
    for (const text of ['f', 'fi', 'fil', 'file', 'file-7', 'file-77', 'file-777', 'zzz', ''])
      type.push(await timed(() => { filter.value = text; filter.dispatchEvent(new InputEvent('input', { bubbles: true })) }, 2))
    return { scroll, jump, type }
  })()`)
  const at = (values: readonly number[], share: number) =>
    fixed([...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN)
  const row = (what: string, values: readonly number[] = []) => [what, at(values, 0.5), at(values, 0.95), at(values, 1)]
  const rows = [
    row('a frame while it is scrolled by 20 rows', times.scroll),
    row('a jump to anywhere, two frames', times.jump),
    row('a key in the filter, two frames', times.type),
  ]
  process.stdout.write(`${table(['100,000 rows', 'p50, ms', 'p95, ms', 'longest, ms'], rows)}\n`)
} finally {
  await browser.close()
  server.kill('SIGTERM')
  rmSync(root, { recursive: true, force: true })
}
