import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import { encodeJsonInPieces, formatJson, JsonError, parseJson } from '../../src/server/protocol/json.ts'
import { blobBytesOf } from '../../src/server/protocol/json-parts.ts'
import { volumeOf } from '../support/volume.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

describe('strict JSON', () => {
  test('is JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('agrees with JSON.parse on what is JSON at all', () => {
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
          expect(error).toEqual(new JsonError('The message names a member twice.'))
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
    ['nothing', Buffer.from('')],
    ['an open string', Buffer.from('"abc')],
    ['65 levels', Buffer.from('['.repeat(65) + ']'.repeat(65))],
    ['a great many levels', Buffer.from('['.repeat(500_000))],
    ['a member twice', Buffer.from('{"method":"a","x":1,"method":"b"}')],
    ['a member twice, once escaped', Buffer.from('{"method":1,"\\u006dethod":2}')],
    ['a member twice, further in', Buffer.from('{"a":[{"b":1},{"b":1,"c":{},"b":2}]}')],
  ])('refuses %s', (_, bytes) => {
    expect(() => parseJson(bytes)).toThrow(JsonError)
  })

  test('takes 64 levels, equal names in different objects, and values that look like names', () => {
    expect(parse('['.repeat(64) + ']'.repeat(64))).toBeDefined()
    expect(parse('[{"a":"a"},{"a":["a","a"]}]')).toEqual([{ a: 'a' }, { a: ['a', 'a'] }])
    expect(parse('{"a\\\\":1,"a":2,"b\\"":{"a":3}}')).toEqual({ 'a\\': 1, a: 2, 'b"': { a: 3 } })
  })

  test('leaves prototypes alone', () => {
    const value = parse('{"__proto__":{"polluted":true}}') as object
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})

describe('a formatted message', () => {
  test('is one line to every reader of lines', () => {
    const json = formatJson({ text: 'a\u2028b\u2029c\nd' })
    expect(json).not.toMatch(/[\n\u2028\u2029]/)
    expect(JSON.parse(json)).toEqual({ text: 'a\u2028b\u2029c\nd' })
  })

  test('is refused behind the limit, which counts bytes', () => {
    expect(() => formatJson('ああああ', 10)).toThrow('larger than 10 bytes')
    expect(formatJson('aaaaaaaa', 10)).toBe('"aaaaaaaa"')
  })
})

describe('JSON in pieces', () => {
  const inOne = async (message: unknown, limit?: number) => (await encodeJsonInPieces(message, limit)).toString()

  test('is the same as in one', async () => {
    const long = fc
      .tuple(
        fc.array(fc.constantFrom('a', '"', '\\', '\n', '\u2028', '\u0085', '𠮷', '\ud842', '\udfb7', '引')),
        fc.nat(3),
      )
      .map(([characters, shift]) => 'x'.repeat(shift) + characters.join('').repeat(300_000 / (characters.length + 1)))
    const content = fc.record({ uri: fc.string(), text: long }, { requiredKeys: ['uri'] })
    const message = fc.record({
      id: fc.integer(),
      result: fc.record({ contents: fc.array(content, { maxLength: 3 }) }),
    })
    await fc.assert(
      fc.asyncProperty(message, async (given) => {
        expect((await inOne(given)) === formatJson(given)).toBe(true)
      }),
      { numRuns: 20 },
    )
  })

  test('is the same with bytes in the place of their base64, whatever stands around them', async () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 100_000, size: 'max' }).map((bytes) => ({ bytes })),
      fc.constantFrom('x', '\u2028"', '引').map((text) => ({ text: text.repeat(200_000) })),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(body, { maxLength: 3 }), async (bodies) => {
        const messageWith = (blobOf: (bytes: Uint8Array) => unknown) => ({
          id: 1,
          result: {
            contents: bodies.map((one) => ('bytes' in one ? { uri: 'a:b', blob: blobOf(one.bytes) } : one)),
            _meta: { after: true },
          },
        })
        const plain = formatJson(messageWith((bytes) => Buffer.from(bytes).toString('base64')))
        expect((await inOne(messageWith(blobBytesOf))) === plain).toBe(true)
        expect(formatJson(messageWith(blobBytesOf)) === plain).toBe(true)
      }),
      { numRuns: 20 },
    )
    const long = { result: { contents: [{ blob: blobBytesOf(new Uint8Array(900_000)) }] } }
    await expect(encodeJsonInPieces(long, 1_000_000)).rejects.toMatchObject({ kind: 'too-large' })
    expect((await encodeJsonInPieces(long, 1_300_000)).length).toBe(JSON.stringify(long).length)
  })

  test('lets others have their turns meanwhile', async () => {
    let turns = 0
    let done = false
    const count = () => {
      turns++
      if (!done) setImmediate(count)
    }
    setImmediate(count)
    await encodeJsonInPieces({ text: 'y'.repeat(8 * 1024 * 1024) })
    done = true
    expect(turns).toBeGreaterThan(60)
  })

  test('is too large at the same length', async () => {
    const message = { text: '引'.repeat(200_000) }
    const { length } = Buffer.from(formatJson(message))
    expect(await inOne(message, length)).toHaveLength(200_000 + 11)
    await expect(inOne(message, length - 1)).rejects.toThrow(ResourceError)
    expect(() => formatJson(message, length - 1)).toThrow(ResourceError)
  })
})
