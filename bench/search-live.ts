/** `npx tsx bench/search-live.ts [documents] [changes]`: measures the time from a change of a file until a search finds the change. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openCatalog } from '../src/config/build.ts'
import { searchesOf } from '../src/config/plan.ts'
import { parseFound } from '../src/core/search-answer.ts'

const documents = Number(process.argv[2] ?? 5000)
const changes = Number(process.argv[3] ?? 100)
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-live-'))
const root = join(folder, 'docs')
const log = () => {}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const quantile = (sorted: readonly number[], share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0

try {
  for (let at = 0; at < documents; at++) {
    if (at % 500 === 0) await mkdir(join(root, String(Math.floor(at / 500))), { recursive: true })
    const text = `# Note ${at}\n\n${`The note number n${at} is about anchors, boats and harbours. `.repeat(10)}\n`
    writeFileSync(join(root, String(Math.floor(at / 500)), `note-${at}.md`), text)
  }
  const catalog = await openCatalog(
    [
      { address: 'docs://all', config: { provider: 'files', root }, folder },
      { address: 'search://all', config: { provider: 'search', over: ['docs://all'] }, folder },
    ],
    { log, store: { sqlite: { file: join(folder, 'store.sqlite') } } },
  )
  try {
    const [search] = searchesOf(catalog)
    const view = catalog.view({ id: 'bench', roles: [] })
    const found = async (word: string) => {
      const [content] = (await view.read(`search://all?q=${word}&limit=1`)).contents
      return content !== undefined && 'text' in content ? (parseFound(content.text)?.hits.length ?? 0) : 0
    }
    const begun = performance.now()
    search?.provider.feed()
    while ((await search?.provider.feedStatus())?.mounts[0]?.state !== 'current') await pause(20)
    const seconds = (performance.now() - begun) / 1000
    console.log(
      `${documents} documents indexed in ${seconds.toFixed(1)} s: ${Math.round(documents / seconds)} a second`,
    )
    const times: number[] = []
    for (let at = 0; at < changes; at++) {
      const word = `changed${at}word`
      writeFileSync(join(root, '0', `note-${at % 500}.md`), `# Changed\n\nabout ${word}\n`)
      const written = performance.now()
      while ((await found(word)) === 0) await pause(5)
      times.push(performance.now() - written)
    }
    times.sort((a, b) => a - b)
    const ms = (share: number) => `${Math.round(quantile(times, share))} ms`
    console.log(`${changes} changes, each found after: p50 ${ms(0.5)}, p95 ${ms(0.95)}, at most ${ms(1)}`)
  } finally {
    await catalog.close()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
