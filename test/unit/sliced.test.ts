import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Content } from '../../src/core/provider.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { contentOf, factsOf, read, refusal, shapes, source } from '../support/sources.ts'
import { volumeOf } from '../support/volume.ts'

describe.each(shapes)('lines of a source of %s', (shape) => {
  const isText = shape === 'text' || shape === 'ranges of text'
  const text = 'one\ntwo\r\nthrée 𠮷\n\nfive'

  test.each<[string, string, Record<string, unknown>]>([
    ['1', 'one\n', { first: 1, last: 1, next: 'lines=2-2' }],
    ['2-3', 'two\r\nthrée 𠮷\n', { first: 2, last: 3, next: 'lines=4-5' }],
    ['4-', '\nfive', { first: 4, last: 5, lines: 5 }],
    ['5', 'five', { first: 5, last: 5, lines: 5 }],
    ['1-5', text, { first: 1, last: 5, lines: 5 }],
    ['4-400', '\nfive', { first: 4, last: 5, lines: 5 }],
  ])(
    'in the range %s are exactly those of the text, with the next range unless the text ends',
    async (lines, wanted, facts) => {
      const content = await read(sliced(source(shape, text)), { lines })
      expect(contentOf(content)).toBe(wanted)
      const size =
        shape === 'ranges without a size' && facts.lines === undefined ? {} : { size: Buffer.byteLength(text) }
      expect(factsOf(content)).toEqual({ unit: 'lines', ...size, ...facts })
      expect(content).toMatchObject({ mimeType: 'text/plain', version: '1' })
    },
  )

  test('beyond the end are refused with the number of lines, and those of an empty text are empty', async () => {
    expect(await refusal(sliced(source(shape, 'a\nb\n')), { lines: '3' })).toMatch(
      /^invalid range: .*which has 2 lines\./,
    )
    const empty = await read(sliced(source(shape, '')), { lines: '1-100' })
    expect(contentOf(empty)).toBe('')
    expect(factsOf(empty)).toMatchObject({ first: 1, last: 0, lines: 0 })
  })

  test.skipIf(isText)('of binary contents are refused, with a request for bytes instead', async () => {
    const binary = new Uint8Array([0xff, 0, 0x0a, 1])
    for (const type of ['application/octet-stream', 'text/plain'])
      expect(await refusal(sliced(source(shape, binary, type)), { lines: '1' })).toMatch(/^invalid range: .*\?bytes=0-/)
  })

  test('continue by `next` to the end, for any text and limit', async () => {
    const line = fc
      .array(fc.constantFrom('a', 'é', 'あ', '𠮷', '\r', ' '), { maxLength: 12 })
      .map((parts) => parts.join(''))
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\n')),
        fc.integer({ min: 4, max: 40 }),
        fc.constantFrom('1-1', '1-3', '1-'),
        async (text, maxBytes, lines) => {
          const provider = sliced(source(shape, text), { maxBytes })
          let query: string | undefined = `lines=${lines}`
          let all = ''
          for (let steps = 0; query !== undefined; steps++) {
            expect(steps).toBeLessThan(200)
            const content: Content = await read(provider, Object.fromEntries([query.split('=')]))
            const part = contentOf(content)
            if (typeof part !== 'string') throw new Error('not text')
            expect(Buffer.byteLength(part)).toBeLessThanOrEqual(maxBytes)
            all += part
            query = factsOf(content).next as string | undefined
          }
          expect(all).toBe(text)
        },
      ),
      { numRuns: volumeOf(60, 20) },
    )
  })
})

describe.each(shapes)('bytes of a source of %s', (shape) => {
  const isText = shape === 'text' || shape === 'ranges of text'
  test.each<[string, string, Record<string, unknown>]>([
    ['0-0', 'a', { first: 0, last: 0, next: 'bytes=1-1' }],
    ['0-2', 'a', { first: 0, last: 0, next: 'bytes=1-3' }],
    ['1-3', 'あ', { first: 1, last: 3, next: 'bytes=4-6' }],
    ['2-7', '𠮷', { first: 4, last: 7, next: 'bytes=8-8' }],
    ['2-2', 'あ', { first: 1, last: 3, next: 'bytes=4-4' }],
    ['5-6', '𠮷', { first: 4, last: 7, next: 'bytes=8-8' }],
    ['4-', '𠮷b', { first: 4, last: 8 }],
    ['8', 'b', { first: 8, last: 8 }],
    ['0-1000', 'aあ𠮷b', { first: 0, last: 8 }],
  ])('are whole characters of a text: %s', async (bytes, wanted, facts) => {
    const content = await read(sliced(source(shape, 'aあ𠮷b')), { bytes })
    expect(contentOf(content)).toBe(wanted)
    const known = factsOf(content)
    // Where the size is not known, there may be more.
    if (shape !== 'ranges without a size' || 'size' in known)
      expect(known).toEqual({ unit: 'bytes', size: 9, ...facts })
    expect(content.range).toEqual({ start: facts.first, end: Number(facts.last) + 1 })
  })

  test.skipIf(isText)('are exact for binary contents', async () => {
    const bytes = Buffer.from([0xff, 0x81, 0x82, 0, 0xe3])
    for (const type of ['image/png', 'text/plain'])
      for (const [from, to] of [
        [0, 0],
        [1, 2],
        [1, 4],
        [4, 4],
      ] as const)
        expect(contentOf(await read(sliced(source(shape, bytes, type)), { bytes: `${from}-${to}` }))).toEqual(
          bytes.subarray(from, to + 1),
        )
  })

  test('beyond the end are refused with the size, and those of an empty content are empty', async () => {
    expect(await refusal(sliced(source(shape, 'abc')), { bytes: '3-' })).toMatch(
      /^invalid range: .*which has 3 bytes\./,
    )
    expect(await refusal(sliced(source(shape, 'abc')), { bytes: '999999-' })).toMatch(/^invalid range: .*after the end/)
    const empty = await read(sliced(source(shape, '')), { bytes: '0-99' })
    expect(contentOf(empty)).toBe('')
    expect(factsOf(empty)).toMatchObject({ first: 0, last: -1, size: 0 })
  })

  test('continue by `next` to the end, for any text, part and limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'é', 'あ', '𠮷', '\n'), { maxLength: 30 }).map((parts) => parts.join('')),
        fc.integer({ min: 1, max: 40 }),
        fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined }),
        async (text, maxBytes, last) => {
          const provider = sliced(source(shape, text), { maxBytes })
          let query: string | undefined = `bytes=0-${last ?? ''}`
          let all = ''
          for (let steps = 0; query !== undefined && all !== text; steps++) {
            expect(steps).toBeLessThan(400)
            const content: Content = await read(provider, Object.fromEntries([query.split('=')]))
            all += contentOf(content)
            query = factsOf(content).next as string | undefined
          }
          expect(all).toBe(text)
        },
      ),
      { numRuns: volumeOf(60, 20) },
    )
  })
})
