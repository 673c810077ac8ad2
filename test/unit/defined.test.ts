import { expect, expectTypeOf, test } from 'vitest'
import { defined } from '../../src/core/kit/object.ts'

test('undefined members of an object are left out, and every other value is kept', () => {
  const given: { a: string | undefined; b: number; c: null; d: string | undefined; e: boolean } = {
    ...{ a: undefined, b: 0, c: null, d: '', e: false },
  }
  const kept = defined(given)
  expect(kept).toEqual({ b: 0, c: null, d: '', e: false })
  expect(Object.keys(kept)).toEqual(['b', 'c', 'd', 'e'])
  expectTypeOf(kept.b).toEqualTypeOf<number>()
  // With exactOptionalPropertyTypes, this would not compile if `a` could be undefined.
  const options: { readonly a?: string; readonly b: number } = { ...kept }
  expect(options).not.toHaveProperty('a')
})
