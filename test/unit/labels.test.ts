import { describe, expect, test } from 'vitest'
import { createLabelScore, labelsIn } from '../../src/text/relevance.ts'

const labelsOf = (text: string) => labelsIn(text).map(([start, end]) => text.slice(start, end).trim())

describe('the labels in the subject of a commit', () => {
  test.each([
    ['store: rows are written at once', ['store:']],
    ['explorer, tui: one tree for both', ['explorer, tui:']],
    ['store: rows at once; docs: what it saves', ['store:', 'docs:']],
    ['fix(client/auth): a token is saved', ['(client/auth):']],
    ['feat(ui)!: another panel', ['(ui)!:']],
    ['[jsonpath] filters', ['[jsonpath]']],
    ['fix: a crash', [':']],
  ])('are found in %s', (text, expected) => {
    expect(labelsOf(text)).toEqual(expected)
  })

  test.each([
    'where are rows written',
    'see https://example.org/a',
    'a thing of many words: and its reason',
    '12:30',
    '',
  ])('are absent in %s', (text) => {
    expect(labelsOf(text)).toEqual([])
  })

  test('are found before 50,000 repetitions of any separator, and not among them', () => {
    for (const unit of [';', 'a,', 'a, ', ';a,b', 'a:', '[', '; a(', 'a/']) {
      expect(labelsOf(unit.repeat(50_000)), unit).toEqual([])
      expect(labelsOf(`store: ${unit.repeat(50_000)}`), unit).toEqual(['store:'])
    }
  })
})

describe('the match of a path with labels', () => {
  const scoreOf = (query: string) => createLabelScore(query)

  test('is best for a folder or a name, and worse for a part of one', () => {
    const score = scoreOf('search: words of a path') ?? (() => 0)
    const order = ['src/search/rank.ts', 'docs/search.md', 'test/unit/search-index.test.ts', 'src/store/index.ts']
    expect(order.map(score)).toEqual([1, 1, 0.4, 0])
  })

  test('compares whole identifiers', () => {
    const score = scoreOf('fix(reg-exp-router): wildcards') ?? (() => 0)
    expect(score('src/router/reg-exp-router/router.ts')).toBe(1)
    expect(score('src/router/smart-router/router.ts')).toBeLessThan(0.5)
  })

  test('is found for labels in other scripts, such as Japanese', () => {
    const score = scoreOf('検索: 語の順') ?? (() => 0)
    expect(score('src/検索/順.ts')).toBeGreaterThan(score('src/保存/順.ts'))
  })

  test('is zero without a label, and for a type of change such as "fix"', () => {
    expect(scoreOf('words of a path')).toBeUndefined()
    expect(scoreOf('fix: words of a path')).toBeUndefined()
  })
})
