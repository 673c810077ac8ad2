import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createScrubber } from '../../src/core/scrub.ts'
import { formsOf } from '../attack/harness/canary.ts'
import { volumeOf } from '../support/volume.ts'

const secret = 'p@ss/w+rd "77" ünï&co'
const { scrub, scrubBytes } = createScrubber([secret, 'tok-1234567'])

describe('a scrubber', () => {
  test('replaces every known value by the same mark, whatever its length', () => {
    expect(scrub(`a ${secret} b tok-1234567 c`)).toBe('a [redacted] b [redacted] c')
    expect(scrub('nothing of that')).toBe('nothing of that')
  })

  // Canaries are looked for in upper case as well, which no program writes.
  const forms = formsOf('Hunter2-/+x.98765').filter(({ form }) => form !== 'upper case')

  test.each(forms.map(({ form, bytes }) => [form, bytes] as const))(
    'removes a value that is written in the form "%s"',
    (form, bytes) => {
      const scrubber = createScrubber(['Hunter2-/+x.98765'])
      const around = Buffer.concat([Buffer.from('"x '), Uint8Array.from(bytes), Buffer.from(' y"')])
      expect(Buffer.from(scrubber.scrubBytes(around)).includes(bytes)).toBe(false)
      if (!form.startsWith('UTF-16') || form.includes('JSON'))
        expect(scrubber.scrub(around.toString()).includes(bytes.toString())).toBe(false)
    },
  )

  test('replaces a value in JSON, XML and a query', () => {
    expect(scrub(JSON.stringify({ value: secret }))).toBe('{"value":"[redacted]"}')
    expect(scrub(JSON.stringify(JSON.stringify({ value: secret })))).toBe(JSON.stringify('{"value":"[redacted]"}'))
    expect(scrub(`?a=${encodeURIComponent(secret)}&b=1`)).toBe('?a=[redacted]&b=1')
    expect(scrub(`?a=${new URLSearchParams({ secret }).toString().slice(7)}`)).not.toContain('w%2Brd')
    expect(scrub('<a b="p@ss/w+rd &quot;77&quot; ünï&amp;co">')).toBe('<a b="[redacted]">')
  })

  test('replaces a value in Markdown, where its punctuation is escaped', () => {
    const { scrub: own } = createScrubber(['tulip_horse*9#(x)!'])
    for (const text of ['tulip\\_horse\\*9#(x)!', 'tulip\\_horse\\*9\\#(x)!', 'tulip\\_horse\\*9\\#\\(x\\)\\!'])
      expect(own(`a ${text} b`)).toBe('a [redacted] b')
  })

  test('replaces the password of a known URL, and the lines of a known key', () => {
    const line = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ'
    const { scrub: own } = createScrubber([
      'postgres://app:p%40ssword@db/x',
      `-----BEGIN-----\n${line}\n-----END-----\n`,
    ])
    expect(own('p%40ssword or p@ssword')).toBe('[redacted] or [redacted]')
    expect(own(`  ${line}\r\n`)).toBe('  [redacted]\r\n')
  })

  test('ignores values of less than six characters', () => {
    expect(createScrubber(['abcde', '']).scrub('abcdefgh')).toBe('abcdefgh')
  })

  test('treats values that overlap or touch as one', () => {
    const { scrub: own } = createScrubber(['abcdef', 'defghi', 'jklmno'])
    expect(own('xabcdefghijklmnoz')).toBe('x[redacted]z')
  })

  test('replaces the longest of values with the same beginning, and values within others', () => {
    const { scrub: own } = createScrubber(['abcdef', 'abcdefgh', 'cdefghij'])
    expect(own('abcdefgh-cdefghij-abcdef')).toBe('[redacted]-[redacted]-[redacted]')
  })

  test('leaves JSON valid when it is scrubbed as a whole', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: 'grapheme' }), fc.jsonValue(), (value, json) => {
        const text = JSON.stringify({ json, value })
        const clean = createScrubber([`${value}0123456`]).scrub(
          text.replace(JSON.stringify(value), () => JSON.stringify(`${value}0123456`)),
        )
        expect(() => JSON.parse(clean)).not.toThrow()
      }),
    )
  })

  test('replaces a value across two pieces that come in the same buffer', () => {
    const stream = createScrubber(['abcdefgh']).stream()
    const buffer = Buffer.alloc(6)
    const given: string[] = []
    for (const piece of ['xxabcd', 'efghyy', 'zzzzzz']) {
      buffer.write(piece)
      given.push(Buffer.concat(stream.push(buffer)).toString())
    }
    given.push(Buffer.from(stream.end()).toString())
    expect(given.join('')).toBe('xx[redacted]yyzzzzzz')
  })

  test('gives the same for a stream as for the whole, wherever it is split', () => {
    const values = fc.array(fc.string({ minLength: 6, maxLength: 12, unit: fc.constantFrom('a', 'b', 'c') }), {
      minLength: 1,
      maxLength: 4,
    })
    const text = fc
      // Pieces that are longer than any form of a value are not scanned as a whole if they hold none.
      .array(fc.constantFrom('a', 'b', 'c', 'aab', 'YWFh', 'x'.repeat(90)), { maxLength: 60 })
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(
        values,
        text,
        fc.array(fc.oneof(fc.nat(7), fc.nat(300)), { maxLength: 40 }),
        (secrets, input, cuts) => {
          const scrubber = createScrubber(secrets)
          const whole = Buffer.from(scrubber.scrubBytes(Buffer.from(input))).toString()
          const stream = scrubber.stream()
          const pieces: Uint8Array[] = []
          let at = 0
          for (const cut of cuts) {
            pieces.push(...stream.push(Buffer.from(input.slice(at, at + cut))))
            at += cut
          }
          pieces.push(...stream.push(Buffer.from(input.slice(at))), stream.end())
          expect(Buffer.concat(pieces).toString()).toBe(whole)
          expect(scrubber.scrub(input)).toBe(whole)
          for (const value of secrets) expect(whole).not.toContain(value)
        },
      ),
      { numRuns: volumeOf(500) },
    )
  })

  test('takes linear time, also for values and text with much repetition', () => {
    const long = 'a'.repeat(400)
    const { scrub: own } = createScrubber([`${long}b`, `b${long}`, `${long}ab`])
    const text = 'a'.repeat(200_000)
    // Quadratic work would not end in the time that a test has.
    expect(own(text)).toBe(text)
    expect(own(`${text}b`)).toBe(`${text.slice(401)}[redacted]`)
  })

  test('returns bytes without secrets unchanged', () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251)
    expect(scrubBytes(bytes)).toBe(bytes)
  })
})
