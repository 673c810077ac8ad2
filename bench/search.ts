import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import MiniSearch from 'minisearch'
import { openSearchIndex, type SearchDocument } from '../src/search/index.ts'
import { openStore } from '../src/store/index.ts'
import { createDocuments, type Kind } from './search-documents.ts'
import { fixed, progress, table } from './support.ts'

// How fast documents are indexed and found, how large the index is and what memory it takes; beside MiniSearch, which keeps
// its index in memory, and SQLite's FTS5 as it comes, with its own BM25. The same documents and questions for all.

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '100000' },
    minisearch: { type: 'string', default: '20000' },
    queries: { type: 'string', default: '40' },
    folder: { type: 'string', default: tmpdir() },
    seed: { type: 'string', default: '1' },
  },
})
const count = Number(values.documents)
const made = createDocuments(Number(values.seed))
const shown = 10

interface Subject {
  readonly name: string
  readonly documents: number
  put(documents: readonly SearchDocument[]): Promise<void> | void
  /** Asks for the first ten, and answers how many there are. */
  search(text: string): Promise<number> | number
  bytes(): number
}

interface Measured {
  readonly perSecond: number
  readonly megabytesPerSecond: number
  readonly bytes: number
  readonly memory: number
  readonly times: ReadonlyMap<Kind, readonly number[]>
  readonly found: number
  /** Of all threads, for one question on average: it depends less on what else the machine does. */
  readonly cpu: number
}

const used = () => {
  globalThis.gc?.()
  return process.memoryUsage().rss
}

async function measure(subject: Subject): Promise<Measured> {
  progress(`${subject.name}: ${subject.documents} documents`)
  const before = used()
  let busy = 0
  let units = 0
  for (let start = 0; start < subject.documents; start += 1000) {
    const some = Array.from({ length: Math.min(1000, subject.documents - start) }, (_, i) => made.document(start + i))
    units += some.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    const from = performance.now()
    await subject.put(some)
    busy += performance.now() - from
    if (start % 20_000 === 0) progress(`${subject.name}: ${start}, ${fixed(busy / 1000, 1)} s`)
  }
  const memory = used() - before
  const times = new Map<Kind, number[]>()
  let found = 0
  // A server has been asked before: other questions, so that code is compiled and pages are in memory.
  for (const { text } of made.questions(Math.ceil(Number(values.queries) / 2), 1)) await subject.search(text)
  const cpu = process.cpuUsage()
  // Each question is asked once: none is answered from what was remembered of it.
  for (const { kind, text } of made.questions(Number(values.queries))) {
    const from = performance.now()
    found += (await subject.search(text)) > 0 ? 1 : 0
    times.set(kind, [...(times.get(kind) ?? []), performance.now() - from])
  }
  const { user, system } = process.cpuUsage(cpu)
  const asked = [...times.values()].flat().length
  const perSecond = (subject.documents / busy) * 1000
  return {
    perSecond,
    megabytesPerSecond: units / busy / 1000,
    bytes: subject.bytes(),
    memory,
    times,
    found,
    cpu: (user + system) / 1000 / asked,
  }
}

const quantile = (times: readonly number[], share: number) =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0

const folder = mkdtempSync(join(values.folder, 'hikidashi-search-'))
const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
try {
  const load = loadavg()[0] ?? 0
  const results: [Subject, Measured][] = []
  const run = async (subject: Subject) => void results.push([subject, await measure(subject)])

  const file = join(folder, 'store.sqlite')
  const store = await openStore({ sqlite: { file } })
  const index = await openSearchIndex({ store, name: 'bench' })
  await run({
    name: 'hikidashi',
    documents: count,
    put: (documents) => index.put(documents),
    search: async (text) => {
      let found = 0
      for await (const _ of index.search({ text })) if (++found === shown) break
      return found
    },
    bytes: () => sizeOf(file) + sizeOf(`${file}-wal`),
  })
  await index.close()
  await store.close()

  const plain = join(folder, 'plain.sqlite')
  const database = new DatabaseSync(plain)
  database.exec('pragma journal_mode = wal; pragma synchronous = normal')
  database.exec(`create virtual table docs using fts5 (uri, text, tokenize = 'trigram')`)
  const insert = database.prepare('insert into docs (uri, text) values (?, ?)')
  const select = database.prepare(
    `select uri, snippet(docs, 1, '[', ']', '…', 30) as s from docs where docs match ? order by rank limit ${shown}`,
  )
  await run({
    name: 'SQLite FTS5, trigram',
    documents: count,
    put: (documents) => {
      database.exec('begin')
      for (const { uri, text } of documents) insert.run(uri, text)
      database.exec('commit')
    },
    search: (text) => {
      const words = text.split(/\s+/).filter((word) => [...word].length >= 3)
      if (words.length === 0) return 0
      return select.all(words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' OR ')).length
    },
    bytes: () => sizeOf(plain) + sizeOf(`${plain}-wal`),
  })
  database.close()

  const mini = new MiniSearch<SearchDocument>({ idField: 'uri', fields: ['title', 'text'], storeFields: ['title'] })
  await run({
    name: 'MiniSearch',
    documents: Math.min(count, Number(values.minisearch)),
    put: (documents) => mini.addAll(documents),
    search: (text) => mini.search(text).slice(0, shown).length,
    bytes: () => 0,
  })

  const kinds = [...new Set(results.flatMap(([, { times }]) => [...times.keys()]))]
  const [, ours] = results[0] ?? []
  const ratio = (value: number, own: number) => (own > 0 ? fixed(value / own, 2) : '')
  const rows = results.map(([{ name, documents }, measured]) => {
    const all = [...measured.times.values()].flat()
    return [
      name,
      String(documents),
      fixed(measured.perSecond, 0),
      fixed(measured.megabytesPerSecond, 2),
      measured.bytes === 0 ? 'in memory' : fixed(measured.bytes / 1e6, 0),
      fixed(measured.memory / 1e6, 0),
      `${fixed(quantile(all, 0.5), 1)} / ${fixed(quantile(all, 0.95), 1)}`,
      fixed(measured.cpu, 1),
      ratio(quantile(all, 0.95), quantile([...(ours?.times.values() ?? [])].flat(), 0.95)),
      `${measured.found}/${all.length}`,
    ]
  })
  const heads = [
    '',
    'documents',
    'documents/s',
    'MB/s',
    'index, MB',
    'memory, MB',
    'query p50 / p95, ms',
    'CPU a query, ms',
    'p95, ratio',
    'found',
  ]
  console.log(table(heads, rows))
  const byKind = kinds.map((kind) => [
    kind,
    ...results.map(
      ([, { times }]) =>
        `${fixed(quantile(times.get(kind) ?? [], 0.5), 1)} / ${fixed(quantile(times.get(kind) ?? [], 0.95), 1)}`,
    ),
  ])
  console.log(table(['p50 / p95, ms', ...results.map(([{ name }]) => name)], byKind))
  console.log(`${cpus().length} processors; load before ${fixed(load, 1)}, after ${fixed(loadavg()[0] ?? 0, 1)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
