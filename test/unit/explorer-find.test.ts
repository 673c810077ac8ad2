import { describe, expect, test } from 'vitest'
import { findSearchMounts, foundMimeType, type SearchMount } from '../../src/core/search-answer.ts'
import type { View } from '../../src/core/view.ts'
import {
  createTemplateForm,
  formatFieldValues,
  missingFields,
  otherValues,
  parseFieldValues,
  uriOfForm,
} from '../../src/explorer/web/find/combobox.tsx'
import { querySearches, searchQueryFromRoute } from '../../src/explorer/web/find/finder.ts'
import { markName } from '../../src/explorer/web/find/hit.tsx'
import { parseInlineMarkdown, tableIn } from '../../src/explorer/web/find/snippet.tsx'
import { readIndexingProgress } from '../../src/explorer/web/listing/survey.ts'
import { matchScore, type PaletteOption, rankOptions } from '../../src/explorer/web/palette/options.ts'

const { signal } = new AbortController()

function placeAt(name: string): SearchMount {
  const [place] = findSearchMounts([
    {
      uriTemplate: `search://${name}{?q,limit,mount,mime,since,minPriority,audience,path,after}`,
      name,
      mimeType: foundMimeType,
    },
  ])
  if (place === undefined) throw new Error('That is the template of a search.')
  return place
}

function hit(document: string, score: number) {
  return {
    ...{ uri: `${document}?lines=1-2`, document, mount: 'file:///a', score, lines: { start: 1, end: 2 } },
    snippet: { text: 'a word', marks: [[2, 6]] },
  }
}

/** A view whose reads answer by what their URI begins with. */
function viewOf(answers: Readonly<Record<string, unknown>>, asked: string[] = []): View {
  const read = async (uri: string) => {
    asked.push(uri)
    const [, answer] = Object.entries(answers).find(([start]) => uri.startsWith(start)) ?? []
    if (answer === undefined) throw new Error('It is away.')
    return { contents: [{ uri, text: JSON.stringify(answer) }], cache: { ttlMs: 0, scope: 'private' as const } }
  }
  return { read } as unknown as View
}

test('a name is marked where it contains the query, in any letter case; a query for a path marks nothing', () => {
  expect(markName('My Cursor-cursor.md', ' cursor ')).toEqual([
    { text: 'My ', marked: false },
    { text: 'Cursor', marked: true },
    { text: '-', marked: false },
    { text: 'cursor', marked: true },
    { text: '.md', marked: false },
  ])
  expect(markName('a.md', 'docs/a')).toEqual([{ text: 'a.md', marked: false }])
})

test('the progress of indexing counts the documents of the indexes that still grow, and is absent once none grows', async () => {
  const [a, b] = [placeAt('a'), placeAt('b')]
  const status = (state: string, looked: number, of?: number) => ({
    indexing: 'running',
    mounts: [{ address: 'file:///x', state, looked, ...(of === undefined ? {} : { of }) }],
  })
  const both = (first: object, second: object) => viewOf({ [a.status]: first, [b.status]: second })
  const growth = (view: View) => readIndexingProgress(view, [a, b], signal)
  expect(await growth(both(status('comparing', 3, 10), status('current', 7, 7)))).toEqual({ done: 3, of: 10 })
  expect(await growth(both(status('comparing', 3, 10), status('waiting', 0)))).toEqual({ done: 3 })
  expect(await growth(both(status('current', 3, 3), status('unavailable', 1)))).toBeUndefined()
  expect(await growth(viewOf({ [a.status]: status('comparing', 1) }))).toEqual({ done: 1 })
})

