import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { home } from '../support/bundle-folder.ts'
import { longest, longestFirst, spread } from '../support/order.ts'

const others = Array.from({ length: 20 }, (_, at) => `together ${at}`)

test.each([0, 1, 4, 16, 40])(
  '%i files that wait are spread over the others, none is lost, and each kind keeps its order',
  (count) => {
    const waiting = Array.from({ length: count }, (_, at) => `waiting ${at}`)
    const all = spread(waiting, others)
    expect(all.filter((name) => name.startsWith('together'))).toEqual(others)
    expect(all.filter((name) => name.startsWith('waiting'))).toEqual(waiting)
  },
)

test('they begin early, and end before the shortest files', () => {
  const all = spread(['a', 'b', 'c', 'd'], others)
  const places = ['a', 'b', 'c', 'd'].map((name) => all.indexOf(name))
  expect(places).toEqual([0, 5, 10, 15])
})

test('without any others they are all', () => {
  expect(spread(['a', 'b'], [])).toEqual(['a', 'b'])
})

test('the files that take longest come first, and the others keep their order', () => {
  const [first = '', second = ''] = longest
  const files = ['/p/test/unit/b.test.ts', `/p/${second}`, '/p/test/unit/a.test.ts', `/p/${first}`]
  const same = (path: string) => path
  expect(longestFirst(files, same)).toEqual([files[1], files[3], files[0], files[2]])
})

test('each of them is there', () => {
  expect(longest.filter((path) => !existsSync(join(home, path)))).toEqual([])
})
