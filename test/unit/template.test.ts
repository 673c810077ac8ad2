import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { compileTemplate, type MatchedValue, type TemplateValue } from '../../src/core/template.ts'
import { parseTemplate, type Variable } from '../../src/core/template-parts.ts'
import { volumeOf } from '../support/volume.ts'

interface Vector {
  readonly template: string
  /** Any of them. None: the template, or its expansion, is an error. */
  readonly expansions: readonly string[]
  readonly values: Readonly<Record<string, TemplateValue>>
}

function vectorsIn(file: string): readonly Vector[] {
  const text = readFileSync(new URL(`../data/rfc6570/${file}.json`, import.meta.url), 'utf8')
  const groups: Record<string, { variables: Vector['values']; testcases: [string, string | string[] | false][] }> =
    JSON.parse(text)
  return Object.values(groups).flatMap(({ variables, testcases }) =>
    testcases.map(([template, expected]) => ({
      template,
      expansions: expected === false ? [] : [expected].flat(),
      values: variables,
    })),
  )
}

const positive = ['spec-examples', 'spec-examples-by-section', 'extended-tests'].flatMap(vectorsIn)
const negative = vectorsIn('negative-tests')

const match = (template: string, uri: string) => {
  const found = compileTemplate(template).match(uri)
  return found === undefined ? undefined : Object.fromEntries(found)
}

describe('expanding a URI template', () => {
  it('is tested with 234 valid and 36 invalid vectors of the official suite', () => {
    expect([positive.length, negative.length]).toEqual([234, 36])
  })

  it.each(positive)('expands $template as RFC 6570 has it', ({ template, values, expansions }) => {
    expect(expansions).toContain(compileTemplate(template).expand(values))
    expect(expansions).toContain(compileTemplate(template).expand(new Map(Object.entries(values))))
  })

  it.each(negative)('refuses $template', ({ template, values }) => {
    expect(() => compileTemplate(template).expand(values)).toThrow(
      expect.objectContaining({ name: 'ResourceError', kind: 'invalid' }),
    )
  })

  it('leaves out undefined members of lists and maps, and empty lists and maps', () => {
    const { expand } = compileTemplate('{?a,b,c*,d,e}')
    expect(expand({ a: [null, 1, undefined], b: [null], c: { x: true, y: null }, d: {}, e: false })).toBe(
      '?a=1&x=true&e=false',
    )
  })

  it('uses own properties of objects only', () => {
    expect(compileTemplate('{toString}{constructor}{__proto__}').expand({})).toBe('')
    expect(compileTemplate('{__proto__}').expand(new Map([['__proto__', 'x']]))).toBe('x')
  })

  it('gives a matched URI again', () => {
    const { expand, match } = compileTemplate('{/dir*}{.type}{?q,tags,rest*}')
    const uri = '/a%2Fb/c.tar?q=x&tags=1,2&k=v&l=%26'
    expect(expand(match(uri) ?? new Map())).toBe(uri)
  })

  it('leaves brackets unescaped in reserved expansion only', () => {
    expect(compileTemplate('{+a}{b}').expand({ a: 'http://[::1]/', b: '[' })).toBe('http://[::1]/%5B')
  })

  it('refuses a lone surrogate in a value', () => {
    for (const template of ['{a}', '{+a}', '{?a*}'])
      expect(() => compileTemplate(template).expand({ a: ['\ud800'] })).toThrow(/lone surrogate/)
  })
})

