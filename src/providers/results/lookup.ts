import { defined } from '../../core/kit/defined.ts'
import type { Collection } from '../../store/store.ts'
import { recordPath } from './places.ts'
import type { Analysis, TaskType } from './record.ts'
import { type Found, gramsOf, gramTerms, hashTerm, parseRow, sampled, similarityOf } from './row.ts'

/** Query of a look-up: the prompt as a person writes it. Without a task type, analyses of every task type match. */
export interface Question {
  readonly prompt: string
  readonly taskType?: TaskType
}

/** `exact`: of the same prompt, once both are normalized, newest first. `similar`: of others, the closest first. */
export interface Match {
  readonly match: 'exact' | 'similar' | 'none'
  readonly found: readonly { readonly record: Found; readonly similarity: number }[]
}

/** Maximum number of results per kind of match, and of candidates examined. */
const most = { exact: 20, same: 1000, similar: 5, candidates: 16 }

/** Minimum similarity to the prompt. */
const leastSimilarity = 0.5

export async function look(records: Collection, question: Question): Promise<Match> {
  const exact = await findExact(records, question)
  if (exact.length > 0) return { match: 'exact', found: exact.map((record) => ({ record, similarity: 1 })) }
  const similar = await findSimilar(records, question)
  return { match: similar.length > 0 ? 'similar' : 'none', found: similar }
}

/** The results of the same prompt, newest first. */
export async function findExact(
  records: Collection,
  question: Question,
  limit: number = most.exact,
): Promise<readonly Found[]> {
  const term = hashTerm(question.prompt)
  // There are few of them: it costs less to put them in order here.
  const rows = await records.list({ term, limit: most.same, values: false })
  const newest = [...rows].sort((a, b) => b.revision - a.revision).map(({ key }) => key)
  const found: Found[] = []
  for (const key of newest) {
    const row = await records.get(key)
    // It may have become another meanwhile.
    if (row?.terms.includes(term)) found.push(...[parseRow(row)].filter(isOf(question)))
    if (found.length === limit) break
  }
  return found
}

async function findSimilar(records: Collection, question: Question): Promise<Match['found']> {
  const grams = gramsOf(question.prompt)
  const candidates = await records.similar(gramTerms(grams, sampled.asked), most.candidates)
  const rows = await Promise.all(candidates.map(({ key }) => records.get(key)))
  return rows
    .flatMap((row) => (row === undefined ? [] : [parseRow(row)]))
    .filter(isOf(question))
    .map((record) => ({ record, similarity: similarityOf(grams, gramsOf(record.analysis().prompt)) }))
    .filter(({ similarity }) => similarity >= leastSimilarity)
    .sort((a, b) => b.similarity - a.similarity || b.record.row.revision - a.record.row.revision)
    .slice(0, most.similar)
}

function isOf({ taskType }: Question): (found: Found) => boolean {
  return ({ head }) => taskType === undefined || head.taskType === taskType
}

/** Facts about one result in lists of results. */
export interface Summary {
  readonly id: string
  /** Relative to the mount. */
  readonly path: string
  readonly title: string
  readonly taskType: TaskType
  readonly language: string
  readonly confidence: number
  readonly thresholdsMet: boolean
  readonly totalCost: number
  readonly providers: readonly string[]
  readonly tags: readonly string[]
  readonly created: string
  readonly expires?: string
}

export function summaryOf({ id, head }: Found): Summary {
  const { digest: _, size: __, met, ...facts } = head
  return { id, path: recordPath(id), ...facts, thresholdsMet: met }
}

/** The answer to a lookup as it is served: an exact match with the whole analysis. */
export function formatMatch({ prompt, taskType }: Question, { match, found }: Match): string {
  const [first] = match === 'exact' ? found : []
  const analysis: Analysis | undefined = first?.record.analysis()
  return formatJson({
    prompt,
    ...defined({ taskType }),
    match,
    results: found.map(({ record, similarity }) => ({
      similarity: Math.round(similarity * 1000) / 1000,
      ...summaryOf(record),
    })),
    ...defined({ analysis }),
  })
}

export function formatJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
