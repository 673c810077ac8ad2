import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { metaKeys } from '../../src/core/meta.ts'
import { isLabel, isLabelText } from '../../src/core/mount-kind.ts'
import { t as basket } from '../../src/explorer/web/basket/words.ts'
import { t as host } from '../../src/explorer/web/host/words.ts'
import { t as preview } from '../../src/explorer/web/preview/words.ts'
import { t as shell } from '../../src/explorer/web/shell/words.ts'
import {
  iconOfMount,
  isSearchMount,
  kindAt,
  noteMounts,
  sortMounts,
  subtitleOfMount,
  titleOfMount,
} from '../../src/explorer/web/state/offered.ts'
import { t as tree } from '../../src/explorer/web/tree/words.ts'
import { language } from '../../src/explorer/web/words/texts.ts'
import { sources } from '../../src/providers/index.ts'
import { packages } from '../../src/providers/packages/declaration.ts'

const initial = language.value
afterEach(() => {
  language.value = initial
})

describe('a mount whose kind the server reports', () => {
  const mountOf = (uri: string, kind: unknown, more: object = {}) => ({
    uri,
    name: uri.replace(/^.*\//, ''),
    meta: { [metaKeys.kind]: kind },
    ...more,
  })

  test('has the icon and the label of its source, at any address', () => {
    const { name: noun, icon, label } = packages
    const mount = mountOf('any://npm', { noun, icon, label })
    noteMounts([mount])
    language.value = 'en'
    expect(iconOfMount('any://npm')).toBe('box')
    expect(titleOfMount(mount)).toBe('Packages')
    expect(subtitleOfMount({ ...mount, title: 'Dependencies' })).toBe('npm')
    language.value = 'ja'
    expect(titleOfMount(mount)).toBe('パッケージ')
  })

  test.each(Object.entries(sources))(
    'of the source %s has a label and a purpose in English and in Japanese',
    (_, source) => {
      const { label, purpose } = source
      for (const text of [label, purpose]) {
        expect([isLabel(text), isLabelText(text?.ja)]).toEqual([true, true])
        // Names such as API and MCP are the same in both languages.
        expect(/[\p{sc=Hira}\p{sc=Kana}\p{sc=Han}]/u.test(text?.ja ?? '') || text?.ja === 'API').toBe(true)
      }
    },
  )

  test('shows its name, with the label beside it, if another mount has the same label', () => {
    const kind = { noun: 'rows', label: { en: 'Database' } }
    const mounts = [mountOf('a://one', kind), mountOf('b://two', kind)]
    noteMounts(mounts)
    expect(mounts.map(titleOfMount)).toEqual(['one', 'two'])
    expect(mounts.map(subtitleOfMount)).toEqual(['Database', 'Database'])
  })

  test('shows the noun of its kind beside its name if the kind has no label', () => {
    const mount = mountOf('clock://me', { noun: 'clock' })
    noteMounts([mount])
    expect([iconOfMount('clock://me'), titleOfMount(mount), subtitleOfMount(mount)]).toEqual(['mount', 'me', 'clock'])
  })

  test('is placed first or last, and counts as live or as a search, as its kind states', () => {
    const mounts = [
      mountOf('a://search', { noun: 'search', isSearch: true }),
      mountOf('b://live', { noun: 'live', isLive: true }),
      mountOf('c://first', { noun: 'first', isFirst: true }),
    ]
    noteMounts(mounts)
    expect(sortMounts(mounts).map(({ name }) => name)).toEqual(['first', 'live', 'search'])
    expect(isSearchMount('a://search/')).toBe(true)
    expect([kindAt('b://live/x?y')?.isLive, kindAt('c://first/x')?.isLive]).toEqual([true, undefined])
  })

  test.each([
    ['markup as its icon', { noun: 'x', icon: '<img src=x onerror=alert(1)>' }],
    ['the name of a member of every object as its icon', { noun: 'x', icon: 'constructor' }],
    ['a label that is no text', { noun: 'x', label: { en: { toString: 'y' } } }],
    ['a label of more than 60 characters', { noun: 'x', label: { en: 'y'.repeat(61) } }],
    ['no noun', { icon: 'box' }],
    ['nothing', null],
  ])('has the default icon and its name if the kind has %s', (_, kind) => {
    const mount = mountOf('x://me', kind)
    noteMounts([mount])
    expect([iconOfMount('x://me'), titleOfMount(mount)]).toEqual(['mount', 'me'])
  })
})

test('a text of the explorer with a count of one is in the singular', () => {
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

describe('every text of the explorer', () => {
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

  test('is one of over 400 pairs of English and Japanese in the code', () => {
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
  test('has no space before an ellipsis at its end', () => {
    expect(where(({ en, ja }) => / …$/.test(en) || / …$/.test(ja))).toEqual([])
  })
  test('has the same placeholders in both languages', () => {
    const names = (text: string) => [...new Set([...text.matchAll(/\{(\w+)/g)].map(([, name]) => name))].sort()
    expect(where(({ en, ja }) => names(en).join() !== names(ja).join())).toEqual([])
  })
})