describe('compiling a URI template', () => {
  it('gives the variables in order, each once, as they are written', () => {
    expect(compileTemplate('{b}/{a:3,b*}{?Stra%C3%9Fe,last.name}').variables).toEqual([
      'b',
      'a',
      'Stra%C3%9Fe',
      'last.name',
    ])
  })

  it('gives the text before the first expression', () => {
    expect(compileTemplate('docs/été/{a}/x').literalPrefix).toBe('docs/été/')
    expect(compileTemplate('{a}/x').literalPrefix).toBe('')
    expect(compileTemplate('docs').literalPrefix).toBe('docs')
    expect(compileTemplate('').match('')).toEqual(new Map())
  })

  it.each([
    ['a b', '" " at character 2 must be percent-encoded'],
    ['a/100%/{b}', '"%" at character 6 must be percent-encoded'],
    ['a/{b', 'the "{" at character 3 has no "}"'],
    ['a/b}', '"}" at character 4 must be percent-encoded'],
    ['{a}\n', '"\\n" at character 4 must be percent-encoded'],
    ['{}', '{} is not an expression: "" is not a variable'],
    ['{a,}', '{a,} is not an expression: "" is not a variable'],
    ['{@a}', '{@a} is not an expression: "@a" is not a variable'],
    ['{a{b}}', '{a{b} is not an expression: "a{b" is not a variable'],
    ['{%FF}', '{%FF} is not an expression: "%FF" is not a variable'],
    ['%FF{a}', 'it holds percent-encoded triplets that are not UTF-8'],
    ['\ud800{a}', 'it holds a lone surrogate'],
  ])('explains the error in %j', (template, message) => {
    expect(() => compileTemplate(template)).toThrow(`The URI template is malformed (RFC 6570): ${message}.`)
  })
})

/** What `match` documents to give back for a value that was expanded by a variable of an operator. */
function readBack(symbol: string, { explode, limit }: Variable, value: string | string[] | Map<string, string>) {
  const reserved = symbol === '+' || symbol === '#'
  if (typeof value === 'string') {
    const text = Array.from(reserved ? decodeTriplets(value) : value)
      .slice(0, limit)
      .join('')
    return explode ? [text] : text
  }
  const named = ';?&'.includes(symbol) && symbol !== ''
  if (explode && named) return value
  const members = Array.isArray(value)
    ? value
    : Array.from(value, ([key, member]) => (explode ? [`${key}=${member}`] : [key, member])).flat()
  if (!explode && reserved) return decodeTriplets(members.join(','))
  return members
}

function decodeTriplets(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, decodeURIComponent)
}

function definedAs(value: TemplateValue): string | string[] | Map<string, string> | undefined {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'object') return String(value)
  const pairs = Object.entries(value)
  if (pairs.length === 0) return undefined
  return Array.isArray(value) ? (value as string[]) : new Map(pairs as [string, string][])
}

describe('matching an expanded URI template', () => {
  /** Expansion cannot be undone here: the same URI has another, simpler reading. */
  const otherReadings: Readonly<Record<string, Record<string, MatchedValue>>> = {
    // An undefined value leaves the same nothing as an empty one, and the next variable moves up.
    'O{undef}X': { undef: '' },
    'O{+undef}X': { undef: '' },
    '?{undef,y}': { undef: '768' },
    // Nothing delimits the two.
    'up{+path}{var}/here': { path: '/foo/barvalue', var: '' },
    // The comma is a value, and stands raw.
    '{+keys*}': { keys: ['semi=;', 'dot=.', 'comma=', ''] },
    '{#keys*}': { keys: ['semi=;', 'dot=.', 'comma=', ''] },
  }

  it.each(positive)(
    'gives back the values of $template, or a simpler reading of the same URI',
    ({ template, values }) => {
      const expected = new Map<string, unknown>()
      const limits = new Map<string, number>()
      for (const part of parseTemplate(template)) {
        if (typeof part === 'string') continue
        for (const variable of part.variables) {
          const value = definedAs(values[variable.name])
          if (value === undefined || (limits.get(variable.name) ?? 0) >= variable.limit) continue
          limits.set(variable.name, variable.limit)
          expected.set(variable.name, readBack(part.operator.symbol, variable, value))
        }
      }
      const { expand, match } = compileTemplate(template)
      const other = otherReadings[template]
      expect(match(expand(values))).toEqual(other === undefined ? expected : new Map(Object.entries(other)))
    },
  )
})

