import { expect, test } from 'vitest'
import { builtPage, firstLoad, mostAtFirst, pageSizes } from '../../scripts/page-size.ts'

test('the first load of the explorer is under 100 kB compressed, and the page has no source maps', () => {
  const sizes = pageSizes(builtPage)
  const first = sizes.filter((size) => size.first)
  expect(first.map(({ name }) => name)).toContain('index.html')
  expect(first.filter(({ name }) => name.endsWith('.js')).length).toBeGreaterThan(0)
  expect(firstLoad(sizes)).toBeLessThan(mostAtFirst)
  expect(firstLoad(sizes)).toBeGreaterThan(10_000)
  // Nothing is built into the page twice, and nothing that it does not run: no source maps.
  expect(sizes.filter(({ name }) => name.endsWith('.map'))).toEqual([])
})
