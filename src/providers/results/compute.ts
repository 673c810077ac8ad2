import { isResourceError, ResourceError } from '../../core/errors.ts'
import { once } from '../../store/index.ts'
import type { Collection, Store } from '../../store/store.ts'
import type { Analysis, NewAnalysis } from './analysis.ts'
import { findExact, type Question } from './lookup.ts'
import { hashTerm } from './row.ts'
import { sha256 } from './text.ts'
import type { Writer } from './write.ts'

export interface ComputeOptions {
  /** For how long somebody who has died while computing keeps others from it, in milliseconds. Default 10,000. */
  readonly ttlMs?: number
  /** How long is waited for what somebody else computes, in milliseconds. Default 300,000. */
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

interface Parts {
  readonly store: Store
  readonly collection: string
  readonly records: Collection
  readonly writer: Pick<Writer, 'put' | 'prepare'>
}

/** For how long what was computed is handed on to those who waited, in milliseconds: then it is found like any other. */
const handover = 60_000
const attempts = 4

/** See `Results.getOrCompute`. */
export async function computeOnce(
  { store, collection, records, writer }: Parts,
  question: Required<Question>,
  compute: (signal: AbortSignal) => Promise<Omit<NewAnalysis, 'prompt' | 'taskType'>>,
  options: ComputeOptions = {},
): Promise<Analysis> {
  const handed = `${collection}/computed`
  const key = sha256(`${question.taskType} ${hashTerm(question.prompt)}`)
  const make = async (signal: AbortSignal): Promise<Analysis> => {
    const known = await newest(records, question)
    if (known !== undefined) return known
    const made = { ...(await compute(signal)), prompt: question.prompt, taskType: question.taskType }
    return keep(writer, made)
  }
  for (let attempt = 0; attempt < attempts; attempt++) {
    const known = await newest(records, question)
    if (known !== undefined) return known
    const { value, row, computed } = await once(
      store,
      handed,
      key,
      async (signal) => ({
        value: Buffer.from(JSON.stringify(await make(signal))),
        expires: Date.now() + handover,
      }),
      options,
    )
    const analysis = JSON.parse(Buffer.from(value).toString()) as Analysis
    if (computed || row === undefined || (await isKept(records, analysis.id))) return analysis
    // It was removed meanwhile: what is handed on is not there any more either.
    await store.collection(handed).delete(key, { revision: row.revision })
  }
  throw new ResourceError('unavailable', 'A result is removed as fast as it is computed.', { reason: 'busy' })
}

/** Puts what was computed. A store that is gone takes nothing, and what was computed is good all the same. */
async function keep(writer: Parts['writer'], made: NewAnalysis): Promise<Analysis> {
  const prepared = writer.prepare(made)
  try {
    await writer.put(prepared)
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) throw error
  }
  return prepared
}

async function newest(records: Collection, question: Question): Promise<Analysis | undefined> {
  try {
    return (await findExact(records, question, 1))[0]?.analysis()
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return undefined
    throw error
  }
}

async function isKept(records: Collection, id: string): Promise<boolean> {
  try {
    return (await records.get(id)) !== undefined
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return true
    throw error
  }
}
