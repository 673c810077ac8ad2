import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initialize, type Peer, startPeer } from './rpc.ts'
import { count, fixed, makeFlat, makeTree, median, progress, table } from './support.ts'

// Lists 100,000 files in one folder, and 100,000 files in a tree, page by page, with hikidashi and with a server that registers each file
// with the SDK's registerResource.

interface PageSample {
  readonly cursor: string | undefined
  readonly entries: number
  readonly ms: number
}

async function listAll(peer: Peer): Promise<readonly PageSample[]> {
  const pages: PageSample[] = []
  let cursor: string | undefined
  do {
    const { result, ms } = await peer.call('resources/list', cursor === undefined ? {} : { cursor })
    pages.push({ cursor, entries: (result.resources as unknown[]).length, ms })
    cursor = result.nextCursor as string | undefined
  } while (cursor !== undefined)
  return pages
}

/** Median time per entry of repeated requests for the same page, in microseconds. */
async function costOf(peer: Peer, page: PageSample | undefined): Promise<number> {
  if (page === undefined) return Number.NaN
  const times: number[] = []
  const rounds = page.entries > 20_000 ? 5 : 25
  for (let i = 0; i < rounds; i++)
    times.push((await peer.call('resources/list', page.cursor === undefined ? {} : { cursor: page.cursor })).ms)
  return (median(times) * 1000) / page.entries
}

const megabytes = (bytes: number) => fixed(bytes / 1024 / 1024, 0)
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-'))
const rows: (string | number)[][] = []
try {
  for (const [shape, make] of [
    ['one folder', makeFlat],
    ['a tree', makeTree],
  ] as const) {
    const root = join(folder, shape.replace(' ', '-'))
    progress(`making ${count} files in ${shape} …`)
    make(root)
    for (const name of ['hikidashi', 'sdk']) {
      progress(`${name}, ${shape} …`)
      const started = performance.now()
      const peer = startPeer(join(import.meta.dirname, `servers/${name}.ts`), [root])
      await peer.call('initialize', initialize)
      // Resets the probe, so that loading the program does not count as a pause of listing.
      await peer.probe()
      const firstPage = await peer.call('resources/list')
      const toFirst = performance.now() - started
      const cold = await listAll(peer)
      const coldPause = (await peer.probe()).pause
      const warm = await listAll(peer)
      const afterTwo = await peer.probe()
      for (let i = 0; i < 10; i++) await listAll(peer)
      const afterTwelve = await peer.probe()
      const total = warm.reduce((sum, page) => sum + page.entries, 0)
      if (total !== count) throw new Error(`${name} lists ${total} of ${count} files`)
      const costs = [
        await costOf(peer, warm[0]),
        await costOf(peer, warm[warm.length >> 1]),
        await costOf(peer, warm.filter((page) => page.entries > 100).at(-1)),
      ]
      const sum = (pages: readonly PageSample[]) => pages.reduce((ms, page) => ms + page.ms, 0)
      rows.push([
        shape,
        name,
        fixed(toFirst, 0),
        `${firstPage.result.resources === undefined ? 0 : (firstPage.result.resources as unknown[]).length} in ${fixed(firstPage.ms, 0)}`,
        warm.length,
        fixed(sum(cold), 0),
        fixed(sum(warm), 0),
        ...costs.map((cost) => fixed(cost, 2)),
        fixed(Math.max(...costs) / Math.min(...costs), 2),
        fixed(coldPause, 0),
        fixed(Math.max(afterTwo.pause, afterTwelve.pause), 0),
        megabytes(afterTwo.heapUsed),
        megabytes(afterTwelve.heapUsed),
        megabytes(afterTwelve.rss),
      ])
      await peer.close()
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const head = [
  '100,000 files in',
  'server',
  'start to first page, ms',
  'first page: entries in ms',
  'pages',
  'all, cold, ms',
  'all, warm, ms',
  'first page, µs/entry',
  'middle',
  'last',
  'largest/smallest',
  'longest pause cold, ms',
  'warm, ms',
  'heap after 2 passes, MB',
  'heap after 12, MB',
  'memory (RSS), MB',
]
process.stdout.write(`${table(head, rows)}\n`)
