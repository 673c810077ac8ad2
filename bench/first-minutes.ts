/**
 * `npx tsx bench/first-minutes.ts [files…]`, after a build (Linux): measures the first minutes with a folder, while it is indexed for the
 * first time: the duration of the first page of the list, of the first searches and of the indexing, and the memory.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Session, startSession } from './session.ts'
import { fixed, progress, table } from './support.ts'

const sizes = process.argv.slice(2).map(Number)
/** Interval between searches while the folder is indexed. */
const askIntervalMs = 250
const vocabulary = 'anchor harbour tide rope sail wind storm calm deck keel mast chart light star wave'.split(' ')

interface Found {
  readonly hits: readonly { readonly document: string; readonly snippet: { readonly text: string } }[]
  readonly notes: readonly string[]
}

/** Makes a tree of Markdown files of about 1 KiB, a hundred per folder. The last file has a unique name, and contains a unique word. */
function makeFolder(root: string, count: number): void {
  for (let at = 0; at < count; at++) {
    const folder = join(root, `group-${at % 10}`, `folder-${String(Math.floor(at / 100)).padStart(4, '0')}`)
    if (at % 100 < 10) mkdirSync(folder, { recursive: true })
    const words = Array.from({ length: 150 }, (_, i) => vocabulary[(at * 7 + i * i) % vocabulary.length] ?? '')
    const text = `# Note ${at}\n\n${words.join(' ')}\n${at === count - 1 ? 'bioluminescence\n' : ''}`
    writeFileSync(join(folder, at === count - 1 ? 'phosphorescence.md' : `note-${at}.md`), text)
  }
}

const start = (folder: string, state: string) => startSession([folder], { ...process.env, XDG_STATE_HOME: state })

async function timed<T>(run: () => Promise<T>): Promise<readonly [ms: number, value: T]> {
  const begun = performance.now()
  const value = await run()
  return [performance.now() - begun, value]
}

async function search({ ask }: Session, words: string): Promise<Found> {
  const { contents } = await ask('resources/read', { uri: `search://notes?q=${words}` })
  return JSON.parse((contents as readonly { readonly text: string }[])[0]?.text ?? '') as Found
}

async function firstMinutes(count: number): Promise<readonly string[]> {
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-minutes-'))
  try {
    const folder = join(home, 'notes')
    progress(`${count} files: they are written`)
    makeFolder(folder, count)
    const begun = performance.now()
    const session = await start(folder, join(home, 'state'))
    const [page, { resources }] = await timed(() => session.ask('resources/list'))
    if (!Array.isArray(resources) || resources.length < 250) throw new Error('The first page is short.')
    const [first] = await timed(() => search(session, 'anchor'))
    const took: number[] = []
    let named: number | undefined
    progress(`${count} files: they are indexed`)
    for (;;) {
      const [ms, found] = await timed(() => search(session, 'phosphorescence'))
      took.push(ms)
      if (found.hits.length > 0) named ??= performance.now() - begun
      if (found.hits.length > 0 && found.notes.length === 0) break
      await pause(askIntervalMs)
    }
    const whole = performance.now() - begun
    const { hits } = await search(session, 'bioluminescence')
    if (hits.length !== 1) throw new Error('A word that is in one file is not found in it.')
    const [after] = await timed(() => search(session, 'storm%20harbour'))
    const { now, most } = session.memory()
    await session.end()

    const again = await start(folder, join(home, 'state'))
    const [second] = await timed(() => search(again, 'bioluminescence'))
    await again.end()
    return [
      count.toLocaleString('en'),
      fixed(page, 0),
      fixed(first, 0),
      fixed(Math.max(...took), 0),
      fixed((named ?? 0) / 1000),
      fixed(whole / 1000),
      fixed(after, 0),
      `${fixed(most, 0)} / ${fixed(now, 0)}`,
      fixed(second, 0),
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const rows: (readonly string[])[] = []
for (const count of sizes.length === 0 ? [10_000, 100_000] : sizes) rows.push(await firstMinutes(count))
const head = [
  'files',
  'first page, ms',
  'first search, ms',
  'the slowest search while it is indexed, ms',
  'a file is found by its name after, s',
  'all is indexed after, s',
  'a search then, ms',
  'memory at most / then, MiB',
  'first search of the next start, ms',
]
process.stdout.write(`${table(head, rows)}\n`)
