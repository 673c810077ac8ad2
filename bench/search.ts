import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import MiniSearch from 'minisearch'
import type { Allows, SearchDocument } from '../src/search/index.ts'
import { createDocuments, type Kind } from './search-documents.ts'
import { fixed, progress, table } from './support.ts'

// Measures the speed of indexing and of queries, the size of the index and the memory, beside MiniSearch, whose index is in memory, and
// SQLite's FTS5 with its own BM25. All get the same documents and questions, each in its own process, so that their memory is separate.
// The built hikidashi is measured, because `tsx` names each function at run time, which takes an eighth of the CPU time of a query.

const names = ['hikidashi', 'hikidashi, half is hidden', 'SQLite FTS5, trigram', 'MiniSearch'] as const
type Name = (typeof names)[number]

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '100000' },
    queries: { type: 'string', default: '40' },
    /** Number of warm-up questions of each kind. */
    before: { type: 'string', default: '100' },
    folder: { type: 'string', default: tmpdir() },
    seed: { type: 'string', default: '1' },
    /** Name of a subject: only this one is measured, in this process. */
    subject: { type: 'string' },
  },
})
const count = Number(values.documents)
const made = createDocuments(Number(values.seed))
const shown = 10
/** Maximum heap of each process, in megabytes. The whole index of MiniSearch is in the heap. */
const heap = 4096

interface Subject {
  put(documents: readonly SearchDocument[]): Promise<void> | void
  /** Requests the first ten hits. Returns their number. */
  search(text: string): Promise<number> | number
  /** Size of the index on disk, in bytes; 0 if it is in memory. */
  bytes(): number
  close(): Promise<void> | void
}

interface Measured {
  readonly perSecond: number
  readonly megabytesPerSecond: number
  readonly bytes: number
  readonly memory: number
  readonly times: readonly (readonly [kind: Kind, ms: number])[]
  readonly found: number
  /** CPU time of all threads for each question, in milliseconds. It depends less on other work of the machine than the duration. */
  readonly cpu: readonly number[]
}

const used = () => {
  globalThis.gc?.()
  return process.memoryUsage().rss
}

