import type { Texts } from '../store/index.ts'
import type { Documents } from './documents.ts'
import { type Found, foundOf } from './part.ts'
import type { Judged, Ranker } from './rank.ts'

/** Number of passages ranked before the task yields to the event loop. */
const inOneTurn = 25
/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). */
const fusion = 60
/**
 * Number of best documents whose other passages are judged too, and number of those passages, because the score of a document
 * depends on all its text. Figures: decision 12.
 */
const completed = { documents: 20, passages: 20 }

/** The terms by which passages are ranked, and the average lengths for BM25. */
export interface Ranking {
  readonly ranker: Ranker
  /** The average length of a passage and of a document, in terms. */
  readonly averageLength: number
  readonly averageDocumentLength: number
}

export interface Scored {
  readonly found: Found
  readonly score: number
}

interface JudgedPassage {
  readonly found: Found
  readonly judged: Judged
}

/** Ranks passages together, best first. */
export async function rankPassages(
  texts: Texts,
  ids: readonly number[],
  ranking: Ranking,
  near: readonly number[],
  whole?: Omit<Documents, 'ids'>,
): Promise<readonly Scored[]> {
  const { ranker, averageDocumentLength } = ranking
  const documents = new Map<string, JudgedPassage[]>()
  for await (const passage of judgedOf(texts, ids, ranking)) {
    const { uri } = passage.found.facts
    const known = documents.get(uri)
    if (known === undefined) documents.set(uri, [passage])
    else known.push(passage)
  }
  const others = whole === undefined && ranker.hasWords ? await othersOf(texts, documents, ranking) : undefined
  const scored = [...documents].flatMap(([uri, passages]): readonly Scored[] => {
    const known = whole?.scores.get(uri)
    // Skip a passage of another document: the ids of a document need not be consecutive.
    if (whole !== undefined && known === undefined) return []
    const all = [...passages, ...(others?.get(uri) ?? [])]
    const more = known ?? ranker.documentScore(all, averageDocumentLength)
    const share = whole?.passageShare ?? 1
    return passages.map(({ found, judged }) => ({ found, score: share * judged.score + more }))
  })
  const ordered = withPaths(scored, whole?.paths).sort(byScore)
  if (near.length === 0) return ordered
  const places = new Map(near.map((id, place) => [id, place]))
  const share = (place: number | undefined) => (place === undefined ? 0 : 1 / (fusion + 1 + place))
  return ordered
    .map(({ found, score }, place) => ({
      found,
      score: share(score > 0 ? place : undefined) + share(places.get(found.id)),
    }))
    .sort(byScore)
}

/** Reads and judges passages. Yields to the event loop now and then. */
async function* judgedOf(texts: Texts, ids: readonly number[], ranking: Ranking): AsyncGenerator<JudgedPassage> {
  const { ranker, averageLength } = ranking
  const turns = Math.ceil(ids.length / inOneTurn)
  // While passages are judged, the store reads the next ones.
  const reads = Array.from({ length: turns }, (_, turn) =>
    texts.read(ids.slice(turn * inOneTurn, (turn + 1) * inOneTurn)),
  )
  // The first failure is thrown without waiting for the others.
  for (const read of reads) read.catch(() => {})
  for (const read of reads) {
    for (const part of await read) {
      const found = foundOf(part)
      yield { found, judged: ranker.judge(found, averageLength) }
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The passages of the best documents that were not found, by the URI of their document. */
async function othersOf(
  texts: Texts,
  documents: ReadonlyMap<string, readonly JudgedPassage[]>,
  ranking: Ranking,
): Promise<ReadonlyMap<string, readonly JudgedPassage[]>> {
  const { ranker, averageDocumentLength } = ranking
  const best = [...documents]
    .map(([uri, passages]) => {
      const most = passages.reduce((score, { judged }) => Math.max(score, judged.score), 0)
      return { uri, passages, score: most + ranker.documentScore(passages, averageDocumentLength) }
    })
    .sort((a, b) => b.score - a.score || (a.uri < b.uri ? -1 : 1))
    .slice(0, completed.documents)
  const firstOf = (passages: readonly JudgedPassage[]) => {
    const [one] = passages
    return one === undefined ? 0 : one.found.id - one.found.place
  }
  // The first passage of a document stores the number of its passages.
  const heads = new Map<number, Found>()
  for (const { passages } of best) for (const { found } of passages) if (found.place === 0) heads.set(found.id, found)
  const missing = best.map(({ passages }) => firstOf(passages)).filter((id) => !heads.has(id))
  if (missing.length > 0) for (const part of await texts.read(missing)) heads.set(part.id, foundOf(part))
  const ids = best.flatMap(({ passages }) => {
    const first = firstOf(passages)
    const count = Math.min(completed.passages, heads.get(first)?.passages ?? 1)
    const known = new Set(passages.map(({ found }) => found.id))
    return Array.from({ length: count }, (_, place) => first + place).filter((id) => !known.has(id))
  })
  const wanted = new Set(best.map(({ uri }) => uri))
  const others = new Map<string, JudgedPassage[]>()
  for await (const passage of judgedOf(texts, ids, ranking)) {
    const { uri } = passage.found.facts
    // Passages of another document may lie in between.
    if (!wanted.has(uri)) continue
    others.set(uri, [...(others.get(uri) ?? []), passage])
  }
  return others
}

/** Adds the score of the path of the document, which is a share of the best score. */
function withPaths(scored: readonly Scored[], paths: ReadonlyMap<string, number> | undefined): Scored[] {
  const most = scored.reduce((best, { score }) => Math.max(best, score), 0)
  return scored.map(({ found, score }) => ({ found, score: score + most * (paths?.get(found.facts.uri) ?? 0) }))
}

/** Equal scores are ordered by URI, then by position. */
function byScore(a: Scored, b: Scored): number {
  if (a.score !== b.score) return b.score - a.score
  if (a.found.facts.uri !== b.found.facts.uri) return a.found.facts.uri < b.found.facts.uri ? -1 : 1
  return a.found.passage.start - b.found.passage.start || a.found.id - b.found.id
}
