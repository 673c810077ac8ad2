import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { beginningsOf, fold, stem, tokenize } from '../../src/text/analyser.ts'
import { passagesOf, textKind } from '../../src/text/structure.ts'
import { volumeOf } from '../support/volume.ts'

interface Token {
  readonly term: string
  readonly start: number
  readonly end: number
  readonly kind: string
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  tokenize(fold(text).text, (term, start, end, kind) => void tokens.push({ term, start, end, kind }))
  return tokens
}
const termsOf = (text: string) => tokensOf(text).map(({ term }) => term)

/** Texts of all the scripts and widths that are treated each in their own way. */
const pieces = fc.constantFrom(
  ...[
    '東京',
    'タワー',
    'ｶﾞｷﾞ',
    'が',
    'が',
    '々',
    '𠮷野',
    '한국어',
    'ＡＢＣ',
    'fooBar',
    'foo_bar',
    'a-b.c',
    "don't",
    '3,000',
    'Straße',
  ],
  ...[
    'ﬁre',
    'İstanbul',
    'é',
    'é',
    'ก็',
    'ー',
    '\n',
    ' ',
    '。',
    '\u0000',
    '\ud800',
    '👩‍👩‍👧',
    '㍿',
    '①',
    'caches',
    'running',
    '_',
    '.',
    '-',
  ],
)
const texts = fc.oneof(
  fc.array(pieces, { maxLength: 40 }).map((some) => some.join('')),
  fc.string({ unit: 'binary', maxLength: 200 }),
)

describe('the normalization of characters', () => {
  test('maps each character to a position in the original text, in order', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const folded = fold(text)
        let last = 0
        for (let index = 0; index <= folded.text.length; index++) {
          const origin = folded.origin(index)
          expect(origin).toBeGreaterThanOrEqual(last)
          expect(origin).toBeLessThanOrEqual(text.length)
          last = origin
        }
        expect(folded.origin(folded.text.length)).toBe(text.length)
      }),
      { numRuns: volumeOf(300) },
    )
  })

  test('unifies full and half width, and composed and decomposed characters, and knows where each was', () => {
    expect(fold('ＡＢｃ１２ ｶﾞｷﾞｸﾟ が ﬁ ㍿').text).toBe('ABc12 ガギク゚ が fi 株式会社'.normalize('NFKC'))
    const folded = fold('ｻｰﾊﾞｰ１号')
    expect(folded.text).toBe('サーバー1号')
    expect([0, 1, 2, 3, 4, 5].map(folded.origin)).toEqual([0, 1, 2, 4, 5, 6])
  })

  test('maps the end of a megabyte of combining marks on one letter to the end of the text', () => {
    const folded = fold(`a${'\u0301\u0316'.repeat(500_000)}`)
    expect(folded.origin(folded.text.length)).toBe(1_000_001)
  })
})

