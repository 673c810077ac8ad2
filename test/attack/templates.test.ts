import { describe, expect, it } from 'vitest'
import { compileTemplate, flattenTemplate } from '../../src/core/template.ts'
import { matchUnits } from '../../src/core/template-match.ts'
import { parseTemplate, toUnits } from '../../src/core/template-parts.ts'

// TM06 (one URI, two templates, different access) is not about templates: access is by path, in the catalog alone, and a
// template never decides what a URI is. TM03, TM05 and TM09 to TM14 are tested where values and completions are used.

/** How often a match looks at a character of the URI. */
function looks(template: string, uri: string): number {
  const parts = flattenTemplate(parseTemplate(template))
  let count = 0
  const units = new Proxy(Array.from(toUnits(uri) ?? []), {
    get: (target, key) => {
      if (key !== 'length') count++
      return Reflect.get(target, key)
    },
  })
  matchUnits(parts, units)
  return count
}

/** Asserts that a match looks at no character more than a few times per variable, and grows no faster than the URI. */
function expectLinear(template: string, uriOf: (length: number) => string): void {
  const { variables } = compileTemplate(template)
  const [short, long] = [uriOf(4000), uriOf(8000)]
  expect(looks(template, long)).toBeLessThanOrEqual(8 * (variables.length + 1) * long.length)
  expect(looks(template, long)).toBeLessThanOrEqual(2.1 * looks(template, short) + 100)
}

const fill = (unit: string, length: number, end = '') => unit.repeat((length - end.length) / unit.length) + end

describe('hostile URIs, values and templates:', () => {
  it.each([
    ['{+a}/{+b}/{+c}', 'abcd/', ''],
    ['{+a}/{+b}/{+c}', 'abcd/', '#'],
    ['{+a}/{+b}/{+c}/end', '/', ''],
    ['{+a}{+b}{+c}{+d}', 'a', ''],
    ['{+a}{+b}{+c}{+d}', 'a', '#'],
    ['{a}{b}{c}{d}{e}', 'a', ''],
    ['{a}{b}{c}{d}{e}', 'a', '/'],
    ['{+a}aaaaaaaaaaaaaaaab{+b}', 'a', ''],
  ])('%s against thousands of %j, then %j, is matched in linear time (TM01)', (template, unit, end) => {
    expectLinear(template, (length) => fill(unit, length, end))
  })

  it('a template of a hundred variables is matched in linear time (TM01)', () => {
    const variables = Array.from({ length: 100 }, (_, index) => `v${index}`)
    expectLinear(variables.map((name) => `{+${name}}`).join('/'), (length) => fill('/', length))
    expectLinear(variables.map((name) => `{+${name}:4000}`).join(''), (length) => fill('a', length, '#'))
    expectLinear(`{+${variables.join(',')}}`, (length) => fill(',', length))
    expectLinear(`{?${variables.join(',')}}`, (length) => `?v1=${fill('&v1', length - 4)}`)
  })

  it.each([
    ['{/id*}', '', '/a,b', ''],
    ['{/id*}', '', '/', '?'],
    ['{/id*}{/x}{/y*}/end', '', '/', ''],
    ['{?tags*}', '?tags=', 'a,', ''],
    ['{?tags*}', '?tags=', ',', '#'],
    ['{?tags*}', '?tags', '&tags', ''],
    ['{?tags*}', '?tags', '&tags', '#'],
    ['{?tags*,a,b,c}', '?x=', '&', ''],
    ['{+a}{&b*}', '&b=', '&b=', ''],
    ['{+a}{;b*}{;c}', '', ';', '#'],
    ['?{+a}{&b*}', '?', '&?', ''],
    ['{?b}', '?b', '?', ''],
    ['x{#a}{?b}', 'x#', '?', '#'],
    ['{+a}{&abcdefgh}', '', '&abcdefg', ''],
    ['{tags}', '', ',', '/'],
  ])('%s against %s%s… is matched in linear time (TM02)', (template, start, unit, end) => {
    expectLinear(template, (length) => start + fill(unit, length - start.length, end))
  })

  it('a URI of more than 8,192 characters is not matched (TM01)', () => {
    expect(compileTemplate('{a}').match('a'.repeat(8192))).toBeDefined()
    expect(compileTemplate('{a}').match('a'.repeat(8193))).toBeUndefined()
  })

  it('every value of {a,b} is percent-encoded (TM04)', () => {
    const { expand } = compileTemplate('docs/{a,b}')
    expect(expand({ a: '../..', b: 'x?y#z&w' })).toBe('docs/..%2F..,x%3Fy%23z%26w')
    expect(expand({ a: ['../', '%2F'], b: { '?': '\r\n' } })).toBe('docs/..%2F,%252F,%3F,%0D%0A')
  })

  it('a template that is malformed, or has more than 8,192 characters or 100 variables, is refused (TM07)', () => {
    const refused = (template: string) => () => compileTemplate(template)
    expect(refused('{a}'.repeat(10_000))).toThrow(/longer than 8192 characters/)
    expect(refused('a'.repeat(1_000_000))).toThrow(/longer than 8192 characters/)
    expect(refused('{'.repeat(8192))).toThrow(/malformed/)
    expect(refused('{a}'.repeat(101))).toThrow(/more than 100 variables/)
    expect(refused(`{${'a,'.repeat(100)}a}`)).toThrow(/more than 100 variables/)
    expect(refused('{a}'.repeat(100))).not.toThrow()
    expect(refused(`${'a'.repeat(8189)}{a}`)).not.toThrow()
  })

  it.each(['0000', '0009', '000a', '000d', '007f', '0085', '2028', '2029'])(
    'a value with U+%s does not match, raw or encoded (TM08)',
    (code) => {
      const character = String.fromCodePoint(Number.parseInt(code, 16))
      for (const spelling of [character, encodeURIComponent(character)]) {
        for (const [template, uri] of [
          ['{a}', 'x_y'],
          ['{+a}', 'x_y'],
          ['{#a}', '#x_y'],
          ['{.a*}', '.x_y'],
          ['{/a*}', '/x_y'],
          ['{;a}', ';a=x_y'],
          ['{?a}', '?a=x_y'],
          ['{?a*}', '?x_y=1'],
        ] as const) {
          const { match } = compileTemplate(template)
          expect(match(uri)).toBeDefined()
          expect(match(uri.replace('_', spelling))).toBeUndefined()
        }
      }
    },
  )

  it('a query or fragment does not become part of a value (TM08)', () => {
    for (const template of ['{a}', '{+a}', '{/a}', '{.a}', '{a}{?y}', 'id{;a}'])
      for (const uri of ['id?x=1#f', '/id?x=1', '.id#f', 'id;a=1?x=1', 'id#', 'id?'])
        expect(compileTemplate(template).match(uri)).toBeUndefined()
  })
})
