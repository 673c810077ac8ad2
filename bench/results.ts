import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type NewAnalysis, type Results, results } from '../src/providers/results/index.ts'
import { openStore, type StoreOptions } from '../src/store/index.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { fixed, progress, table } from './support.ts'

// Measures how many results of analyses are written and read per second, with SQLite and with PostgreSQL. Each result has three votes and
// about 8 KB, as is typical.

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '5000' },
    callers: { type: 'string', default: '16' },
  },
})
const [count, callers] = [Number(values.count), Number(values.callers)]

const sentence =
  'An answer may be kept for as long as nothing that it rests on has changed. 答えは、根拠が変わらない限り保持できる。'

function analysisOf(index: number): NewAnalysis {
  const vote = (provider: string) => ({
    ...{ provider, model: `${provider}-1`, content: sentence.repeat(20), confidence: 0.8, agreement: 0.9 },
    ...{ tokens: 1200, cost: 0.012, duration: 5400 },
  })
  return {
    id: `result-${index}`,
    prompt: `Question ${index * 7919}: how long may answer ${index} be kept, and 何が変わると古くなるか? ${Math.sin(index)}`,
    taskType: 'premium',
    rounds: 2,
    votes: ['gpt', 'gemini', 'claude'].map(vote),
    consensus: { content: sentence.repeat(4), confidence: 0.87, reasoning: sentence },
    thresholds: { met: true, confidence: 0.7 },
    tags: [`week-${index % 52}`, 'bench'],
  }
}

const context = { principal: { id: 'bench', roles: [] }, signal: new AbortController().signal }

/** Returns the number of calls per second of concurrent callers, each of which starts its next call when one is done. */
async function rateOf(total: number, act: (index: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const start = performance.now()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (next < total) await act(next++)
    }),
  )
  return (total * 1000) / (performance.now() - start)
}

async function bench(name: string, options: StoreOptions): Promise<readonly (string | number)[]> {
  progress(name)
  const store = await openStore(options)
  const own: Results = results({ store, collection: 'bench' })
  const pick = (index: number) => (index * 7919) % count
  const read = (path: string) => own.read({ path, params: new Map() }, context)
  const few = Math.min(count, 500)
  const rates = [
    await rateOf(count, (index) => own.put(analysisOf(index))),
    await rateOf(count, (index) => own.put(analysisOf(pick(index)))),
    await rateOf(count, (index) => read(`results/result-${pick(index)}`)),
    await rateOf(count, (index) => read(`results/result-${pick(index)}/report`)),
    await rateOf(few, (index) => own.lookup({ prompt: analysisOf(pick(index)).prompt })),
    await rateOf(few, (index) => own.lookup({ prompt: `${analysisOf(pick(index)).prompt} And why?` })),
  ]
  const start = performance.now()
  let entries = 0
  for await (const _ of own.list({}, context)) entries++
  rates.push((entries * 1000) / (performance.now() - start))
  await own.close?.()
  await store.close()
  return [name, ...rates.map((rate) => fixed(rate, 0))]
}

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-'))
const postgres = await startPostgres({ flags: ['-c', 'fsync=on'] })
try {
  const rows = [
    await bench('SQLite', { sqlite: { file: join(folder, 'store.sqlite') } }),
    await bench('PostgreSQL', { postgres: { connectionString: postgres.url } }),
  ]
  const head = ['a second', 'put', 'put again', 'get', 'report', 'lookup, exact', 'lookup, similar', 'entries listed']
  console.log(`${count} results, ${callers} callers at once\n\n${table(head, rows)}`)
} finally {
  await postgres.remove()
  rmSync(folder, { recursive: true, force: true })
}