describe('matching a URI with a template', () => {
  it('decodes exactly once, whatever the spelling', () => {
    expect(match('{a}', '%E3%81%82%252F%2f+%2B')).toEqual({ a: 'あ%2F/++' })
    expect(match('{name}', '[id].tsx')).toEqual({ name: '[id].tsx' })
    expect(match('{name}', '%5Bid%5D%2Etsx')).toEqual({ name: '[id].tsx' })
    expect(match('{+path}', '日本語/テスト 1@2.md')).toEqual({ path: '日本語/テスト 1@2.md' })
  })

  it('compares literals in any spelling, except delimiters', () => {
    expect(match('café/{a}', 'caf%c3%a9/x')).toEqual({ a: 'x' })
    expect(match('caf%C3%A9/{a}', 'café/x')).toEqual({ a: 'x' })
    expect(match('@scope/{a}', '%40scope/x')).toEqual({ a: 'x' })
    expect(match('docs/{a}', 'docs%2Fx')).toBeUndefined()
    expect(match('docs%2F{a}', 'docs/x')).toBeUndefined()
    expect(match('docs%2F{a}', 'docs%2fx')).toEqual({ a: 'x' })
    expect(match('docs%0A{a}', 'x')).toBeUndefined()
  })

  it.each(['%', '%4', '%zz', 'a%C3', '%C3%28', '%ED%A0%80', '%C0%AF', '\ud800', 'a\u0000', 'a%00', '\u2028', '%C2%85'])(
    'does not match %j, which is not well-formed text',
    (uri) => {
      for (const template of ['{a}', '{+a}', '{#a}']) expect(match(template, uri)).toBeUndefined()
      expect(match('{?a}', `?a=${uri}`)).toBeUndefined()
    },
  )

  it('keeps values within their part of the URI', () => {
    expect(match('{a}', 'x/y')).toBeUndefined()
    expect(match('{a}', 'x?y')).toBeUndefined()
    expect(match('{a}', 'x#y')).toBeUndefined()
    expect(match('{a}', 'x&y')).toEqual({ a: 'x&y' })
    expect(match('?q={a}', '?q=x&y=1')).toBeUndefined()
    expect(match('{+a}', 'x/y')).toEqual({ a: 'x/y' })
    expect(match('{+a}', 'x?y')).toBeUndefined()
    expect(match('?u={+a}', '?u=http://h/?x&y')).toEqual({ a: 'http://h/?x&y' })
    expect(match('x{#a}', 'x#y/z?w')).toEqual({ a: 'y/z?w' })
    expect(match('x{#a}', 'x#y#z')).toBeUndefined()
    expect(match('{a}{;v}', 'x;w=1')).toBeUndefined()
  })

  it('accepts query parameters in any order, each at most once, and no others', () => {
    const template = 'logs{?from,to}{&level}'
    expect(match(template, 'logs')).toEqual({})
    expect(match(template, 'logs?level=warn&from=1')).toEqual({ level: 'warn', from: '1' })
    expect(match(template, 'logs?to=a=b/c?d')).toEqual({ to: 'a=b/c?d' })
    expect(match(template, 'logs?to')).toEqual({ to: '' })
    expect(match(template, 'logs?%66rom=1')).toEqual({ from: '1' })
    for (const query of [
      '?',
      '?to?x=1',
      '?x=1',
      '?to=1&to=2',
      '?to=1&',
      '?&to=1',
      '?=1',
      '?to=1&x=1',
      '?to=1?x=1#',
      '?from%3D1',
    ])
      expect(match(template, `logs${query}`)).toBeUndefined()
  })

  it('accepts matrix parameters in any order, each at most once, and no others', () => {
    expect(match('map{;x,y}/z', 'map;y=2;x=1/z')).toEqual({ x: '1', y: '2' })
    expect(match('map{;x,y}/z', 'map/z')).toEqual({})
    expect(match('map{;x,y}/z', 'map;y/z')).toEqual({ y: '' })
    // An empty value has no equals sign, so the rest of the template follows the name directly.
    expect(match('a{;x}.{y}', 'a;x.b')).toEqual({ x: '', y: 'b' })
    expect(match('a{;x}.{y}', 'a;x=v.b')).toEqual({ x: 'v', y: 'b' })
    expect(match('a{;x,y}.txt', 'a;y;x.txt')).toEqual({ x: '', y: '' })
    expect(match('a{;x}=v', 'a;x=v')).toEqual({ x: '' })
    expect(match('a{;x}{&q}', 'a;x&q=')).toEqual({ x: '', q: '' })
    expect(match('a{;x}.txt', 'a;xx.txt')).toBeUndefined()
    for (const template of ['{;x}.{y}', '{;x}{&y}', '{;x,y}.z', '{;x}=v', '{;x};z', '{;x}{?y}', '{;x}{/y}'])
      for (const x of ['', 'a', undefined])
        for (const y of ['', 'b', undefined]) {
          const uri = compileTemplate(template).expand({ x, y })
          expect(compileTemplate(template).expand(compileTemplate(template).match(uri) ?? {}), uri).toBe(uri)
        }
    for (const uri of ['map;z=1/z', 'map;x=1;x=1/z', 'map;/z', 'map;x=1/y/z', 'map;x=1?/z'])
      expect(match('map{;x,y}/z', uri)).toBeUndefined()
  })

  it('reads exploded parameters as a list if they have its name, else as a map', () => {
    expect(match('{?q*}', '?q=1&q=2,3')).toEqual({ q: ['1', '2,3'] })
    expect(match('{?q*}', '?q=1')).toEqual({ q: ['1'] })
    expect(match('{?q*}', '?a=1&q=2&%26=')).toEqual({
      q: new Map([
        ['a', '1'],
        ['q', '2'],
        ['&', ''],
      ]),
    })
    for (const query of ['?a=1&a=2', '?=1', '?q=1&=2', '?a?b=1']) expect(match('{?q*}', query)).toBeUndefined()
    expect(match('{?a,q*}', '?x=1&a=2&__proto__=3')).toEqual({
      a: '2',
      q: new Map([
        ['x', '1'],
        ['__proto__', '3'],
      ]),
    })
    expect(match('{?p*,q*}', '?q=1&p=2&q=3')).toEqual({ p: ['2'], q: ['1', '3'] })
    expect(match('{?p*,q*}', '?x=1')).toBeUndefined()
  })

  it('reads a raw comma as the separator of a list, if the template allows one', () => {
    expect(match('{a}', 'x,y%2Cz')).toEqual({ a: ['x', 'y,z'] })
    expect(match('{?a}', '?a=x,y')).toEqual({ a: ['x', 'y'] })
    expect(match('{a:9}', 'x,y')).toEqual({ a: 'x,y' })
    expect(match('{+a}', 'x,y')).toEqual({ a: 'x,y' })
    expect(match('{a,b}', 'x,y,z')).toEqual({ a: 'x', b: ['y', 'z'] })
  })

  it('gives earlier variables the shortest possible values, and the last variable the rest', () => {
    expect(match('{name}.{type}', 'x.tar.gz')).toEqual({ name: 'x', type: 'tar.gz' })
    expect(match('{name}{.type}', 'x.tar.gz')).toEqual({ name: 'x', type: 'tar.gz' })
    expect(match('{+a}/{+b}', 'x/y/z')).toEqual({ a: 'x', b: 'y/z' })
    expect(match('{+a}/{b}', 'x/y/z')).toEqual({ a: 'x/y', b: 'z' })
    expect(match('{+a}/end', 'x/end/end')).toEqual({ a: 'x/end' })
    expect(match('{/dir*,file}', '/x/y/z')).toEqual({ dir: ['x', 'y'], file: 'z' })
    expect(match('{/dir*,file}', '/z')).toEqual({ file: 'z' })
    expect(match('{/a,b}', '/x')).toEqual({ a: 'x' })
    expect(match('{/a,b}', '/x/y/z')).toBeUndefined()
    expect(match('{.a,b}', '.x.y.z')).toEqual({ a: 'x', b: 'y.z' })
  })

  it('gives a variable without a delimiter before the next the longest possible value', () => {
    expect(match('repos{/owner,repo}{+path}', 'repos/o/r/src/a.ts')).toEqual({
      owner: 'o',
      repo: 'r',
      path: '/src/a.ts',
    })
    expect(match('{/seg*}{+rest}', '/x/y')).toEqual({ seg: ['x', 'y'], rest: '' })
    expect(match('{a}{b}', 'xy')).toEqual({ a: 'xy', b: '' })
    expect(match('{a:1}{b}', 'xy')).toEqual({ a: 'x', b: 'y' })
  })

  it('requires the same value for a variable that occurs twice', () => {
    expect(match('{a}/{a}', 'x/x')).toEqual({ a: 'x' })
    expect(match('{a}/{a}', 'x/y')).toBeUndefined()
    expect(match('{/a:2,a}', '/vä/väl')).toEqual({ a: 'väl' })
    expect(match('{/a:2,a}', '/va/other')).toBeUndefined()
    expect(match('{a}/{a*}', '1,2/1,2')).toEqual({ a: ['1', '2'] })
  })

  it('counts prefixes in code points', () => {
    expect(match('{a:2}', '𝄞%F0%9D%84%9E')).toEqual({ a: '𝄞𝄞' })
    expect(match('{a:2}', '𝄞𝄞𝄞')).toBeUndefined()
    expect(match('{?a:2}', '?a=xyz')).toBeUndefined()
  })

  it('finds a literal in the middle that overlaps itself', () => {
    expect(match('{+a}abab{+b}', 'xabaabab')).toEqual({ a: 'xaba', b: '' })
    expect(match('{+a}aab', 'aaaab')).toEqual({ a: 'aa' })
  })
})

