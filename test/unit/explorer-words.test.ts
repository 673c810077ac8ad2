import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { t as basket } from '../../src/explorer/web/basket/words.ts'
import { t as host } from '../../src/explorer/web/host/words.ts'
import { t as preview } from '../../src/explorer/web/preview/words.ts'
import { t as shell } from '../../src/explorer/web/shell/words.ts'
import { asideOfMount, iconOfMount, titleOfMount } from '../../src/explorer/web/state/offered.ts'
import { t as tree } from '../../src/explorer/web/tree/words.ts'
import { language } from '../../src/explorer/web/words/texts.ts'

const initial = language.value
afterEach(() => {
  language.value = initial
})

describe('a mount of installed packages', () => {
  test.each(['pkg://npm', 'packages://here'])('at %s has the icon and the name of its kind', (uri) => {
    language.value = 'en'
    expect(iconOfMount(uri)).toBe('box')
    expect(titleOfMount({ uri, name: 'npm' })).toBe('Packages')
    language.value = 'ja'
    expect(titleOfMount({ uri, name: 'npm' })).toBe('パッケージ')
    expect(asideOfMount({ uri, name: 'npm', title: 'Dependencies' })).toBe('npm')
  })
})

test('a count of one has the singular', () => {
  language.value = 'en'
  const of = (count: number) => [
    ...(['columnsCount', 'moreColumns', 'pages', 'hits', 'entriesMore'] as const).map((key) => preview(key, { count })),
    preview('tableSize', { rows: count, columns: count }),
    preview('diagramSize', { tables: count, relations: count }),
    tree('count', { count }),
    tree('filtered', { count }),
    basket('tokens', { count }),
    basket('cleared', { count }),
    shell('counted', { tokens: count }),
    host('hasContents', { tokens: count }),
  ]
  expect(of(1)).toEqual([
    ...['1 column', '+ 1 column', '1 page', '1 hit', '1 entry so far', '1 row, 1 column', '1 table, 1 relation'],
    ...['1 resource', '1 match.', '1 token', '1 item was removed.', '1 token'],
    'The conversation has the contents: 1 token.',
  ])
  expect(of(2)).toEqual([
    ...[
      '2 columns',
      '+ 2 columns',
      '2 pages',
      '2 hits',
      '2 entries so far',
      '2 rows, 2 columns',
      '2 tables, 2 relations',
    ],
    ...['2 resources', '2 matches.', '2 tokens', '2 items were removed.', '2 tokens'],
    'The conversation has the contents: 2 tokens.',
  ])
})

describe('every text of the page', () => {
  const web = new URL('../../src/explorer/web/', import.meta.url)
  const pairs = readdirSync(web, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) =>
      [
        ...readFileSync(new URL(file, web), 'utf8').matchAll(
          /^ {2}'?([\w-]+)'?: \[\s*'((?:[^'\\]|\\.)*)',\s*'((?:[^'\\]|\\.)*)',?\s*\],$/gm,
        ),
      ].map(([, key = '', en = '', ja = '']) => ({ where: `${file} ${key}`, en, ja })),
    )
  const where = (isWrong: (pair: { readonly en: string; readonly ja: string }) => boolean) =>
    pairs.filter(isWrong).map(({ where }) => where)
  /** The letters of Japanese words. */
  const letter = '[\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Han}ー々]'

  test('is found', () => {
    expect(pairs.length).toBeGreaterThan(400)
  })
  test('in Japanese has a space between Japanese and Latin letters, digits and values', () => {
    // The values of these are Japanese words.
    const values = /\{(?:level|ago|what)\}/gu
    const touching = new RegExp(`${letter}[A-Za-z0-9{]|[A-Za-z0-9}]${letter}`, 'u')
    expect(where(({ ja }) => touching.test(ja.replace(values, '。')))).toEqual([])
  })
  test('in Japanese has full-width brackets, and half-width colons', () => {
    expect(where(({ ja }) => new RegExp(letter, 'u').test(ja) && /[()：]/.test(ja))).toEqual([])
  })
  test('has no space before the ellipsis of something that is under way', () => {
    expect(where(({ en, ja }) => / …$/.test(en) || / …$/.test(ja))).toEqual([])
  })
  test('has the same placeholders in both languages', () => {
    const names = (text: string) => [...new Set([...text.matchAll(/\{(\w+)/g)].map(([, name]) => name))].sort()
    expect(where(({ en, ja }) => names(en).join() !== names(ja).join())).toEqual([])
  })
})
