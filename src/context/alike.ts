import { setImmediate as turn } from 'node:timers/promises'

/** What is known of a text to compare it with others. */
export interface Shingles {
  readonly sha256: string
  readonly all: ReadonlySet<number>
  /** The smallest of them, in order. */
  readonly smallest: readonly number[]
}

/** How many words a shingle has; how much of two texts is the same where they say the same; how few shingles say nothing. */
const size = { words: 5, alike: 0.9, least: 20, signature: 16 }

/** So many words are looked at before other work has its turn. */
const slice = 8192

/** The hashes of all stretches of five words. Texts without spaces are taken character by character. */
export async function shinglesOf(text: string, sha256: string): Promise<Shingles> {
  const all = new Set<number>()
  const last: number[] = []
  let words = 0
  for (const word of text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]{1,64}/gu) ?? []) {
    last.push(hashOf(word))
    if (++words % slice === 0) await turn()
    if (last.length > size.words) last.shift()
    if (last.length === size.words)
      all.add(last.reduce((hash, each) => Math.imul(hash ^ each, 0x01000193) >>> 0, 0x811c9dc5))
  }
  return { sha256, all, smallest: smallestOf(all, size.signature) }
}

function smallestOf(all: ReadonlySet<number>, count: number): readonly number[] {
  const smallest: number[] = []
  for (const each of all) {
    if (smallest.length === count && each >= (smallest[count - 1] ?? 0)) continue
    const at = smallest.findIndex((other) => other > each)
    smallest.splice(at < 0 ? smallest.length : at, 0, each)
    smallest.length = Math.min(smallest.length, count)
  }
  return smallest
}

function hashOf(word: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < word.length; index++) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193) >>> 0
  return hash
}

/** Remembers texts, and tells which of them a text says the same as. */
export interface Collapse {
  /** The first that it is a copy of, or nearly. `undefined`: none, and it is remembered. */
  add(uri: string, shingles: Shingles): string | undefined
  remember(uri: string, shingles: Shingles): void
}

export function createCollapse(): Collapse {
  const byHash = new Map<string, string>()
  const known: { readonly uri: string; readonly shingles: Shingles }[] = []
  const bySmallest = new Map<number, Set<number>>()

  const remember = (uri: string, shingles: Shingles) => {
    if (!byHash.has(shingles.sha256)) byHash.set(shingles.sha256, uri)
    for (const hash of shingles.smallest) bySmallest.set(hash, (bySmallest.get(hash) ?? new Set()).add(known.length))
    known.push({ uri, shingles })
  }

  return {
    remember,
    add: (uri, shingles) => {
      const same = byHash.get(shingles.sha256)
      if (same !== undefined) return same
      if (shingles.all.size >= size.least) {
        // Two that are nearly the same have nearly the same smallest hashes.
        const near = new Set(shingles.smallest.flatMap((hash) => [...(bySmallest.get(hash) ?? [])]))
        for (const index of [...near].sort((a, b) => a - b)) {
          const other = known[index]
          if (other !== undefined && likeness(other.shingles.all, shingles.all) > size.alike) return other.uri
        }
      }
      remember(uri, shingles)
      return undefined
    },
  }
}

function likeness(a: ReadonlySet<number>, b: ReadonlySet<number>): number {
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  if (small.size / large.size <= size.alike) return 0
  let shared = 0
  for (const each of small) if (large.has(each)) shared++
  return shared / (a.size + b.size - shared)
}