const seconds = { numRuns: volumeOf(500) }
const text = fc.string({ unit: 'grapheme' }).filter((value) => !/\p{Cc}|[\u2028\u2029]/u.test(value))
const anyTemplate = fc
  .array(
    fc.oneof(
      fc.constantFrom('/', '.', '-', 'ab', '?', '#', '&', 'x=', '%2F', ',', ';'),
      fc
        .tuple(
          fc.constantFrom('', '+', '#', '.', '/', ';', '?', '&'),
          fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('', '*', ':2')), {
            minLength: 1,
            maxLength: 3,
          }),
        )
        .map(([operator, variables]) => `{${operator}${variables.map((variable) => variable.join('')).join(',')}}`),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))
const anyUri = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'ab/?#&=;,.%2F-x') }),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
)

describe('URI templates', () => {
  it('never throw on a match, for any template and URI', () => {
    fc.assert(
      fc.property(anyTemplate, anyUri, (template, uri) => {
        const compiled = compileTemplate(template)
        const found = compiled.match(uri)
        for (const name of found?.keys() ?? []) expect(compiled.variables).toContain(name)
      }),
      { numRuns: volumeOf(5000) },
    )
  })

  it('never throw anything but ResourceError on compiling', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}+#./;?&=,!@|*:10a_%41 é\ud800') }), (template) => {
        try {
          compileTemplate(template)
        } catch (error) {
          expect(isResourceError(error, 'invalid')).toBe(true)
        }
      }),
      { numRuns: volumeOf(5000) },
    )
  })

  it('expand and match a text without a change: {a}, {+path}, {.a}', () => {
    fc.assert(
      fc.property(text, (a) => {
        expect(match('{a}', compileTemplate('{a}').expand({ a }))).toEqual({ a })
        expect(match('x{.a}y', compileTemplate('x{.a}y').expand({ a }))).toEqual({ a })
      }),
      seconds,
    )
    fc.assert(
      // A reserved expansion leaves these as they are, so what they were is lost.
      fc.property(
        text.filter((path) => !/[?#]|%[0-9A-Fa-f]{2}/.test(path)),
        (path) => {
          expect(match('{+path}', compileTemplate('{+path}').expand({ path }))).toEqual({ path })
        },
      ),
      seconds,
    )
  })

  it('expand and match parameters without a change: {?x,y}', () => {
    fc.assert(
      fc.property(fc.record({ x: text, y: text }, { requiredKeys: [] }), (values) => {
        expect(match('{?x,y}', compileTemplate('{?x,y}').expand(values))).toEqual(values)
        expect(match('a{;y,x}/', compileTemplate('a{;x,y}/').expand(values))).toEqual(values)
      }),
      seconds,
    )
  })

  it('expand and match a list without a change: {/seg*}, {?q*}', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1 }), (seg) => {
        expect(match('{/seg*}', compileTemplate('{/seg*}').expand({ seg }))).toEqual({ seg })
        expect(match('{?seg*}', compileTemplate('{?seg*}').expand({ seg }))).toEqual({ seg })
      }),
      seconds,
    )
  })

  it('expand and match a map without a change: {?q*}', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(text, text), { selector: ([key]) => key, minLength: 1 }).map((pairs) => new Map(pairs)),
        (map) => {
          // Parameters that are all called q are a list, and a name is never empty.
          fc.pre(!map.has('') && [...map.keys()].some((key) => key !== 'q'))
          expect(match('{?q*}', compileTemplate('{?q*}').expand({ q: map }))).toEqual({ q: map })
        },
      ),
      seconds,
    )
  })

  it('match the same values as a backtracking regular expression', () => {
    interface Piece {
      readonly template: string
      readonly pattern: (open: boolean) => string
      readonly names: number
      readonly undelimited?: true
    }
    const value = (open: boolean, characters: string) => `([${characters}]*${open ? '' : '?'})`
    const segment = '^/?#'
    const literals = ['/', '.', '-', 'a', 'aa', '/a'].map(
      (literal): Piece => ({ template: literal, pattern: () => literal.replaceAll('.', '\\.'), names: 0 }),
    )
    const pieces: readonly Piece[] = [
      ...literals,
      { template: '{N}', pattern: (open) => value(open, segment), names: 1, undelimited: true },
      { template: '{+N}', pattern: (open) => value(open, '^?#'), names: 1, undelimited: true },
      { template: '{/N}', pattern: (open) => `(?:/${value(open, segment)})?`, names: 1 },
      { template: '{.N}', pattern: (open) => `(?:\\.${value(open, segment)})?`, names: 1 },
      {
        template: '{/N,N}',
        pattern: (open) => `(?:/${value(open, segment)}(?:/${value(open, segment)})?)?`,
        names: 2,
      },
      { template: '{/N*}', pattern: (open) => `(?:/${value(open, '^?#')})?${open ? '' : '?'}`, names: 1 },
    ]
    const templates = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 5 })
    const uris = fc.string({ unit: fc.constantFrom(...'aa/.-?'), maxLength: 10 })
    let matches = 0
    fc.assert(
      fc.property(templates, uris, (sequence, uri) => {
        let count = 0
        const template = sequence.map((piece) => piece.template.replace(/N/g, () => `v${count++}`)).join('')
        const pattern = sequence.map((piece, at) => piece.pattern(sequence[at + 1]?.undelimited === true)).join('')
        const expected = new RegExp(`^${pattern}$`).exec(uri)
        const found = compileTemplate(template).match(uri)
        const texts = Array.from({ length: count }, (_, index) => {
          const read = found?.get(`v${index}`)
          return Array.isArray(read) ? read.join('/') : read
        })
        expect(found === undefined ? null : texts).toEqual(expected === null ? null : expected.slice(1))
        if (expected !== null) matches++
      }),
      { numRuns: 20_000 },
    )
    expect(matches).toBeGreaterThan(1000)
  })
})
