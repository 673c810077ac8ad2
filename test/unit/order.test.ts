import { expect, test } from 'vitest'
import { spread } from '../support/order.ts'

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
