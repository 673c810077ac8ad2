import { expect, test } from 'vitest'
import { deepNestingIn } from '../../src/text/front-matter.ts'

test.each([
  ['brackets', `a: ${'['.repeat(201)}`],
  ['braces and brackets in turn', '[{a: '.repeat(101)],
  ['lists that begin on one line', `a:\n  ${'- '.repeat(201)}b`],
  ['keys that begin on one line', `${'? '.repeat(100_000)}b`],
])('YAML is refused as nested too deeply: %s', (_, text) => {
  expect(deepNestingIn(text, 200)).toBeTypeOf('number')
})

test.each([
  ['brackets that are closed', `a: ${'[]'.repeat(10_000)}`],
  ['brackets up to the limit', `a: ${'['.repeat(200)}${']'.repeat(200)}`],
  ['lists one under the other', '- a\n'.repeat(10_000)],
  ['dashes within a text', `a: ${'- '.repeat(1000)}`],
  ['nothing', ''],
])('YAML is accepted within the limit of nesting: %s', (_, text) => {
  expect(deepNestingIn(text, 200)).toBeUndefined()
})
