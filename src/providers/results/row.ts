import { createHash } from 'node:crypto'
import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Row } from '../../store/store.ts'
import type { Analysis } from './record.ts'

/** Facts about an analysis for listings. They precede the analysis in its row, so that a listing need not parse the analysis. */
interface Head extends Pick<Analysis, 'taskType' | 'language' | 'totalCost' | 'tags' | 'created' | 'expires'> {
  /** The beginning of the prompt, in one line. */
  readonly title: string
  readonly confidence: number
  readonly met: boolean
  readonly providers: readonly string[]
  /** Length of the analysis as JSON, in bytes. */
  readonly size: number
  /** See {@link hashAnalysis}. */
  readonly digest: string
}

const titleLength = 80
const newline = 0x0a

/** Formats the row of an analysis: a line of JSON with its head, and then the analysis as it is served. */
export function formatRow(analysis: Analysis): Uint8Array {
  const json = `${JSON.stringify(analysis, undefined, 2)}\n`
  const { taskType, language, totalCost, tags, created, expires, consensus, thresholds, votes } = analysis
  const head: Head = {
    title: titleFromPrompt(analysis.prompt),
    taskType,
    language,
    confidence: consensus.confidence,
    met: thresholds.met,
    totalCost,
    providers: votes.map(({ provider }) => provider),
    tags,
    created,
    ...defined({ expires }),
    size: Buffer.byteLength(json),
    digest: hashAnalysis(analysis),
  }
  return Buffer.from(`${JSON.stringify(head)}\n${json}`)
}

/** @throws ResourceError `internal` for a row that something else has written. */
export function parseRow(row: Row) {
  const bytes = Buffer.from(row.value.buffer, row.value.byteOffset, row.value.byteLength)
  const end = bytes.indexOf(newline)
  const json = (): string => bytes.toString('utf8', end + 1)
  try {
    const head = JSON.parse(bytes.toString('utf8', 0, end)) as Head
    return { id: row.key, row, head, json, analysis: (): Analysis => JSON.parse(json()) as Analysis }
  } catch (error) {
    throw new ResourceError('internal', 'a row of the store is not a result', {}, { cause: error })
  }
}

export type ParsedRow = ReturnType<typeof parseRow>

export function termsOf({ prompt, tags }: Pick<Analysis, 'prompt' | 'tags'>): readonly string[] {
  return [hashTerm(prompt), ...tags.map(tagTerm), ...gramTerms(gramsOf(prompt), maxGrams.kept)]
}

export const hashTerm = (prompt: string): string => `hash:${hashPrompt(prompt)}`
export const tagTerm = (tag: string): string => `tag:${tag}`
export const gramTerms = (grams: ReadonlySet<string>, count: number): readonly string[] =>
  sampleGrams(grams, count).map((gram) => `gram:${gram}`)

export function tagsIn(terms: readonly string[]): readonly string[] {
  return terms.flatMap((term) => (term.startsWith('tag:') ? [term.slice('tag:'.length)] : []))
}

/** Returns the hash of the content of an analysis. Id, tags and times do not change it. */
export function hashAnalysis(analysis: Omit<Analysis, 'id'>): string {
  const content = Object.entries(analysis).filter(([key]) => !facts.has(key))
  return sha256(canonical(Object.fromEntries(content)))
}

const facts: ReadonlySet<string> = new Set(['id', 'tags', 'created', 'expires'])

export function idFromDigest(digest: string): string {
  return digest.slice(0, 32)
}

/** Formats JSON with the members of each object sorted by name. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`
}

function titleFromPrompt(prompt: string): string {
  const line = prompt
    .slice(0, 10 * titleLength)
    .replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  const characters = [...line.toWellFormed()]
  return characters.length <= titleLength ? line : `${characters.slice(0, titleLength - 1).join('')}…`
}

/**
 * Normalizes a prompt for comparison: compatibility forms are equal (NFKC: full and half width), letters are in lower case, and
 * each run of white space and control characters is one space, with none at the ends. Punctuation stays.
 */
export function normalizePrompt(prompt: string): string {
  return prompt
    .toWellFormed()
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

/** Returns the hash by which the results of a prompt are found: that of the normalized prompt. */
export function hashPrompt(prompt: string): string {
  return sha256(normalizePrompt(prompt))
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Maximum number of characters of a prompt that are compared. */
const maxCompared = 20_000

/** Returns the pairs of neighbouring characters of a prompt, including its ends. This works without spaces between words. */
export function gramsOf(prompt: string): ReadonlySet<string> {
  const characters = [...` ${normalizePrompt(prompt.slice(0, maxCompared))} `]
  const grams = new Set<string>()
  for (let at = 1; at < characters.length; at++) grams.add(`${characters[at - 1]}${characters[at]}`)
  return grams
}

/** Maximum number of pairs stored and queried per prompt. */
export const maxGrams = { kept: 48, asked: 24 }

/**
 * Returns a sample of the pairs, by which similar prompts are found: those with the smallest hashes. If two sets have much in
 * common, so have their samples (bottom-k, Broder 1997).
 */
function sampleGrams(grams: ReadonlySet<string>, count: number): readonly string[] {
  const hashed = [...grams].map((gram) => [rankOf(gram), gram] as const)
  return hashed
    .sort(([a, x], [b, y]) => a - b || (x < y ? -1 : 1))
    .slice(0, count)
    .map(([, gram]) => gram)
}

/** Hashes a pair with FNV-1a over code units and a final mix. */
function rankOf(gram: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < gram.length; at++) hash = Math.imul(hash ^ gram.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** Returns the similarity of two sets: from 0, nothing in common, to 1, equal (Sørensen and Dice). */
export function similarityOf(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  let shared = 0
  for (const gram of small) if (large.has(gram)) shared++
  return (2 * shared) / (a.size + b.size)
}
