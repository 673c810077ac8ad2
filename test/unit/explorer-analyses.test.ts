import { expect, test } from 'vitest'
import { analysesOf } from '../../src/explorer/web/preview/model/documents.ts'
import { escapeName } from '../../src/providers/results/paths.ts'

const one = {
  ...{ id: 'a b', path: 'results/a b', title: 'How long?', taskType: 'basic', confidence: 0.9, thresholdsMet: true },
  ...{ totalCost: 0.25, providers: ['m', 3], created: '2026-05-01T00:00:00Z', tags: ['tea/green', '..', '~', '緑'] },
}

test('a list of analyses has the URI of each, of its report and of its tags, as the mount serves them', () => {
  const [listed] = analysesOf({ results: [one] }, 'results://shop/recent') ?? []
  expect(listed).toMatchObject({
    uri: 'results://shop/results/a%20b',
    report: 'results://shop/results/a%20b/report',
    cost: 0.25,
    providers: ['m'],
    created: Date.parse('2026-05-01T00:00:00Z'),
    expires: undefined,
  })
  expect(listed?.tags).toEqual(
    one.tags.map((name) => ({ name, uri: `results://shop/by-tag/${encodeURI(escapeName(name))}` })),
  )
  expect(analysesOf({ results: [one] }, 'results://shop/at/by-tag/tea~1green')?.[0]?.uri).toBe(
    'results://shop/at/results/a%20b',
  )
  expect(analysesOf({ results: [] }, 'results://shop/recent')).toEqual([])
})

test('parts of a list of analyses, invalid lists and documents of other kinds are not shown as analyses', () => {
  for (const [value, uri] of [
    [{ results: [one] }, 'file:///site/analyses.json'],
    [{ results: [one] }, 'results://shop/recent?lines=1-'],
    [{ results: [{ ...one, path: '../up' }] }, 'results://shop/recent'],
    [{ results: 'none' }, 'results://shop/recent'],
    [[one], 'results://shop/recent'],
  ] as const)
    expect(analysesOf(value, uri)).toBeUndefined()
})
