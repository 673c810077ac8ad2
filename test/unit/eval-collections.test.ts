import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { amongOthers, collectionsOf, functionsBelow } from '../../scripts/eval/collections.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
beforeEach(() => {
  folder = createFolder()
})
afterEach(() => folder.remove())

describe('published collections for the evaluation of search', () => {
  test('are read in the SMART format, without a title that the text repeats and without questions that have no judgement', () => {
    folder.write({
      'x.all.3': [
        ...['.I 1', '.T', 'flow of air', '.A', 'a. name', '.W', 'flow of\nair around a wing .'],
        ...['.I 2', '.T', 'heat', '.W', 'what is warm .'],
        ...['.I 3', '.T', 'cold', '.W', ''],
      ].join('\n'),
      'x.qry': ['.I 001', '.W', 'where does', 'air flow .', '.I 007', '.W', 'warm ?', '.I 009', '.W', 'unjudged'].join(
        '\n',
      ),
      xqrel: ['1 1 2', '1 3 -1', '2 2 1', '  2   1   3', ''].join('\n'),
      'xqrel.readme': '9 9 9',
    })
    const [set, ...others] = collectionsOf('X', folder.root)
    expect(others).toEqual([])
    expect(set?.documents).toEqual([
      { id: '1.txt', text: 'flow of\nair around a wing .' },
      { id: '2.txt', text: 'heat\n\nwhat is warm .' },
      { id: '3.txt', text: 'cold\n\n' },
    ])
    expect(set?.questions).toEqual([
      { id: '1', text: 'where does air flow .', relevant: new Set(['1.txt']) },
      { id: '2', text: 'warm ?', relevant: new Set(['2.txt', '1.txt']) },
    ])
  })

  test('of CoSQA give a set for each file of questions, each with all functions, named by their numbers', () => {
    const question = (idx: string, retrieval_idx: number) => ({ idx, doc: `question ${idx}`, code: '', retrieval_idx })
    folder.write({
      'code_idx_map.txt': JSON.stringify({ 'def a(): pass': 4, 'def b(): pass': 2 }),
      'cosqa-retrieval-test-2.json': JSON.stringify([question('t1', 2)]),
      'cosqa-retrieval-dev-1.json': JSON.stringify([question('d1', 4)]),
      'other.json': '[]',
    })
    const sets = collectionsOf('C', folder.root)
    expect(sets.map(({ name }) => name)).toEqual(['C, dev', 'C, test'])
    for (const { documents } of sets)
      expect(documents).toEqual([
        { id: '4.py', text: 'def a(): pass' },
        { id: '2.py', text: 'def b(): pass' },
      ])
    expect(sets.map(({ questions }) => questions)).toEqual([
      [{ id: 'd1', text: 'question d1', relevant: new Set(['4.py']) }],
      [{ id: 't1', text: 'question t1', relevant: new Set(['2.py']) }],
    ])
  })

  test('are read from files of JSON lines; for a folder without a collection an error names the folder', () => {
    expect(() => collectionsOf('none', folder.root)).toThrow(`--set none=${folder.root}: this folder has no collection`)
    folder.write({
      'docs.jsonl': '{"id":"a","text":"one"}\n\n{"id":"b","text":"two"}\n',
      'queries.jsonl': '{"id":"q","text":"which","relevant":["a","b"]}\n{"id":"r","text":"that","relevant":"b"}\n',
    })
    const [set] = collectionsOf('J', folder.root)
    expect(set?.documents.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(set?.questions.map(({ relevant }) => [...relevant])).toEqual([['a', 'b'], ['b']])
  })
})

test('a collection for the evaluation of search is extended by functions of other files, each once, and without those that it already has', () => {
  const functions = (names: string) =>
    [...names].map((name) => `def ${name}(x):\n    y = x\n    z = y\n    return z\n\n`).join('')
  folder.write({
    'a/one.py': functions('abcd'),
    'b/two.py': functions('defgh'),
    'b/no.txt': functions('z'),
    'c/short.py': 'def s():\n    pass\n',
  })
  const all = functionsBelow([folder.root], 100)
  expect(all.map((text) => text.slice(4, 5))).toEqual([...'abcdefgh'])
  const some = functionsBelow([folder.root], 4)
  expect(some.map((text) => text.slice(4, 5))).toEqual([...'aceg'])
  const known = { id: '1.py', text: all[2] ?? '' }
  const set = amongOthers({ name: 'S', about: '', documents: [known], questions: [] }, some)
  expect(set.name).toBe('S, among 3 others')
  expect(set.documents.map(({ text }) => text.slice(4, 5))).toEqual(['c', 'a', 'e', 'g'])
})
