import { afterAll, beforeAll, describe, test } from 'vitest'
import { type ResultsOptions, results } from '../../src/providers/results/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { describeProvider, type Subject } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { analysisOf, sqliteStore } from '../support/results.ts'

const vote = { model: 'm', content: 'yes', confidence: 1, agreement: 1 }

/** Ids that begin with each other, and sort elsewhere than their folders do; names and tags that no path can hold. */
async function subject(store: Store, dispose: () => Promise<void>): Promise<Subject> {
  const options: ResultsOptions = { store, collection: 'contract' }
  const provider = results(options)
  await provider.put(analysisOf('one', { id: 'a', tags: ['..', 'weekly'] }))
  await provider.put(analysisOf('two', { id: 'a-b', tags: ['a/b', '~', '日本語'] }))
  await provider.put(
    analysisOf('three', {
      id: 'a-b.c',
      votes: ['openai/gpt', '.', '~1', '𠮷'].map((name) => ({ ...vote, provider: name })),
    }),
  )
  await provider.put(analysisOf('four', { id: 'a0' }))
  await provider.put(analysisOf('five', { id: 'B~2', tags: ['weekly'] }))
  const partsOf = (id: string, ...votes: readonly string[]) => [
    `results/${id}`,
    `results/${id}/report`,
    ...votes.map((name) => `results/${id}/votes/${name}`),
  ]
  const paths = [
    ...['by-tag/a~1b', 'by-tag/~0', 'by-tag/~2.', 'by-tag/weekly', 'by-tag/日本語', 'recent'],
    ...['a', 'a-b', 'a0', 'B~2'].flatMap((id) => partsOf(id, 'model-a')),
    ...partsOf('a-b.c', 'openai~1gpt', '~2', '~01', '𠮷'),
  ]
  return {
    provider,
    dispose,
    expectation: {
      entries: Object.fromEntries(paths.map((path) => [path, {}])),
      missing: [
        ...['results', 'results/', 'results/b~2', 'results/none', 'results/../a', 'results/a/', 'results/a/votes'],
        ...['results/a/votes/', 'results/a/votes/model-b', 'results/a/votes/..', 'results/a/report/x', 'by-tag'],
        ...[
          'by-tag/none',
          'by-tag/a',
          'by-tag/a/b',
          'by-tag/~',
          'by-tag/~1',
          'by-tag/Weekly',
          'by-tag/日本語/x',
          'recents',
        ],
        ...['results/__proto__', 'results/a%00', `results/${'a'.repeat(200)}`],
      ],
    },
  }
}

describeProvider(
  { describe, test },
  'the provider results with a store in SQLite',
  async () => {
    const { store, remove } = await sqliteStore()
    return subject(store, remove)
  },
  { through: { sliced } },
)

describe('with PostgreSQL,', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  }, 120_000)
  afterAll(() => postgres?.remove(), 60_000)

  describeProvider(
    { describe, test },
    'the provider results with a store in PostgreSQL',
    async () => {
      const store = await openStore({ postgres: { connectionString: postgres.url } })
      return subject(store, store.close)
    },
    { through: { sliced } },
  )
})
