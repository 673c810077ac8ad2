import { japanese, korean, simplified, traditional } from './characters.ts'

/**
 * How likely a text is in each language, as the logarithm of a probability. Against {@link byChance} it is above 0 for what
 * the language would write, and below it for what it would not.
 */

/** Characters from `first` to `last` that are not among the frequent ones: together they have the share `share`. */
interface Range {
  readonly first: number
  readonly last: number
  readonly share: number
  /** How many of them are in use, where it is not all. */
  readonly used?: number
}

const hiragana = (share: number): Range => ({ first: 0x3041, last: 0x3096, share })
const katakana = (share: number): Range => ({ first: 0x30a1, last: 0x30fa, share })
const ideographs = (share: number): Range => ({ first: 0x4e00, last: 0x9fff, share, used: 6500 })
const syllables = (share: number): Range => ({ first: 0xac00, last: 0xd7a3, share, used: 2350 })
const marks: readonly Range[] = [
  { first: 0xa0, last: 0xff, share: 0.002 },
  { first: 0x370, last: 0x451, share: 0.001 },
  { first: 0x2010, last: 0x206f, share: 0.01 },
  { first: 0x2070, last: 0x27bf, share: 0.01 },
  { first: 0x3000, last: 0x301f, share: 0.03 },
  { first: 0xff01, last: 0xff5e, share: 0.04 },
  { first: 0xff61, last: 0xff9f, share: 0.001 },
]

/** Cost (log probability) of a byte above 0x7F and an ASCII byte by chance. */
const chance = Math.log(1 / 128) + Math.log(1 / 2)
const letterByChance = Math.log(1 / 20)
/** The cost of going from ASCII to the language or back, and of staying in it. */
const [crossing, staying] = [Math.log(0.15), Math.log(0.85)]

function createTable(frequent: string, ranges: readonly Range[]): Float32Array {
  const table = new Float32Array(0x10000).fill(Math.log(1e-9))
  for (const { first, last, share, used = last - first + 1 } of [...marks, ...ranges])
    table.fill(Math.log(share / used), first, last + 1)
  // By Zipf's law, which is off for the very first.
  const weights = Array.from(frequent, (_, rank) => 1 / (rank + 12))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  for (const [rank, weight] of weights.entries()) table[frequent.charCodeAt(rank)] = Math.log((0.8 * weight) / whole)
  return table
}

const makers = {
  ja: () => createTable(japanese, [hiragana(0.04), katakana(0.04), ideographs(0.06)]),
  hans: () => createTable(simplified, [hiragana(1e-4), katakana(1e-4), ideographs(0.1)]),
  hant: () => createTable(traditional, [hiragana(1e-4), katakana(1e-4), ideographs(0.1)]),
  ko: () => createTable(korean, [hiragana(1e-4), katakana(1e-4), ideographs(0.01), syllables(0.04)]),
} as const

export type Model = keyof typeof makers
const tables = new Map<Model, Float32Array>()

/** How likely bytes are where any is as likely as another, by how many are ASCII and how many are not. */
export function byChance(ascii: number, high: number): number {
  return high * chance + ascii * letterByChance
}

/** How likely a text is in a language that is not written in Latin letters. */
export function likelihood(text: string, model: Model): number {
  const table = tables.get(model) ?? makers[model]()
  tables.set(model, table)
  let sum = 0
  let ascii = 0
  let inside = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) {
      ascii++
      if (inside) sum += crossing
      inside = false
    } else {
      sum += (inside ? staying : crossing) + (table[code] ?? 0)
      inside = true
    }
  }
  return sum + ascii * letterByChance
}
