import { describe, expect, test } from 'vitest'
import { circlesOf } from '../../scripts/house/circles.ts'
import { draw, paragraphsOf } from '../../scripts/house/sample.ts'
import { parse } from '../../scripts/house/source.ts'
import { riddleIn } from '../../scripts/house/words.ts'

describe('the numbers of the code', () => {
  test('count functions with their lines, and comments', () => {
    const { lines, functions, comments } = parse(
      'a.ts',
      '// One\n// two.\nexport function a() {\n  const b = () => {\n    return 1 // three\n  }\n  return b\n}\n/**\n * Four\n * five.\n */\nclass C { constructor() {} }\n',
    )
    expect(lines).toBe(13)
    expect(functions.map(({ name, lines: size }) => [name, size])).toEqual([
      ['a', 6],
      ['b', 3],
      ['constructor', 1],
    ])
    expect(comments.map(({ line, text }) => [line, text])).toEqual([
      [1, 'One two.'],
      [5, 'three'],
      [9, 'Four five.'],
    ])
  })

  test('find import circles, and tell which of them are left at run time', () => {
    const files = [
      parse('x/a.ts', "import { b } from './b.ts'\n"),
      parse('x/b.ts', "export { c } from '../c.ts'\nimport type { d } from './d.ts'\n"),
      parse('c.ts', "import { type A } from './x/a.ts'\n"),
      parse('x/d.ts', "import './e.ts'\nconst late = () => import('./b.ts')\n"),
      parse('x/e.ts', "import './d.ts'\n"),
    ]
    expect(circlesOf(files)).toEqual([
      ['x/d.ts', 'x/e.ts'],
      ['c.ts', 'x/a.ts', 'x/b.ts'],
    ])
    expect(circlesOf(files, true)).toEqual([['x/d.ts', 'x/e.ts']])
  })

  test('draw the same sample for the same seed', () => {
    const items = Array.from({ length: 100 }, (_, i) => i)
    expect(draw(items, 20, 7)).toEqual(draw(items, 20, 7))
    expect(draw(items, 20, 7)).not.toEqual(draw(items, 20, 8))
    expect(new Set(draw(items, 20, 7)).size).toBe(20)
    expect(draw([1, 2], 20, 7)).toHaveLength(2)
  })

  test('know paragraphs from headings, tables and code', () => {
    const page =
      '# A heading of at least eight words is none\n\nOne two three four\nfive six seven eight.\n\n| a | b |\n\n```\n'
    expect(paragraphsOf('a.md', `${page}one two three four five six seven eight nine\n\`\`\`\n`)).toEqual([
      { file: 'a.md', line: 3, text: 'One two three four five six seven eight.' },
    ])
  })

  test.each([
    ['What is not to be seen is not there.', true],
    ['Fine. Whoever asks gets it.', true],
    ['Where it is left out, everything counts.', true],
    ['What is this? It is fine.', false],
    ['Looks where it lies, and says what it is.', false],
  ])('tell a riddle: %s', (text, isRiddle) => {
    expect(riddleIn(text) !== undefined).toBe(isRiddle)
  })
})
