import { setImmediate as turn } from 'node:timers/promises'
import { ResourceError } from '../core/errors.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { ownCopy } from '../core/kit/own-copy.ts'
import { createHeap } from '../core/kit/sorted.ts'
import { createTextInterner, fnvBasis, fnvPrime } from './ascii-table.ts'
import type { TokenRanks } from './ranks.ts'

/** A tokenizer of language models, by its name in tiktoken. */
export type Encoding = 'o200k_base' | 'cl100k_base'

/** The tokenizers in which tokens can be counted. */
export const encodings: readonly Encoding[] = ['o200k_base', 'cl100k_base']

/** Loads node:crypto at its first use, because a server starts with this module. */
function hashText(text: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(text.toWellFormed()).digest('base64')
}

export interface TokenCounter {
  readonly encoding: Encoding
  /**
   * Returns the number of tokens of a text. Text that looks like a special token counts as plain text, and a lone surrogate as U+FFFD.
   *
   * @param most If there are more tokens than this, it may stop, and return any greater number.
   * @throws ResourceError `too-large` for a text of more than {@link maxCounted} UTF-16 units; `unavailable` once aborted.
   */
  count(text: string, signal?: AbortSignal, most?: number): Promise<number>
}

/** Maximum length of a text that is counted at once, in UTF-16 units. */
export const maxCounted = 4_000_000

interface Vocabulary {
  readonly pattern: RegExp
  readonly ranks: TokenRanks
  /** The bytes of a text in UTF-8, as characters from 0 to 255. */
  readonly toBinaryString: (text: string) => string
}

/** Maximum length of cached pieces in UTF-16 units, and their maximum number: of ASCII pieces, and of others. */
const remembered = { units: 32, pieces: 40_000, others: 20_000 }
/** Number of UTF-16 units counted before the task yields to the event loop. */
const slice = 32_768

const counters = new Map<Encoding, Promise<TokenCounter>>()

/** The counter of an encoding, whose tables are loaded at the first use. */
export function openCounter(encoding: Encoding): Promise<TokenCounter> {
  const open =
    counters.get(encoding) ?? loadVocabulary(encoding).then((vocabulary) => createCounter(encoding, vocabulary))
  counters.set(encoding, open)
  return open
}

async function loadVocabulary(encoding: Encoding): Promise<Vocabulary> {
  // A server starts with this module, and counts tokens later.
  const [{ buildTokenRanks }, { toBinaryString }] = await Promise.all([
    import('./ranks.ts'),
    import('../core/kit/utf8.ts'),
  ])
  if (encoding === 'o200k_base') {
    const [{ O200KBase }, { default: tokens }] = await Promise.all([
      import('gpt-tokenizer/encodingParams/o200k_base'),
      import('gpt-tokenizer/bpeRanks/o200k_base'),
    ])
    return { pattern: O200KBase([]).tokenSplitRegex, ranks: await buildTokenRanks(tokens), toBinaryString }
  }
  const [{ Cl100KBase }, { default: tokens }] = await Promise.all([
    import('gpt-tokenizer/encodingParams/cl100k_base'),
    import('gpt-tokenizer/bpeRanks/cl100k_base'),
  ])
  return { pattern: Cl100KBase([]).tokenSplitRegex, ranks: await buildTokenRanks(tokens), toBinaryString }
}

function createCounter(encoding: Encoding, { pattern, ranks, toBinaryString }: Vocabulary): TokenCounter {
  /** The number of tokens of each ASCII piece. */
  const tokensOf = new Uint8Array(remembered.pieces)
  const pieces = createTextInterner(remembered.pieces, remembered.units, (piece, number) => {
    tokensOf[number] = mergeShort(piece, ranks)
  })
  const others = new Map<string, number>()
  const texts = createLruCache<number>(20_000)

  function* otherSteps(piece: string): Generator<void, number> {
    const count = others.get(piece)
    if (count !== undefined) return count
    const bytes = toBinaryString(piece)
    const tokens = bytes.length <= shortBytes ? mergeShort(bytes, ranks) : yield* mergeSteps(bytes, ranks)
    if (others.size >= remembered.others) others.clear()
    if (piece.length <= remembered.units) others.set(ownCopy(piece), tokens)
    return tokens
  }

  function* steps(text: string, most: number): Generator<void, number> {
    // A copy, because a regular expression with the flag `g` or `y` stores its position.
    const regExp = new RegExp(pattern.source, pattern.flags)
    let count = 0
    let position = 0
    if (pieces.isFull()) pieces.clear()
    for (let start = 0; regExp.test(text); start = regExp.lastIndex) {
      const end = regExp.lastIndex
      const hash = asciiHashOf(text, start, end)
      const piece = hash === undefined ? -1 : pieces.numberOf(text, start, end, hash)
      count += piece < 0 ? yield* otherSteps(text.slice(start, end)) : (tokensOf[piece] ?? 0)
      if (count > most) return count
      if (regExp.lastIndex - position < slice) continue
      position = regExp.lastIndex
      yield
    }
    return count
  }

  return {
    encoding,
    count: async (text, signal, most = Number.POSITIVE_INFINITY) => {
      if (text.length > maxCounted)
        throw new ResourceError('too-large', `The text has more than ${maxCounted} characters. Count its parts.`, {
          limit: maxCounted,
        })
      const key = text.length < 256 ? ownCopy(text) : hashText(text)
      const count = texts.get(key)
      if (count !== undefined) return count
      const work = steps(text, most)
      let step = work.next()
      for (; step.done !== true; step = work.next()) {
        await turn()
        if (signal?.aborted === true)
          throw new ResourceError('unavailable', 'The caller has cancelled the count of tokens.')
      }
      if (step.value <= most) texts.set(key, step.value)
      return step.value
    },
  }
}