describe('a search in the explorer', () => {
  test('sends the query and the valid filters of the permalink, and nothing for a blank query', () => {
    expect(searchQueryFromRoute({ q: '  ' })).toBeUndefined()
    expect(
      searchQueryFromRoute({
        q: '東京',
        mime: 'text/*',
        minPriority: '0.5',
        audience: 'user',
        since: '7d',
        mount: 'file:///a',
      }),
    ).toEqual({
      ...{
        query: '東京',
        limit: 20,
        mime: 'text/*',
        minPriority: 0.5,
        audience: 'user',
        since: '7d',
        mount: 'file:///a',
      },
    })
    // What a link of somebody else says wrongly narrows nothing.
    expect(searchQueryFromRoute({ q: 'a', minPriority: 'high', audience: 'everybody' })).toEqual({
      query: 'a',
      limit: 20,
    })
  })

  test('refuses a query that is too long for a URI', () => {
    expect(placeAt('a').uriOf({ query: '決'.repeat(900) }).length).toBeLessThan(8192)
    expect(() => placeAt('a').uriOf({ query: '決'.repeat(1000) })).toThrow(/^The query is too long\. /)
  })

  test('merges several searches by score, with each hit once', async () => {
    const view = viewOf({
      'search://one': { query: 'w', hits: [hit('file:///a/1', 1), hit('file:///a/2', 0.4)], total: 2, notes: ['n'] },
      'search://two': { query: 'w', hits: [hit('file:///a/3', 0.7), hit('file:///a/2', 0.3)], total: 2, notes: ['n'] },
    })
    const found = await querySearches(view, [placeAt('one'), placeAt('two')], { query: 'w' }, undefined, signal)
    expect(found.hits.map(({ document }) => document)).toEqual(['file:///a/1', 'file:///a/3', 'file:///a/2'])
    expect(found).toMatchObject({ total: 4, notes: ['n'], failed: [] })
  })

  test('names the search that did not answer, beside the hits of the others', async () => {
    const view = viewOf({ 'search://one': { query: 'w', hits: [hit('file:///a/1', 1)], notes: [] } })
    const found = await querySearches(view, [placeAt('one'), placeAt('gone')], { query: 'w' }, undefined, signal)
    expect(found.hits).toHaveLength(1)
    expect(found.failed.map(({ address }) => address)).toEqual(['search://gone'])
  })

  test('requests further hits only from the searches that have more', async () => {
    const asked: string[] = []
    const view = viewOf(
      {
        'search://one': { query: 'w', hits: [hit('file:///a/1', 1)], total: 40, next: '20', notes: [] },
        'search://two': { query: 'w', hits: [hit('file:///a/2', 0.5)], total: 1, notes: [] },
      },
      asked,
    )
    const places = [placeAt('one'), placeAt('two')]
    const first = await querySearches(view, places, { query: 'w' }, undefined, signal)
    expect(first.total).toBe(41)
    asked.length = 0
    const more = await querySearches(view, places, { query: 'w' }, first, signal)
    expect(asked).toEqual([expect.stringMatching(/^search:\/\/one.*after=20/)])
    expect(more.total).toBe(41)
  })

  test('keeps the cursor of a search that fails when further hits are requested, and the failures and the number of pending documents of the first answer', async () => {
    const one = { query: 'w', hits: [hit('file:///a/1', 1)], next: '20', pending: 3, notes: [] }
    const places = [placeAt('one'), placeAt('gone')]
    const first = await querySearches(viewOf({ 'search://one': one }), places, { query: 'w' }, undefined, signal)
    const failed = await querySearches(viewOf({}), places, { query: 'w' }, first, signal)
    expect(failed.failed.map(({ address }) => address)).toEqual(['search://gone', 'search://one'])
    expect(failed).toMatchObject({ hits: first.hits, pending: 3 })
    const more = { query: 'w', hits: [hit('file:///a/2', 0.5)], notes: [] }
    const last = await querySearches(viewOf({ 'search://one': more }), places, { query: 'w' }, failed, signal)
    expect(last.hits.map(({ document }) => document)).toEqual(['file:///a/1', 'file:///a/2'])
    expect(last.failed.map(({ address }) => address)).toEqual(['search://gone'])
    expect(last.pending).toBe(3)
  })
})

