import { describe, expect, it } from 'vitest'
import { firstIndex } from '../../src/core/kit/sorted.ts'

describe('firstIndex', () => {
  const numbers = [1, 3, 3, 3, 7]
  const from = (low: number, high: number, least: number) =>
    firstIndex(low, high, (index) => (numbers[index] ?? 0) >= least)

  it('finds the first index for which the test holds', () => {
    expect([0, 1, 2, 3, 4, 7].map((least) => from(0, numbers.length, least))).toEqual([0, 0, 1, 1, 4, 4])
  })

  it('returns the end of the range if the test holds for none', () => {
    expect(from(0, numbers.length, 8)).toBe(5)
    expect(from(0, 3, 7)).toBe(3)
    expect(from(0, 0, 1)).toBe(0)
  })

  it('searches the range only', () => {
    expect(from(2, 4, 1)).toBe(2)
  })
})