describe('tokens of a text', () => {
  test('are lower-case word stems, numbers, and identifiers with their parts', () => {
    expect(termsOf('Running CACHES, cached caching studies')).toEqual(['run', 'cach', 'cach', 'cach', 'study'])
    for (const text of ['fooBarBaz', 'foo_bar_baz', 'foo-bar-baz', 'foo.bar.baz', 'FooBarBaz', 'FOO_BAR_BAZ'])
      expect(termsOf(text), text).toEqual(['foobarbaz', 'foo', 'bar', 'baz'])
    expect(termsOf('HTTPServer')).toEqual(['httpserver', 'http', 'server'])
    expect(termsOf('Base64Encoder 3,000 3.14')).toEqual([
      'base64encoder',
      'base64',
      'encoder',
      '3000',
      '3.14',
      '3',
      '14',
    ])
  })

  test('are pairs of characters in scripts without spaces, and single Han characters', () => {
    expect(termsOf('東京タワー')).toEqual(['東', '東京', '京', '京タ', 'タワ', 'ワー', 'ー'])
    expect(termsOf('ｶﾀｶﾅ')).toEqual(termsOf('カタカナ'))
    expect(termsOf('時々 𠮷野')).toEqual(['時', '時々', '々', '𠮷', '𠮷野', '野'])
    expect(termsOf('한국어')).toEqual(['한국', '국어', '어'])
    expect(termsOf('か')).toEqual(['か'])
  })

  test('of any text are not empty and are well formed, lie within the text, and are in order if they are words', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { text: folded } = fold(text.toWellFormed())
        let last = 0
        tokenize(folded, (term, start, end, kind) => {
          expect(term).not.toBe('')
          expect(term.isWellFormed()).toBe(true)
          // As the store takes it. Some Han characters are symbols to Unicode.
          expect(term).toMatch(/^[0-9a-z.\u{80}-\u{10ffff}]+$/u)
          expect(term).not.toMatch(/\s/)
          expect(start).toBeLessThan(end)
          expect(end).toBeLessThanOrEqual(folded.length)
          if (kind === 'bigram' || kind === 'single') expect(folded.slice(start, end)).toBe(term)
          if (kind === 'word') {
            expect(start).toBeGreaterThanOrEqual(last)
            last = end
          }
        })
      }),
      { numRuns: volumeOf(500) },
    )
  })

  test('are all found, in order, if only those of a query are requested', () => {
    fc.assert(
      fc.property(texts, texts, (text, query) => {
        const wanted = new Set(termsOf(query))
        const told: string[] = []
        tokenize(fold(text).text, (term) => void told.push(term), beginningsOf(wanted))
        expect(told.filter((term) => wanted.has(term))).toEqual(termsOf(text).filter((term) => wanted.has(term)))
      }),
      { numRuns: volumeOf(300) },
    )
  })

  test('are the stems of the words, the same a second time, and all found if only one term is requested', () => {
    const ending = fc.constantFrom('', 's', 'es', 'ies', 'ed', 'ied', 'ing', 'e', 'sses', 'ssed', 'zing')
    const small = fc.stringMatching(/^[a-z]{1,6}$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(small, ending), { minLength: 1 }), (given) => {
        const words = given.map(([beginning, end]) => beginning + end)
        const text = words.join(' ')
        const first = tokensOf(text)
        expect(first.map(({ term }) => term)).toEqual(words.map((word) => stem(word)))
        expect(tokensOf(text)).toEqual(first)
        for (const { term } of first) {
          const told: string[] = []
          tokenize(text, (one) => void told.push(one), beginningsOf([term]))
          expect(told.filter((one) => one === term)).toEqual(first.map((one) => one.term).filter((one) => one === term))
        }
      }),
      { numRuns: volumeOf(300) },
    )
  })

  test('of more words than the cache holds are the same in another order of the words', () => {
    const words = Array.from({ length: 45_000 }, (_, n) => `fooBar${n.toString(36)}x_words`)
    const all = tokensOf(words.join(' '))
    const again = tokensOf([...words].reverse().join(' '))
    expect(again.map(({ term }) => term).sort()).toEqual(all.map(({ term }) => term).sort())
    expect(termsOf(words[0] ?? '')).toEqual(all.slice(0, termsOf(words[0] ?? '').length).map(({ term }) => term))
  })

  test('are at most a few for each character, however long a word is', () => {
    for (const piece of ['a', 'A', 'aB', '東', 'か', 'a_', "a'", '1,', '1,234,', 'ｶﾞ', '\u0301', '𠮷', 'ー', 'é', 'ก']) {
      const text = piece.repeat(200_000 / piece.length)
      let told = 0
      tokenize(fold(text).text, (_, start, end) => {
        told += Math.min(end - start, 128)
      })
      expect(told, piece).toBeLessThan(4 * text.length)
    }
  })

  test('have stems that are never empty or longer than the word, and one stem for the forms of a word', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aeiousdginyxzc'), maxLength: 12 }), (text) => {
        expect(stem(text).length).toBeLessThanOrEqual(text.length)
        if (text.length > 0) expect(stem(text)).not.toBe('')
      }),
    )
    expect(['make', 'makes', 'making'].map(stem)).toEqual(['mak', 'mak', 'mak'])
    expect(['need', 'string', 'news', 'class', 'bus', 'this'].map(stem)).toEqual([
      'need',
      'string',
      'new',
      'class',
      'bus',
      'this',
    ])
  })
})

