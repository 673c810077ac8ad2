import { describe, expect, test } from 'vitest'
import { outlineEntries, outlineOf, sectionStartsIn } from '../../src/text/structure.ts'

const linesOf = (text: string, path: string, count = 60) => outlineEntries(text.split('\n'), path, undefined, count)

describe('the outline of a text', () => {
  test('has the headings of Markdown that are not in a block of code', () => {
    expect(
      linesOf('# One\n```sh\n# a comment\n```\n## Two\nfunction words() are prose\n第1章 はじめに', 'a.md'),
    ).toEqual([
      { line: 1, text: '# One' },
      { line: 5, text: '## Two' },
      { line: 7, text: '第1章 はじめに' },
    ])
  })

  test('has the declarations of code, and no comments or properties', () => {
    const code = [
      '# a comment',
      'def first(a):',
      '    def second(self):',
      'pub(crate) fn third<T>() {',
      'export const fourth = 4',
      'const fifth = async (a) => {',
      'func (r *Reader) Sixth() {',
      '  message: "of an object",',
      'typeof value',
    ]
    const starts = linesOf(code.join('\n'), 'a.py').map(({ line }) => line)
    expect(starts).toEqual([2, 3, 4, 5, 6, 7])
    expect(sectionStartsIn(code, 'a.py', undefined).flatMap((isStart, at) => (isStart ? [at + 1] : []))).toEqual(starts)
  })

  test('is spread over the whole of a text with many headings, the highest first', () => {
    const part = (index: number) => [`# ${index}`, ...Array.from({ length: 9 }, (_, at) => `### ${index}.${at}`)]
    const text = Array.from({ length: 100 }, (_, index) => part(index).join('\n')).join('\n')
    const shown = linesOf(text, 'a.md', 10)
    expect(shown.map((one) => one.text)).toEqual(Array.from({ length: 10 }, (_, at) => `# ${at * 10}`))
  })

  test('describes the columns of a table, the keys of JSON, and the beginning of any other text', () => {
    expect(outlineOf('id,name\n1,a\n2,b', 'a.csv', undefined)).toBe(
      '3 lines, 15 bytes\ncolumns: id,name\nrows: 2\n2: 1,a\n3: 2,b',
    )
    expect(outlineOf('{"a":[1]}', 'a.json', undefined)).toContain('a: array of 1')
    expect(outlineOf('one\n\ntwo', 'a.txt', undefined)).toBe('3 lines, 8 bytes\n1: one\n3: two')
  })

  test('says how many headings or declarations it leaves out', () => {
    const code = Array.from({ length: 100 }, (_, index) => `function f${index}() {}`).join('\n')
    const lines = outlineOf(code, 'a.ts', undefined).split('\n')
    expect(lines.slice(0, 2)).toEqual([`100 lines, ${code.length} bytes`, '1: function f0() {}'])
    expect([lines.length, lines.at(-1)]).toEqual([82, '… 20 more'])
  })
})
