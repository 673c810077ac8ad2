import fc from 'fast-check'
import { expect, test } from 'vitest'
import { breakJsonIntoLines, isJsonObjectOrArray } from '../../src/wrap/spilled.ts'

test('JSON that is broken into lines has each member on its own line', () => {
  expect(breakJsonIntoLines('{"a":[1,{"b":"x, {y}: \\"z\\""}],"c":{},"d":[ ]}')).toBe(
    '{\n  "a": [\n    1,\n    {\n      "b": "x, {y}: \\"z\\""\n    }\n  ],\n  "c": {},\n  "d": [ ]\n}\n',
  )
})

test('JSON that is broken into lines keeps the digits of numbers', () => {
  expect(breakJsonIntoLines('{"id":12345678901234567890,"x":1.50,"y":-1e400}')).toBe(
    '{\n  "id": 12345678901234567890,\n  "x": 1.50,\n  "y": -1e400\n}\n',
  )
})

test('JSON that is broken into lines keeps every value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2, '\t'), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent)
      expect(JSON.parse(breakJsonIntoLines(text))).toEqual(JSON.parse(text))
    }),
  )
})

test('JSON of any depth that is broken into lines does not have quadratic length', () => {
  const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`
  expect(breakJsonIntoLines(deep).length).toBeLessThan(50 * deep.length)
})

test.each(['x'.repeat(10_000_000), '"'.repeat(2_000_000), '\\'.repeat(2_000_000)])(
  'JSON that is broken into lines keeps a string of any length (%#)',
  (body) => {
    expect(JSON.parse(breakJsonIntoLines(JSON.stringify([body])))[0] === body).toBe(true)
  },
)

test('only objects and arrays count as JSON documents', () => {
  expect([
    isJsonObjectOrArray('{}'),
    isJsonObjectOrArray(' [1]'),
    isJsonObjectOrArray('1'),
    isJsonObjectOrArray('{'),
    isJsonObjectOrArray('# A'),
  ]).toEqual([true, true, false, false, false])
})