describe('passages of a text', () => {
  const kinds = fc.constantFrom('markdown', 'code', 'table', 'plain' as const)
  const lines = fc.constantFrom(
    '# One',
    '## Two',
    'text of a line',
    '',
    '```',
    'export function a() {',
    'a,b,c',
    '東京。'.repeat(900),
    'x'.repeat(4000),
    '𠮷'.repeat(1000),
    '  ',
  )

  test('hold every word of the text once, in the lines that have it, and are limited in length', () => {
    fc.assert(
      fc.property(fc.array(lines, { maxLength: 30 }), kinds, (some, kind) => {
        const text = some.join('\n')
        const passages = [...passagesOf(text, kind as 'plain')]
        const bare = (each: string) => each.replace(/\s/g, '')
        expect(passages.map((passage) => bare(passage.text)).join('')).toBe(bare(text))
        let last = 1
        for (const { start, end, text: own } of passages) {
          expect(own.length).toBeLessThanOrEqual(1600 + 1)
          expect(own.isWellFormed()).toBe(true)
          expect(start).toBeGreaterThanOrEqual(last)
          expect(end).toBeGreaterThanOrEqual(start)
          const within = text
            .split('\n')
            .slice(start - 1, end)
            .join('\n')
          expect(within.includes(own)).toBe(true)
          last = start
        }
      }),
      { numRuns: volumeOf(200) },
    )
  })

  test('begin at headings and declarations, are named after them or the head of a table, and leave out no part of a long text', () => {
    const page = '# Guide\nintro\n\n## Install\nrun it\n```\n# no heading\n```\n## Use\ncall it\n'
    expect([...passagesOf(page, 'markdown')].map(({ heading, start, end }) => [heading, start, end])).toEqual([
      ['Guide', 1, 2],
      ['Guide > Install', 4, 8],
      ['Guide > Use', 9, 10],
    ])
    const code = [
      'export function first() {',
      ...Array.from({ length: 20 }, () => '  work(1, 2, 3)'),
      '}',
      '',
      'class Second {',
      '}',
    ].join('\n')
    expect([...passagesOf(code, 'code')].map(({ heading, start }) => [heading, start])).toEqual([
      ['export function first()', 1],
      ['class Second', 24],
    ])
    const csv = ['id,name', ...Array.from({ length: 300 }, (_, i) => `${i},a name of ${i}`)].join('\n')
    // No part of a long text is left out, however many headings it has.
    for (const [long, kind] of [
      ['# a\n'.repeat(40_000), 'markdown'],
      ['word '.repeat(20).concat('\n\n').repeat(90_000), 'plain'],
    ] as const) {
      const passages = [...passagesOf(long, kind)]
      expect(passages.at(-1)?.end).toBeGreaterThanOrEqual(long.trimEnd().split('\n').length)
      expect(passages.length).toBeLessThan(16_000)
    }
    // A heading may be as long as the text.
    const [heading] = passagesOf(`# ${'#'.repeat(1_000_000)}x`, 'markdown')
    expect(heading?.heading?.length).toBeLessThan(200)
    expect(new Set([...passagesOf(csv, 'table')].map(({ heading }) => heading))).toEqual(new Set(['id,name']))
  })

  test('are divided by a format that comes from the media type of the text, or else from its name', () => {
    expect(textKind('text/markdown', 'a')).toBe('markdown')
    expect(textKind('text/plain', 'docs/a.md')).toBe('markdown')
    expect(textKind(undefined, 'src/a.ts')).toBe('code')
    expect(textKind('text/csv', 'a')).toBe('table')
    expect(textKind('text/plain', 'a.txt')).toBe('plain')
  })
})