/** FNV-1a of a part of a text, as a signed number. Undefined if it is not ASCII. */
function asciiHashOf(text: string, start: number, end: number): number | undefined {
  let hash = fnvBasis
  for (let index = start; index < end; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 128) return undefined
    hash = Math.imul(hash ^ unit, fnvPrime)
  }
  return hash
}

/** `shortBytes`: maximum length of a piece, in bytes, for which each merge examines all pairs. These pieces share `endOf` and `rankOf`. */
const shortBytes = 64
const [endOf, rankOf] = [new Uint8Array(shortBytes), new Int32Array(shortBytes)]

/** Counts the tokens of a short piece by the plain algorithm. */
function mergeShort(piece: string, ranks: TokenRanks): number {
  if (ranks.get(piece) !== undefined) return 1
  let count = piece.length
  const look = (start: number) => {
    const middle = endOf[start] ?? 0
    rankOf[start] = middle < piece.length ? (ranks.get(piece, start, endOf[middle]) ?? -1) : -1
  }
  for (let index = 0; index < count; index++) endOf[index] = index + 1
  for (let index = 0; index < count; index++) look(index)
  for (;;) {
    let [best, before, beforeBest] = [-1, -1, -1]
    for (let start = 0; start < piece.length; before = start, start = endOf[start] ?? piece.length) {
      const rank = rankOf[start] ?? -1
      if (rank < 0 || (best >= 0 && rank >= (rankOf[best] ?? 0))) continue
      best = start
      beforeBest = before
    }
    if (best < 0) return count
    endOf[best] = endOf[endOf[best] ?? 0] ?? piece.length
    count--
    look(best)
    if (beforeBest >= 0) look(beforeBest)
  }
}

/** Upper bound of positions in a piece. */
const span = 2 ** 24

/**
 * Counts the tokens into which byte pair encoding splits a long piece, given as its bytes. The pairs wait in a heap, because the plain
 * algorithm takes time in proportion to the square of the length. It yields now and then, so that the caller can continue it later.
 */
export function* mergeSteps(piece: string, ranks: TokenRanks): Generator<void, number> {
  if (ranks.get(piece) !== undefined) return 1
  const size = piece.length
  const next = new Int32Array(size)
  const before = new Int32Array(size)
  const rankAt = new Int32Array(size).fill(-1)
  const heap = createHeap<number>((a, b) => a < b)
  let count = size
  const look = (start: number) => {
    const middle = next[start] ?? size
    const end = middle < size ? (next[middle] ?? size) : size
    const rank = middle < size ? ranks.get(piece, start, end) : undefined
    rankAt[start] = rank ?? -1
    if (rank !== undefined) heap.push(rank * span + start)
  }
  for (let index = 0; index < size; index++) {
    next[index] = index + 1
    before[index] = index - 1
  }
  for (let index = 0; index < size; index++) {
    look(index)
    if (index % 4096 === 4095) yield
  }
  let steps = 0
  for (let least = heap.pop(); least !== undefined; least = heap.pop()) {
    if (++steps % 4096 === 0) yield
    const start = least % span
    // Skip entries of pairs that were merged or changed since.
    if (rankAt[start] !== Math.floor(least / span)) continue
    const end = next[start] ?? size
    const after = next[end] ?? size
    rankAt[end] = -1
    next[start] = after
    if (after < size) before[after] = start
    count--
    look(start)
    const left = before[start] ?? -1
    if (left >= 0) look(left)
  }
  return count
}