describe('the form of a template in the explorer', () => {
  test('has a field for each variable, marked if it is optional or a list; an invalid template has no form', () => {
    const form = createTemplateForm('git://app/{+path}{?at,lines*}')
    expect(form?.fields).toEqual([
      { name: 'path', isOptional: false, isList: false },
      { name: 'at', isOptional: true, isList: false },
      { name: 'lines', isOptional: true, isList: true },
    ])
    expect(createTemplateForm('broken{')).toBeUndefined()
  })

  test('expands its values to a URI, keeps them in the permalink, and names required fields without a value', () => {
    const form = createTemplateForm('git://app/{+path}{?at,lines*}')
    if (form === undefined) throw new Error('It is a template.')
    const values = parseFieldValues(formatFieldValues({ path: 'docs/日本.md', at: '', lines: '1-2, 5' }))
    expect(values).toEqual({ path: 'docs/日本.md', lines: '1-2, 5' })
    expect(uriOfForm(form, values)).toBe('git://app/docs/%E6%97%A5%E6%9C%AC.md?lines=1-2&lines=5')
    expect(missingFields(form, { at: 'main' })).toEqual(['path'])
    expect([...otherValues(form, { path: 'a', at: 'main' }, 'path')]).toEqual([['at', 'main']])
  })
})

describe('the command palette', () => {
  const option = (label: string, detail?: string, kind: PaletteOption['kind'] = 'resource'): PaletteOption => ({
    ...{ id: label, label, kind, run: () => {} },
    ...(detail === undefined ? {} : { detail }),
  })

  test('ranks adjacent letters before scattered ones, and the beginning of a word before its middle', () => {
    const labels = rankOptions([option('scatter read me'), option('unreadme'), option('docs/readme.md')], 'readme').map(
      ({ label }) => label,
    )
    expect(labels).toEqual(['docs/readme.md', 'unreadme', 'scatter read me'])
    expect(matchScore('xyz', 'readme')).toBeUndefined()
  })

  test('matches a query also with half-width katakana and with full-width Latin letters', () => {
    const labels = rankOptions([option('設計メモ.md'), option('ﾃｽﾄ計画'), option('README.md')], 'テスト').map(
      ({ label }) => label,
    )
    expect(labels).toEqual(['ﾃｽﾄ計画'])
    expect(rankOptions([option('Ｒｅａｄｍｅ')], 'readme')).toHaveLength(1)
  })

  test('ranks names before addresses, and actions before resources', () => {
    const labels = rankOptions(
      [option('a', 'file:///tree'), option('tree.ts'), option('tree', undefined, 'action')],
      'tree',
    )
    expect(labels.map(({ kind, label }) => `${kind} ${label}`)).toEqual([
      'action tree',
      'resource tree.ts',
      'resource a',
    ])
  })
})

test('a hit in a table is shown as whole rows below the head, rows with the words first', () => {
  const text = '… 7,sencha,Uji\n8,hojicha,Kyoto\n9,hojicha,Uji\n10,matc …'
  const hit = { heading: 'id,tea,place', snippet: { text, marks: [[11, 14]] as const } }
  expect(tableIn(hit, 'text/csv')).toEqual({
    head: ['id', 'tea', 'place'],
    rows: [
      ['7', 'sencha', 'Uji'],
      ['9', 'hojicha', 'Uji'],
      ['8', 'hojicha', 'Kyoto'],
    ],
    words: ['uji'],
  })
  expect(tableIn({ ...hit, heading: 'Notes' }, 'text/csv')).toBeUndefined()
})

test('a hit in Markdown is shown without the signs of strong text, code and links', () => {
  expect(parseInlineMarkdown('A **refund** needs `a.ts` and [the *docs*](b.md).').map((piece) => piece.text)).toEqual([
    ...['A ', 'refund', ' needs ', 'a.ts', ' and ', 'the *docs*', '.'],
  ])
})
