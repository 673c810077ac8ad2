import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { openStore, type Store } from '../src/store/index.ts'
import { createKeeper } from '../src/store/sqlite/worker.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { fixed, progress, table } from './support.ts'

// Measures how many rows per second both engines write and read, one after the other and many at a time, and how long they block the event
// loop. The PostgreSQL server is a separate one with default durability: each write waits for the disk.

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '2000' }, folder: { type: 'string', default: tmpdir() } },
})
const rows = Number(values.rows)
const sizes = [100, 10_000] as const
const widths = [1, 32] as const

interface Measured {
  readonly perSecond: number
  /** Pauses of the event loop, in milliseconds: the 99th percentile, and the longest. */
  readonly p99: number
  readonly longest: number
}

/** Calls `act` for each row, `width` calls at a time. */
async function measure(width: number, act: (i: number) => Promise<unknown> | unknown): Promise<Measured> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  // Give the event loop a turn first, because synchronous work would leave none to measure.
  await new Promise((resolve) => setImmediate(resolve))
  delay.enable()
  const start = performance.now()
  let next = 0
  const work = async () => {
    while (next < rows) {
      await act(next++)
      if (next % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all(Array.from({ length: width }, work))
  const ms = performance.now() - start
  delay.disable()
  return { perSecond: (rows / ms) * 1000, p99: delay.percentile(99) / 1e6, longest: delay.max / 1e6 }
}

const lines: string[][] = []
const note = (engine: string, size: number, width: number, put: Measured, get: Measured) =>
  lines.push([
    engine,
    size < 1000 ? `${size} B` : `${size / 1000} kB`,
    String(width),
    fixed(put.perSecond, 0),
    fixed(get.perSecond, 0),
    `${fixed(Math.max(put.p99, get.p99), 1)} / ${fixed(Math.max(put.longest, get.longest), 1)}`,
  ])

const termsOf = (i: number) => [`tag:${i % 10}`, `hash:${i}`]

async function run(engine: string, store: Store): Promise<void> {
  for (const size of sizes) {
    for (const width of widths) {
      progress(`${engine}, ${size} bytes, ${width} at once`)
      const collection = store.collection(`bench/${size}/${width}`)
      const value = Buffer.alloc(size, 'x')
      const put = await measure(width, (i) => collection.put({ key: `key-${i}`, value, terms: termsOf(i) }))
      const get = await measure(width, (i) => collection.get(`key-${i}`))
      note(engine, size, width, put, get)
    }
  }
  await store.close()
}

/** Runs the same calls of SQLite in this thread, to show how much they would block the event loop. */
async function runWithoutThread(file: string): Promise<void> {
  const keeper = createKeeper({ file }, progress)
  for (const size of sizes) {
    progress(`SQLite without a thread, ${size} bytes`)
    const row = { value: Buffer.alloc(size, 'x') }
    const put = await measure(1, (i) =>
      keeper.perform((to) => to.put(`bench/${size}`, { ...row, key: `key-${i}`, terms: termsOf(i) })),
    )
    const get = await measure(1, (i) => keeper.perform((from) => from.get(`bench/${size}`, `key-${i}`)))
    note('SQLite without a thread', size, 1, put, get)
  }
  keeper.close()
}

const folder = mkdtempSync(join(values.folder, 'hikidashi-bench-'))
const server = await startPostgres({ flags: ['-c', 'fsync=on', '-c', 'shared_buffers=128MB'] })
try {
  await run('SQLite', await openStore({ sqlite: { file: join(folder, 'a', 'store.sqlite') } }))
  await runWithoutThread(join(folder, 'b', 'store.sqlite'))
  await run('PostgreSQL', await openStore({ postgres: { connectionString: server.url } }))
} finally {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
}
const heads = ['engine', 'a row', 'at once', 'put/s', 'get/s', 'event loop stood still, p99 / longest, ms']
console.log(table(heads, lines))
