import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseLarge } from '../../src/client/large-json.ts'
import { formatJson, JsonError, parseJson } from '../../src/server/messages/json.ts'
import { volumeOf } from '../support/volume.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

describe('the strict JSON parser', () => {
  test('parses any valid JSON like JSON.parse', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('agrees with JSON.parse on the validity of JSON, except that it refuses keys that occur twice', () => {
    const text = fc
      .array(fc.constantFrom('{', '}', '[', ']', '"', ':', ',', 'a', '1', '\\', ' '))
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (source) => {
        let expected: unknown
        try {
          expected = JSON.parse(source)
        } catch {
          expect(() => parse(source)).toThrow(JsonError)
          return
        }
        try {
          expect(parse(source)).toEqual(expected)
        } catch (error) {
          expect(error).toEqual(new JsonError('An object in the message has the same key twice.'))
        }
      }),
      { numRuns: volumeOf(5000) },
    )
  })

  test.each([
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['an overlong form', Buffer.from([0x22, 0xc0, 0xae, 0x22])],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
    ['a comment', Buffer.from('{} // x')],
    ['two texts', Buffer.from('{}{}')],
    ['NaN', Buffer.from('[NaN]')],
    ['single quotes', Buffer.from("{'a':1}")],
    ['an empty text', Buffer.from('')],
    ['an open string', Buffer.from('"abc')],
    ['65 levels', Buffer.from('['.repeat(65) + ']'.repeat(65))],
    ['a great many levels', Buffer.from('['.repeat(500_000))],
    ['a member twice', Buffer.from('{"method":"a","x":1,"method":"b"}')],
    ['a member twice, once escaped', Buffer.from('{"method":1,"\\u006dethod":2}')],
    ['a member twice, further in', Buffer.from('{"a":[{"b":1},{"b":1,"c":{},"b":2}]}')],
  ])('refuses %s', (_, bytes) => {
    expect(() => parseJson(bytes)).toThrow(JsonError)
  })

  test('accepts 64 levels, equal names in different objects, and values that look like names', () => {
    expect(parse('['.repeat(64) + ']'.repeat(64))).toBeDefined()
    expect(parse('[{"a":"a"},{"a":["a","a"]}]')).toEqual([{ a: 'a' }, { a: ['a', 'a'] }])
    expect(parse('{"a\\\\":1,"a":2,"b\\"":{"a":3}}')).toEqual({ 'a\\': 1, a: 2, 'b"': { a: 3 } })
  })

  test('sets no prototype for a member with the name __proto__', () => {
    const value = parse('{"__proto__":{"polluted":true}}') as object
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})

describe('a formatted message', () => {
  test('is one line for every reader of lines', () => {
    const json = formatJson({ text: 'a\u2028b\u2029c\nd' })
    expect(json).not.toMatch(/[\n\u2028\u2029]/)
    expect(JSON.parse(json)).toEqual({ text: 'a\u2028b\u2029c\nd' })
  })

  test('is refused beyond the limit, which counts bytes', () => {
    expect(() => formatJson('ああああ', 10)).toThrow('larger than 10 bytes')
    expect(formatJson('aaaaaaaa', 10)).toBe('"aaaaaaaa"')
  })
})

describe('JSON of a server that is parsed in parts', () => {
  /** The same text in one part, and in as many as there can be. */
  const outcomes = (text: string) =>
    Promise.all(
      [async () => JSON.parse(text) as unknown, () => parseLarge(text, 1)].map((parsing) =>
        parsing().then(
          (value) => ({ text: JSON.stringify(value) }),
          () => 'no JSON',
        ),
      ),
    )

  test.each([
    '{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"a:[1,2]"},{"uri":"\\"],[\\\\"},3],"b":[],"c":{"d":[1]}}}',
    '[{"result":{"a":[1,2],"__proto__":[3],"b":"x"}},[[4,5],[]],6]',
    '{"a":{"b":[1,2],"b":[3]}}',
    '{"a":{"b":[1,]}}',
    '{"a":{"b":[,1]}}',
    '{"a":{"b":[ ,]}}',
    '{"a":{"b":[ ],"c":[1, ]}}',
    '{"a":{"b":[1,,2]}}',
    '{"a":{"b":[1,2}}}',
    '{"a":{"b":[1',
    '{"a":{"b":["1]}}',
    '{"a":{"b":[1]]}}',
    '{"a":{"b":[1]}} x',
    '"a"',
    '',
  ])('equals JSON that is parsed as a whole: %s', async (text) => {
    const [whole, inParts] = await outcomes(text)
    expect(inParts).toEqual(whole)
  })

  test('equals JSON that is parsed as a whole, for any value', async () => {
    const value = fc.jsonValue({ maxDepth: 6 }).map((json) => JSON.stringify({ result: { list: [json, json], json } }))
    const pieces = fc
      .array(fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '"a":', '1', '\\', ' '))
      .map((parts) => `{"a":{"b":[${parts.join('')}]}}`)
    await fc.assert(
      fc.asyncProperty(fc.oneof(value, pieces), async (text) => {
        const [whole, inParts] = await outcomes(text)
        expect(inParts).toEqual(whole)
      }),
      { numRuns: volumeOf(2000, 500) },
    )
  })
})
