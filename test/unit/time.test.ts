import { expect, test } from 'vitest'
import { formatTime, isTime } from '../../src/server/messages/format.ts'

test('a time is formatted as Date does it, over all that clients accept', () => {
  const day = 86_400_000
  const [first, last] = [-62_167_219_200_000, 253_402_300_799_999]
  const edges = [0, 1, -1, 999, day - 1, day, -day, -day - 1, first, last, 951_782_400_000, 1_709_164_799_999]
  const spread = Array.from({ length: 5000 }, (_, n) => first + Math.floor(((last - first) / 5000) * n) + n * 7919)
  const near = Array.from({ length: 5000 }, (_, n) => 1_795_458_715_813 + n * 61_007)
  for (const time of [...edges, ...spread, ...near, 1234.9, -1234.9, 0.5, -0.5])
    expect(formatTime(time)).toBe(new Date(time).toISOString())
})

test('a time that clients do not accept is none', () => {
  for (const time of [undefined, Number.NaN, Number.POSITIVE_INFINITY, -62_167_219_200_001, 253_402_300_800_000])
    expect(isTime(time)).toBe(false)
  expect([isTime(0), isTime(-62_167_219_200_000), isTime(253_402_300_799_999)]).toEqual([true, true, true])
})
