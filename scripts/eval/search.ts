import { fixed, progress } from '../../bench/support.ts'
import type { Engine } from './engines.ts'
import { isHeldBack, mean, ndcg, recall } from './measures.ts'
import type { EvalSet } from './sets.ts'

/** Number of documents that an engine is asked for. */
const limit = 100

export interface Outcome {
  readonly engine: string
  readonly ndcg: number
  /** nDCG@10 over the half of the questions on which no constant was chosen. */
  readonly ndcgHeldBack: number
  readonly recall10: number
  readonly recall100: number
}

/** Runs every question of a set on an engine, and measures the results. */
export async function judge(set: EvalSet, engine: Engine): Promise<Outcome> {
  if (set.documents.length > 0) await engine.put(set.documents)
  const all: { readonly id: string; readonly ndcg: number; readonly ten: number; readonly hundred: number }[] = []
  for (const { id, text, relevant, before } of set.questions) {
    if (before !== undefined && before.remove.length > 0) await engine.remove(before.remove)
    if (before !== undefined && before.put.length > 0) await engine.put(before.put)
    const found = await engine.find(text, limit)
    all.push({
      id,
      ndcg: ndcg(found, relevant),
      ten: recall(found, relevant, 10),
      hundred: recall(found, relevant, limit),
    })
  }
  const held = all.filter(({ id }) => isHeldBack(id))
  return {
    engine: engine.name,
    ndcg: mean(all.map((one) => one.ndcg)),
    ndcgHeldBack: mean(held.map((one) => one.ndcg)),
    recall10: mean(all.map(({ ten }) => ten)),
    recall100: mean(all.map(({ hundred }) => hundred)),
  }
}

/** Measures all engines on a set, one after the other. Each engine starts empty. */
export async function compare(
  set: EvalSet,
  engines: readonly (() => Promise<Engine> | Engine)[],
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  for (const open of engines) {
    const engine = await open()
    progress(`${set.name}: ${engine.name} …`)
    try {
      outcomes.push(await judge(set, engine))
    } finally {
      await engine.close()
    }
  }
  return outcomes
}

export const rowOf = ({ engine, ndcg: gain, ndcgHeldBack, recall10, recall100 }: Outcome) => [
  engine,
  fixed(gain, 4),
  fixed(ndcgHeldBack, 4),
  fixed(recall10, 3),
  fixed(recall100, 3),
]
