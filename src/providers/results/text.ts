import { createHash } from 'node:crypto'

/**
 * A prompt as prompts are compared: compatibility forms are one (NFKC: full and half width), letters are lower case, any run of
 * white space and control characters is one space, and none is at the ends. Punctuation counts.
 */
export function normalizePrompt(prompt: string): string {
  return prompt
    .toWellFormed()
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

/** Returns the hash of the normalized prompt. */
export function hashPrompt(prompt: string): string {
  return sha256(normalizePrompt(prompt))
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Maximum number of characters compared of a prompt. Text after them does not affect the similarity. */
const maxCompared = 20_000

/** The pairs of neighbouring characters of a prompt, its ends included: words need no spaces between them for that. */
export function gramsOf(prompt: string): ReadonlySet<string> {
  const characters = [...` ${normalizePrompt(prompt.slice(0, maxCompared))} `]
  const grams = new Set<string>()
  for (let at = 1; at < characters.length; at++) grams.add(`${characters[at - 1]}${characters[at]}`)
  return grams
}

/** Maximum number of pairs stored and queried per prompt. A sample suffices; all pairs would cost too much. */
export const sampled = { kept: 48, asked: 24 }

/**
 * Some of the pairs, by which similar prompts are found: those whose hashes are least, so that of two sets that have much in
 * common, the samples have too (bottom-k, Broder 1997).
 */
export function sampleGrams(grams: ReadonlySet<string>, count: number): readonly string[] {
  const hashed = [...grams].map((gram) => [rankOf(gram), gram] as const)
  return hashed
    .sort(([a, x], [b, y]) => a - b || (x < y ? -1 : 1))
    .slice(0, count)
    .map(([, gram]) => gram)
}

/** FNV-1a over code units: it only has to scatter, and to be the same in every process. */
function rankOf(gram: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < gram.length; at++) hash = Math.imul(hash ^ gram.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** The similarity of two sets: from 0, nothing in common, to 1, equal (Sørensen and Dice). */
export function similarityOf(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  let shared = 0
  for (const gram of small) if (large.has(gram)) shared++
  return (2 * shared) / (a.size + b.size)
}
