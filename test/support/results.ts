import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewAnalysis } from '../../src/providers/results/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'

/** Returns an analysis with one vote; the given members replace its own. */
export function analysisOf(prompt: string, given: Partial<NewAnalysis> = {}): NewAnalysis {
  return {
    prompt,
    taskType: 'basic',
    rounds: 1,
    votes: [
      {
        provider: 'model-a',
        model: 'a-1',
        content: `About ${prompt}`,
        confidence: 0.75,
        agreement: 1,
        tokens: 120,
        cost: 0.25,
        duration: 1500,
      },
    ],
    consensus: { content: `It is so: ${prompt}`, confidence: 0.9, reasoning: 'They agree.' },
    thresholds: { met: true, confidence: 0.7 },
    ...given,
  }
}

/** Opens a store in its own file, which `remove` closes and deletes. */
export async function sqliteStore(): Promise<{
  readonly store: Store
  readonly file: string
  remove(): Promise<void>
}> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-results-'))
  const file = join(folder, 'store.sqlite')
  const store = await openStore({ sqlite: { file } })
  return {
    store,
    file,
    remove: async () => {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
