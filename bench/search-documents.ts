import type { SearchDocument } from '../src/search/index.ts'

/** Category of a question. */
export type Kind =
  | 'one word'
  | 'several words'
  | 'rare word'
  | 'common word'
  | 'Japanese'
  | 'one character'
  | 'identifier'

/** Generated documents and questions. They depend only on the seed. Word frequencies follow Zipf's law, as in real texts. */
export interface Documents {
  document(number: number): SearchDocument
  /** Returns questions of each kind. Another `round` gives other questions. */
  questions(ofEachKind: number, round?: number): readonly { readonly kind: Kind; readonly text: string }[]
}

const consonants = ['b', 'c', 'd', 'f', 'g', 'h', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'st', 'tr', 'pl', 'ch']
const vowels = ['a', 'e', 'i', 'o', 'u', 'ea', 'io']
const kana = [...'あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわん']
const katakana = [...'アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモラリルレロンー']
const particles = [
  'の',
  'に',
  'は',
  'を',
  'が',
  'と',
  'で',
  'から',
  'まで',
  'より',
  'である',
  'した',
  'された',
  'という',
  'ために',
]

export function createDocuments(seed: number): Documents {
  const words = Array.from({ length: 40_000 }, (_, rank) => wordOf(randomOf(seed * 7919 + rank), rank))
  const japanese = Array.from({ length: 30_000 }, (_, rank) => japaneseOf(randomOf(seed * 104_729 + rank)))
  const english = (random: Random) => words[zipf(random, words.length)] ?? ''
  const nihongo = (random: Random) => japanese[zipf(random, japanese.length)] ?? ''
  const many = <Item>(count: number, item: () => Item) => Array.from({ length: count }, item)

  const prose = (random: Random, sentences: number) =>
    many(sentences, () => `${many(8 + int(random, 14), () => english(random)).join(' ')}.`).join(' ')
  const bunsho = (random: Random, sentences: number) =>
    many(
      sentences,
      () => `${many(3 + int(random, 6), () => nihongo(random) + pick(random, particles)).join('')}。`,
    ).join('')
  const code = (random: Random) =>
    many(3 + int(random, 5), () => {
      const name = english(random) + capital(english(random))
      const body = many(
        2 + int(random, 4),
        () => `  const ${english(random)} = ${english(random)}.${english(random)}(${english(random)})`,
      )
      return `/** ${prose(random, 1)} */\nexport function ${name}(${english(random)}: string) {\n${body.join('\n')}\n}\n`
    }).join('\n')

  const document = (number: number): SearchDocument => {
    const random = randomOf(seed * 1_000_003 + number)
    const kind = number % 10
    const name = `${english(random)}-${number}`
    const base = { mount: 'bench://docs', version: '1' }
    if (kind < 5) {
      const text = many(
        1 + int(random, 3),
        () => `## ${capital(english(random))} ${english(random)}\n\n${prose(random, 2 + int(random, 4))}`,
      )
      return {
        ...base,
        uri: `bench://docs/guide/${name}.md`,
        title: `${capital(english(random))} ${english(random)}`,
        mimeType: 'text/markdown',
        text: text.join('\n\n'),
      }
    }
    if (kind < 8)
      return {
        ...base,
        uri: `bench://docs/ja/${name}.txt`,
        title: nihongo(random) + nihongo(random),
        mimeType: 'text/plain',
        text: many(1 + int(random, 3), () => bunsho(random, 2 + int(random, 4))).join('\n\n'),
      }
    return { ...base, uri: `bench://docs/src/${name}.ts`, mimeType: 'text/typescript', text: code(random) }
  }

  const questions: Documents['questions'] = (ofEachKind, round = 0) => {
    const random = randomOf(seed + 17 + 1000 * round)
    const makers: Readonly<Record<Kind, (number: number) => string>> = {
      'one word': () => words[100 + int(random, 3000)] ?? '',
      'several words': () => many(2 + int(random, 4), () => english(random)).join(' '),
      'rare word': () => words[10_000 + int(random, 25_000)] ?? '',
      'common word': (number) => words[number % 40] ?? '',
      Japanese: () => many(2 + int(random, 4), () => nihongo(random) + pick(random, particles)).join(''),
      'one character': () => pick(random, [...(japanese[int(random, 500)] ?? 'あ')]),
      identifier: () => english(random) + capital(english(random)),
    }
    return Object.entries(makers).flatMap(([kind, make]) =>
      Array.from({ length: ofEachKind }, (_, number) => ({ kind: kind as Kind, text: make(number) })),
    )
  }
  return { document, questions }
}

type Random = () => number

/** Returns a generator of pseudo-random numbers (mulberry32). */
function randomOf(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const int = (random: Random, below: number) => Math.floor(random() * below)
const pick = <Item>(random: Random, items: readonly Item[]) => items[int(random, items.length)] as Item
const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)

/** Returns a random rank, with a probability proportional to 1/(rank + 3). */
function zipf(random: Random, count: number): number {
  return Math.min(count - 1, Math.floor(3 * ((count / 3 + 1) ** random() - 1)))
}

function wordOf(random: Random, rank: number): string {
  const syllables = rank < 50 ? 1 : 2 + int(random, 3)
  return (
    Array.from({ length: syllables }, () => pick(random, consonants) + pick(random, vowels)).join('') +
    (random() < 0.5 ? 'n' : '')
  )
}

/** Returns a random word: two or three of 2,000 Han characters, a katakana word, or a verb. */
function japaneseOf(random: Random): string {
  const hanzi = () => String.fromCodePoint(0x4e00 + Math.floor(2000 * random() ** 2) * 10)
  const kind = random()
  if (kind < 0.6) return hanzi() + hanzi() + (random() < 0.2 ? hanzi() : '')
  if (kind < 0.8) return Array.from({ length: 3 + int(random, 4) }, () => pick(random, katakana)).join('')
  return hanzi() + pick(random, kana) + pick(random, kana)
}
