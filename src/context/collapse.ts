import { setImmediate as turn } from 'node:timers/promises'
import { createLruCache } from '../core/kit/lru.ts'
import { fnv1aHash } from '../text/words.ts'

interface Shingles {
  readonly sha256: string
  /** Hashes, each once, in ascending order. */
  readonly all: Uint32Array
}

/**
 * `words`: number of words of a shingle. `alike`: share of common shingles above which two texts count as copies. `least`: number of
 * shingles below which a text is not compared. `signature`: number of smallest hashes by which similar texts are found.
 */
const size = { words: 5, alike: 0.9, least: 20, signature: 16 }

/** Number of UTF-16 units examined before the task yields to the event loop, at the end of a line. */
const slice = 65_536

/** Shingles by the digest of their text. Sizes in bytes, with the overhead of an entry. */
const recent = createLruCache<Shingles>(12 * 2 ** 20, ({ all }) => all.byteLength + 400)

/** Returns the hashes of the sequences of five words in a text. */
export async function shinglesOf(text: string, sha256: string): Promise<Shingles> {
  const cachedShingles = recent.get(sha256)
  if (cachedShingles !== undefined) return cachedShingles
  const shingles = await makeShingles(text, sha256)
  recent.set(sha256, shingles)
  return shingles
}

/** A word, or a Han character or kana: Chinese and Japanese have no spaces. */
const words = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]{1,64}/gu

async function makeShingles(text: string, sha256: string): Promise<Shingles> {
  const hashes: number[] = []
  for (let from = 0; from < text.length; ) {
    const to = text.indexOf('\n', from + slice)
    const end = to < 0 ? text.length : to
    for (const word of text.slice(from, end).match(words) ?? []) hashes.push(fnv1aHash(word))
    from = end
    if (from < text.length) await turn()
  }
  const all = new Uint32Array(Math.max(0, hashes.length - size.words + 1))
  for (let from = 0; from < all.length; from++) {
    let hash = 0x811c9dc5
    for (let at = from; at < from + size.words; at++) hash = Math.imul(hash ^ (hashes[at] ?? 0), 0x01000193)
    all[from] = hash
  }
  return { sha256, all: eachOnce(all.sort()) }
}

function eachOnce(values: Uint32Array): Uint32Array {
  let count = 0
  for (let index = 0; index < values.length; index++) {
    const each = values[index] ?? 0
    if (index === 0 || each !== values[count - 1]) values[count++] = each
  }
  return values.slice(0, count)
}

export function createCopyFinder() {
  const byHash = new Map<string, string>()
  const documents: { readonly uri: string; readonly shingles: Shingles }[] = []
  const bySmallest = new Map<number, Set<number>>()

  const remember = (uri: string, shingles: Shingles): void => {
    if (!byHash.has(shingles.sha256)) byHash.set(shingles.sha256, uri)
    for (const hash of smallestOf(shingles))
      bySmallest.set(hash, (bySmallest.get(hash) ?? new Set()).add(documents.length))
    documents.push({ uri, shingles })
  }

  return {
    remember,
    /** Returns the URI of the first stored text of which this text is a copy or a near copy. `undefined`: there is none, and this text is stored. */
    add: (uri: string, shingles: Shingles): string | undefined => {
      const same = byHash.get(shingles.sha256)
      if (same !== undefined) return same
      if (shingles.all.length >= size.least) {
        // Nearly equal texts have nearly the same smallest hashes.
        const near = new Set([...smallestOf(shingles)].flatMap((hash) => [...(bySmallest.get(hash) ?? [])]))
        for (const index of [...near].sort((a, b) => a - b)) {
          const other = documents[index]
          if (other !== undefined && likeness(other.shingles.all, shingles.all) > size.alike) return other.uri
        }
      }
      remember(uri, shingles)
      return undefined
    },
  }
}

export type CopyFinder = ReturnType<typeof createCopyFinder>

function smallestOf({ all }: Shingles): Uint32Array {
  return all.subarray(0, size.signature)
}

function likeness(a: Uint32Array, b: Uint32Array): number {
  if (Math.min(a.length, b.length) / Math.max(a.length, b.length) <= size.alike) return 0
  let shared = 0
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [one, other] = [a[i] ?? 0, b[j] ?? 0]
    if (one === other) shared++
    if (one <= other) i++
    if (other <= one) j++
  }
  return shared / (a.length + b.length - shared)
}
