import { fixed, progress } from '../../bench/support.ts'
import type { Engine } from './engines.ts'
import { intervalOf, isHeldBack, mean, ndcg, recall } from './measures.ts'
import type { EvalSet } from './sets.ts'

export interface Outcome {
  readonly engine: string
  /** nDCG@10 of each question. */
  readonly gains: readonly number[]
  /** nDCG@10 over the half of the questions on which no constant was chosen. */
  readonly ndcgHeldBack: number
  readonly recall10: number
  /** The share of the relevant documents among all that the engine was asked for. */
  readonly recall: number
}

/**
 * Runs every question of a set on an engine, and measures the results.
 *
 * @param limit Number of documents that the engine is asked for.
 */
export async function judge(set: EvalSet, engine: Engine, limit: number): Promise<Outcome> {
  if (set.documents.length > 0) await engine.put(set.documents)
  const all: { readonly id: string; readonly ndcg: number; readonly ten: number; readonly all: number }[] = []
  for (const { id, text, relevant, before } of set.questions) {
    if (before !== undefined && before.remove.length > 0) await engine.remove(before.remove)
    if (before !== undefined && before.put.length > 0) await engine.put(before.put)
    const found = await engine.find(text, limit)
    all.push({
      id,
      ndcg: ndcg(found, relevant),
      ten: recall(found, relevant, 10),
      all: recall(found, relevant, limit),
    })
  }
  const held = all.filter(({ id }) => isHeldBack(id))
  return {
    engine: engine.name,
    gains: all.map((one) => one.ndcg),
    ndcgHeldBack: mean(held.map((one) => one.ndcg)),
    recall10: mean(all.map(({ ten }) => ten)),
    recall: mean(all.map((one) => one.all)),
  }
}

/** Measures all engines on a set, one after the other. Each engine starts empty. */
export async function compare(
  set: EvalSet,
  engines: readonly (() => Promise<Engine> | Engine)[],
  limit: number,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  for (const open of engines) {
    const engine = await open()
    progress(`${set.name}: ${engine.name} …`)
    try {
      outcomes.push(await judge(set, engine, limit))
    } finally {
      await engine.close()
    }
  }
  return outcomes
}

/**
 * The row of an engine in a table.
 *
 * @param own The first engine, with which the others are compared, question by question.
 */
export function rowOf({ engine, gains, ndcgHeldBack, recall10, recall }: Outcome, own: Outcome | undefined) {
  const signed = (value: number) => `${value < 0 ? '−' : '+'}${fixed(Math.abs(value), 3)}`
  const beside = gains.map((gain, at) => (own?.gains[at] ?? 0) - gain)
  const [low, high] = intervalOf(beside)
  const lead =
    own === undefined || own.engine === engine ? '' : `${signed(mean(beside))} [${signed(low)}, ${signed(high)}]`
  return [engine, fixed(mean(gains), 4), lead, fixed(ndcgHeldBack, 4), fixed(recall10, 3), fixed(recall, 3)]
}
