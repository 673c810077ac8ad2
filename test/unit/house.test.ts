import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { circlesOf } from '../../scripts/house/circles.ts'
import { countOrigins } from '../../scripts/house/origins.ts'
import { draw, paragraphsOf } from '../../scripts/house/sample.ts'
import { parse } from '../../scripts/house/source.ts'
import { repeatedNames, riddleIn } from '../../scripts/house/words.ts'

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

  test('find names that many types share, and numbers without the unit that their comment gives', () => {
    const file = (name: string, text: string) => parse(name, `export interface Row {\n}\n${text}`)
    const files = [
      file('a.ts', '/** The pause, in milliseconds. */\nconst pause = 20\n'),
      file('b.ts', '/** The pause, in milliseconds. */\nconst pauseMs = 20\ntype Cell = string\n'),
      file('c.ts', '/** Maximum size, in bytes: two pages. */\nexport const most = 2 * 4096\nclass Cell {}\n'),
      file('d.ts', '/** Number of rows, which come in seconds. */\nconst rows = read()\n'),
    ]
    expect(repeatedNames(files.slice(1))).toEqual([])
    expect(repeatedNames(files)).toEqual(['Row'])
    expect(files.map(({ withoutUnit }) => withoutUnit)).toEqual([['pause'], [], ['most'], []])
  })

  test('tell the lines of a commit from those that were written later, and share out those that were written again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-house-'))
    const git = async (...args: readonly string[]) => {
      const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.org']
      return (await promisify(execFile)('git', [...identity, ...args], { cwd: folder })).stdout.trim()
    }
    const commit = async (text: string) => {
      await writeFile(join(folder, 'src/a.ts'), text)
      await git('add', '.')
      await git('commit', '-q', '-m', 'a')
      return git('rev-parse', 'HEAD')
    }
    try {
      await git('init', '-q')
      await mkdir(join(folder, 'src'))
      const before = await commit('const first = 1\nconst second = 2\nconst third = 3\nconst fourth = 4\n')
      const again = await commit('const first = 1\nconst second = 2\nconst third = 3\nfunction fourth() {}\n')
      await commit('const first = 1\nconst second = 2\nconst third = 3\nfunction fourth() {}\nexport const added = 5\n')
      const causes = new Map([[again.slice(0, 8), 'same' as const]])
      const { found, shared } = await countOrigins(before, ['a.ts'], { folder, causes })
      expect(found).toEqual({ old: 3, same: 1, faster: 0, feature: 1 })
      expect(shared).toEqual({ old: 3.75, same: 0, faster: 0, feature: 1.25 })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
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