async function measure(name: Name, subject: Subject, before: number): Promise<Measured> {
  let busy = 0
  let units = 0
  for (let start = 0; start < count; start += 1000) {
    const some = Array.from({ length: Math.min(1000, count - start) }, (_, i) => made.document(start + i))
    units += some.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    const from = performance.now()
    await subject.put(some)
    busy += performance.now() - from
    if (start % 20_000 === 0) progress(`${name}: ${start}, ${fixed(busy / 1000, 1)} s`)
  }
  const memory = used() - before
  const times: [Kind, number][] = []
  let found = 0
  // Warm up with other questions, so that code is compiled and pages are in memory.
  for (const { text } of made.questions(Number(values.before), 1)) await subject.search(text)
  const cpu: number[] = []
  // Ask each question once, so that none is answered from a cache.
  for (const { kind, text } of made.questions(Number(values.queries))) {
    const before = process.cpuUsage()
    const from = performance.now()
    found += (await subject.search(text)) > 0 ? 1 : 0
    times.push([kind, performance.now() - from])
    const { user, system } = process.cpuUsage(before)
    cpu.push((user + system) / 1000)
  }
  return {
    perSecond: (count / busy) * 1000,
    megabytesPerSecond: units / busy / 1000,
    ...{ bytes: subject.bytes(), memory, times, found, cpu },
  }
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** A caller who may see every other document. The warm-up questions already evaluate which ones. */
const half: Allows = Object.assign(({ uri }: { readonly uri: string }) => /[02468]\.\w+$/.test(uri), {
  mounts: new Map([['bench://docs', { reach: 'some', callers: 'half' }]] as const),
})

const built = new URL('../dist/search/index.js', import.meta.url).href

/** Opens hikidashi's index. `allows` decides which documents the caller may see. */
async function ours(folder: string, allows?: Allows): Promise<Subject> {
  const { openSearchIndex, openStore } = (await import(built)) as typeof import('../src/search/index.ts')
  const file = join(folder, 'store.sqlite')
  const store = await openStore({ sqlite: { file } })
  const index = await openSearchIndex({ store, name: 'bench' })
  return {
    put: (documents) => index.put(documents),
    search: async (text) => {
      let found = 0
      for await (const _ of index.search({ text, ...(allows === undefined ? {} : { allows }) }))
        if (++found === shown) break
      return found
    },
    bytes: () => sizeOf(file) + sizeOf(`${file}-wal`),
    close: async () => {
      await index.close()
      await store.close()
    },
  }
}

const subjects: Readonly<Record<Name, (folder: string) => Promise<Subject>>> = {
  hikidashi: (folder) => ours(folder),
  'hikidashi, half is hidden': (folder) => ours(folder, half),
  'SQLite FTS5, trigram': async (folder) => {
    const file = join(folder, 'plain.sqlite')
    const database = new DatabaseSync(file)
    database.exec('pragma journal_mode = wal; pragma synchronous = normal')
    database.exec(`create virtual table docs using fts5 (uri, text, tokenize = 'trigram')`)
    const insert = database.prepare('insert into docs (uri, text) values (?, ?)')
    const select = database.prepare(
      `select uri, snippet(docs, 1, '[', ']', '…', 30) as s from docs where docs match ? order by rank limit ${shown}`,
    )
    return {
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
      bytes: () => sizeOf(file) + sizeOf(`${file}-wal`),
      close: () => database.close(),
    }
  },
  MiniSearch: async () => {
    const mini = new MiniSearch<SearchDocument>({ idField: 'uri', fields: ['title', 'text'], storeFields: ['title'] })
    return {
      put: (documents) => mini.addAll(documents),
      search: (text) => mini.search(text).slice(0, shown).length,
      bytes: () => 0,
      close: () => {},
    }
  },
}

/** Measures one subject in this process. */
async function measureOne(name: Name): Promise<Measured> {
  const folder = mkdtempSync(join(values.folder, 'hikidashi-search-'))
  try {
    const before = used()
    const subject = await subjects[name](folder)
    const measured = await measure(name, subject, before)
    await subject.close()
    return measured
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Measures one subject in a separate process. */
async function measureApart(name: Name): Promise<Measured> {
  const flags = ['--expose-gc', `--max-old-space-size=${heap}`]
  const { documents, queries, before, folder, seed } = values
  const given = Object.entries({ documents, queries, before, folder, seed, subject: name }).map(
    ([key, value]) => `--${key}=${value}`,
  )
  const child = spawn(process.execPath, [...process.execArgv, ...flags, import.meta.filename, ...given], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [out, code] = await Promise.all([textOf(child.stdout), ended])
  if (code !== 0) throw new Error(`${name} ended with ${code}.`)
  return JSON.parse(out) as Measured
}

const quantile = (times: readonly number[], share: number) =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const bothOf = (times: readonly number[]) => `${fixed(quantile(times, 0.5), 1)} / ${fixed(quantile(times, 0.95), 1)}`

const only = names.find((name) => name === values.subject)
if (only !== undefined) process.stdout.write(JSON.stringify(await measureOne(only)))
else {
  const load = loadavg()[0] ?? 0
  const results: (readonly [Name, Measured])[] = []
  for (const name of names) {
    progress(`${name}: ${count} documents`)
    results.push([name, await measureApart(name)])
  }
  const allOf = ({ times }: Measured) => times.map(([, ms]) => ms)
  const ours = results[0] === undefined ? 0 : quantile(allOf(results[0][1]), 0.95)
  const rows = results.map(([name, measured]) => [
    name,
    String(count),
    fixed(measured.perSecond, 0),
    fixed(measured.megabytesPerSecond, 2),
    measured.bytes === 0 ? 'in memory' : fixed(measured.bytes / 1e6, 0),
    fixed(measured.memory / 1e6, 0),
    bothOf(allOf(measured)),
    `${fixed(mean(measured.cpu), 1)} / ${fixed(quantile(measured.cpu, 0.95), 1)}`,
    ours > 0 ? fixed(quantile(allOf(measured), 0.95) / ours, 2) : '',
    `${measured.found}/${measured.times.length}`,
  ])
  const heads = [
    '',
    'documents',
    'documents/s',
    'MB/s',
    'index, MB',
    'memory, MB',
    'query p50 / p95, ms',
    'CPU a query, mean / p95, ms',
    'p95, ratio',
    'found',
  ]
  console.log(table(heads, rows))
  const kinds = [...new Set(results.flatMap(([, { times }]) => times.map(([kind]) => kind)))]
  const byKind = kinds.map((kind) => [
    kind,
    ...results.map(([, { times }]) => bothOf(times.filter(([one]) => one === kind).map(([, ms]) => ms))),
  ])
  console.log(`\n${table(['p50 / p95, ms', ...results.map(([name]) => name)], byKind)}`)
  console.log(`\n${cpus().length} processors; load before ${fixed(load, 1)}, after ${fixed(loadavg()[0] ?? 0, 1)}`)
}
