import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { invalid } from '../../src/core/errors.ts'
import type { Content, Provider, ReadRequest } from '../../src/core/provider.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { files } from '../../src/providers/files/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { contextOf, createFolder, type Folder, readOne } from '../support/folder.ts'

/** How a source can hold a resource. `reads` counts what it was asked for. */
type Shape = 'text' | 'bytes' | 'stream' | 'ranges of bytes' | 'ranges of text' | 'ranges without a size'
const shapes: readonly Shape[] = [
  'text',
  'bytes',
  'stream',
  'ranges of bytes',
  'ranges of text',
  'ranges without a size',
]

interface Source extends Provider {
  bytes: Buffer
  version: string
  reads: ReadRequest[]
}

function source(shape: Shape, content: string | Uint8Array, mimeType = 'text/plain'): Source {
  const answer = (self: Source, { range }: ReadRequest): Content => {
    const { bytes, version } = self
    const facts = { mimeType, version }
    if (shape === 'text') return { ...facts, text: bytes.toString() }
    if (shape === 'bytes') return { ...facts, bytes }
    if (shape === 'stream') return { ...facts, stream: pieces(bytes), length: bytes.length }
    const [start, end] = [range?.start ?? 0, Math.min(range?.end ?? bytes.length, bytes.length)]
    const part = bytes.subarray(start, end)
    const size = shape === 'ranges without a size' ? {} : { size: bytes.length }
    if (shape !== 'ranges of text') return { ...facts, ...size, range: { start, end }, bytes: part }
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      part.subarray(part.findIndex((byte) => (byte & 0xc0) !== 0x80)),
      { stream: true },
    )
    const from =
      start +
      Math.max(
        0,
        part.findIndex((byte) => (byte & 0xc0) !== 0x80),
      )
    return { ...facts, ...size, range: { start: from, end: from + Buffer.byteLength(text) }, text }
  }
  const self: Source = {
    bytes: Buffer.from(content),
    version: '1',
    reads: [],
    list: async function* () {},
    read: async (request) => {
      self.reads.push(request)
      return [answer(self, request)]
    },
  }
  return self
}

async function* pieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 5) yield bytes.subarray(at, at + 5)
}

const read = (provider: Provider, params: Record<string, string>) => readOne(provider, 'a', { params })
const factsOf = (content: Content) => content.meta?.['dev.hikidashi/part'] as Record<string, unknown>
const contentOf = (content: Content) =>
  'text' in content ? content.text : 'bytes' in content ? Buffer.from(content.bytes) : undefined
const refusal = (provider: Provider, params: Record<string, string>) =>
  read(provider, params).then(
    () => 'answered',
    (error: { kind: string; detail: { reason?: string }; message: string }) =>
      `${error.kind} ${error.detail.reason}: ${error.message}`,
  )

const opened: { folder: Folder; provider: Provider }[] = []
afterEach(async () => {
  for (const { folder, provider } of opened.splice(0)) {
    await provider.close?.()
    folder.remove()
  }
})

describe.each(shapes)('lines of a source of %s', (shape) => {
  const text = 'one\ntwo\r\nthrée 𠮷\n\nfive'

  test.each<[string, string, Record<string, unknown>]>([
    ['1', 'one\n', { first: 1, last: 1, next: 'lines=2-2' }],
    ['2-3', 'two\r\nthrée 𠮷\n', { first: 2, last: 3, next: 'lines=4-5' }],
    ['4-', '\nfive', { first: 4, last: 5, lines: 5 }],
    ['5', 'five', { first: 5, last: 5, lines: 5 }],
    ['1-5', text, { first: 1, last: 5, lines: 5 }],
    ['4-400', '\nfive', { first: 4, last: 5, lines: 5 }],
  ])('%s', async (lines, wanted, facts) => {
    const content = await read(sliced(source(shape, text)), { lines })
    expect(contentOf(content)).toBe(wanted)
    const size = shape === 'ranges without a size' && facts.lines === undefined ? {} : { size: Buffer.byteLength(text) }
    expect(factsOf(content)).toEqual({ unit: 'lines', ...size, ...facts })
    expect(content).toMatchObject({ mimeType: 'text/plain', version: '1' })
  })

  test('behind the end are refused with their number, and those of an empty text are none', async () => {
    expect(await refusal(sliced(source(shape, 'a\nb\n')), { lines: '3' })).toMatch(
      /^invalid range: .*there are 2 lines/,
    )
    const empty = await read(sliced(source(shape, '')), { lines: '1-100' })
    expect(contentOf(empty)).toBe('')
    expect(factsOf(empty)).toMatchObject({ first: 1, last: 0, lines: 0 })
  })

  test('of what is not text are refused, with what to ask for instead', async () => {
    if (shape === 'text' || shape === 'ranges of text') return
    const binary = new Uint8Array([0xff, 0, 0x0a, 1])
    for (const type of ['application/octet-stream', 'text/plain'])
      expect(await refusal(sliced(source(shape, binary, type)), { lines: '1' })).toMatch(/^invalid range: .*\?bytes=0-/)
  })

  test('follow one another by `next` to the end, whatever the text and the limit', async () => {
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
      { numRuns: 60 },
    )
  })
})

describe.each(shapes)('bytes of a source of %s', (shape) => {
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
  ])('%s are whole characters of a text', async (bytes, wanted, facts) => {
    const content = await read(sliced(source(shape, 'aあ𠮷b')), { bytes })
    expect(contentOf(content)).toBe(wanted)
    const known = factsOf(content)
    // Where the size is not known, there may be more.
    if (shape !== 'ranges without a size' || 'size' in known)
      expect(known).toEqual({ unit: 'bytes', size: 9, ...facts })
    expect(content.range).toEqual({ start: facts.first, end: Number(facts.last) + 1 })
  })

  test('are exact for what is not text', async () => {
    if (shape === 'text' || shape === 'ranges of text') return
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

  test('behind the end are refused with the size, and those of nothing are none', async () => {
    expect(await refusal(sliced(source(shape, 'abc')), { bytes: '3-' })).toMatch(/^invalid range: .*there are 3 bytes/)
    expect(await refusal(sliced(source(shape, 'abc')), { bytes: '999999-' })).toMatch(
      /^invalid range: .*behind the end/,
    )
    const empty = await read(sliced(source(shape, '')), { bytes: '0-99' })
    expect(contentOf(empty)).toBe('')
    expect(factsOf(empty)).toMatchObject({ first: 0, last: -1, size: 0 })
  })

  test('follow one another by `next` to the end, whatever the text, the part and the limit', async () => {
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
      { numRuns: 60 },
    )
  })
})

describe('a part', () => {
  test.each([
    ['lines', '', 'lines=10-40'],
    ['lines', '0', 'lines=10-40'],
    ['lines', '0-5', 'lines=10-40'],
    ['lines', '5-4', 'lines=10-40'],
    ['lines', '-5', 'lines=10-40'],
    ['lines', '1,3', 'lines=10-40'],
    ['lines', '1-2-3', 'lines=10-40'],
    ['lines', ' 1', 'lines=10-40'],
    ['lines', '1e3', 'lines=10-40'],
    ['lines', '９', 'lines=10-40'],
    ['lines', '9999999999999999', 'lines=10-40'],
    ['bytes', 'abc', 'bytes=0-4095'],
    ['bytes', '5-4', 'bytes=0-4095'],
    ['bytes', '-500', 'bytes=0-4095'],
  ])('%s=%s is refused with the right form', async (unit, value, form) => {
    const provider = source('text', 'abc')
    expect(await refusal(sliced(provider), { [unit]: value })).toContain(form)
    expect(await refusal(sliced(provider), { [unit]: value })).toMatch(/^invalid range: /)
    expect(provider.reads).toEqual([])
  })

  test('is of lines or of bytes, and not of both', async () => {
    expect(await refusal(sliced(source('text', 'abc')), { lines: '1', bytes: '0' })).toMatch(
      /^invalid range: .*not for both/,
    )
  })

  test('is not looked for without the parameters, and other parameters are passed on', async () => {
    const inner = source('ranges of bytes', 'abc')
    const request = { path: 'a', params: new Map([['other', '1']]) }
    await sliced(inner).read(request, contextOf())
    expect(inner.reads).toEqual([request])
    await sliced(inner).read(
      {
        path: 'a',
        params: new Map([
          ['other', '1'],
          ['lines', '1'],
        ]),
      },
      contextOf(),
    )
    expect(inner.reads[1]?.params).toEqual(new Map([['other', '1']]))
  })

  test('of a text leaves its byte order mark out', async () => {
    for (const shape of shapes) {
      const provider = sliced(source(shape, '\ufeffone\ntwo'))
      expect(contentOf(await read(provider, { lines: '1' })), shape).toBe('one\n')
      expect(contentOf(await read(provider, { bytes: '0-5' })), shape).toBe('one')
    }
  })

  test('of several contents is refused', async () => {
    const several: Provider = { list: async function* () {}, read: async () => [{ text: 'a' }, { text: 'b' }] }
    expect(await refusal(sliced(several), { lines: '1' })).toMatch(/^invalid range: .*several contents/)
  })

  test('is of one version: what changes meanwhile is read again, and what never stops is unavailable', async () => {
    const text = (letter: string) => `${letter.repeat(99)}\n`.repeat(6000)
    const inner = source('ranges of bytes', text('a'))
    const once = sliced({
      ...inner,
      read: async (request, context) => {
        const answer = await inner.read(request, context)
        if (inner.reads.length === 1) Object.assign(inner, { bytes: Buffer.from(text('b')), version: '2' })
        return answer
      },
    })
    const content = await read(once, { lines: '1-6000' })
    expect(content.version).toBe('2')
    expect(contentOf(content)).toBe(text('b'))
    let version = 0
    const always = sliced({
      ...inner,
      read: async (request, context) =>
        (await inner.read(request, context)).map((part) => ({ ...part, version: String(version++) })),
    })
    expect(await refusal(always, { lines: '5000-5001' })).toMatch(/^unavailable/)
  })

  test('of a long text reads in chunks, and behind an earlier part only what follows it', async () => {
    const inner = source('ranges of bytes', `${'x'.repeat(99)}\n`.repeat(50_000))
    const provider = sliced(inner)
    const far = await read(provider, { lines: '40000-40009' })
    expect(factsOf(far)).toMatchObject({ first: 40_000, last: 40_009, next: 'lines=40010-40019', size: 5_000_000 })
    expect(Math.max(...inner.reads.map(({ range }) => (range?.end ?? 0) - (range?.start ?? 0)))).toBeLessThanOrEqual(
      262_144,
    )
    expect(inner.reads.length).toBeGreaterThan(10)
    inner.reads = []
    expect(contentOf(await read(provider, { lines: '40010-40019' }))).toBe(`${'x'.repeat(99)}\n`.repeat(10))
    expect(inner.reads).toHaveLength(1)
    // Another version is counted again.
    Object.assign(inner, { bytes: Buffer.from(`${'y'.repeat(9)}\n`.repeat(100_000)), version: '2' })
    expect(contentOf(await read(provider, { lines: '40020' }))).toBe(`${'y'.repeat(9)}\n`)
  })

  test('is bounded: a longer one goes on in the next, and a line that is too long in bytes', async () => {
    const provider = sliced(source('ranges of bytes', `${'x'.repeat(9)}\n`.repeat(300_000)))
    const part = await read(provider, { lines: '1-200000' })
    expect(factsOf(part)).toMatchObject({ first: 1, last: 104_857, next: 'lines=104858-200000' })
    const bytes = await read(provider, { bytes: '0-' })
    expect(factsOf(bytes)).toMatchObject({ first: 0, last: 1_048_575, next: 'bytes=1048576-' })
    const long = sliced(source('ranges of bytes', `a\n${'あ'.repeat(100)}\nb`), { maxBytes: 100 })
    const cut = await read(long, { lines: '2-3' })
    expect(contentOf(cut)).toBe('あ'.repeat(33))
    expect(factsOf(cut)).toMatchObject({ first: 2, last: 2, next: 'bytes=101-' })
  })

  test('of a source with a smaller limit is gathered from smaller reads', async () => {
    const folder = createFolder()
    const inner = await files({ root: folder.root, maxBytes: 1000 })
    opened.push({ folder, provider: inner })
    folder.write({ a: `${'x'.repeat(99)}\n`.repeat(100) })
    const provider = sliced(inner)
    expect(contentOf(await read(provider, { lines: '90-' }))).toBe(`${'x'.repeat(99)}\n`.repeat(11))
    expect(contentOf(await read(provider, { bytes: '0-4999' }))).toBe(`${'x'.repeat(99)}\n`.repeat(50))
  })

  test('of a file is cut out of it', async () => {
    const folder = createFolder()
    const inner = await files({ root: folder.root })
    opened.push({ folder, provider: inner })
    folder.write({ a: '\ufeff見出し\n二行目\n', b: new Uint8Array([1, 0, 2]) })
    const provider = sliced(inner)
    expect(await read(provider, { lines: '2' })).toMatchObject({
      text: '二行目\n',
      range: { start: 13, end: 23 },
      size: 23,
    })
    expect(await read(provider, { bytes: '0-5' })).toMatchObject({ text: '見', range: { start: 3, end: 6 } })
    expect(await readOne(provider, 'b', { params: { bytes: '1-' } })).toMatchObject({ bytes: Buffer.from([0, 2]) })
    await expect(readOne(provider, 'b', { params: { lines: '1' } })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(readOne(provider, 'none', { params: { lines: '1' } })).rejects.toMatchObject({ kind: 'not-found' })
    await expect(read(provider, { lines: '9' })).rejects.toMatchObject({ detail: { reason: 'range', lines: 2 } })
  })
})

test('the wrapper adds one template to those of the provider, and keeps all its abilities', async () => {
  const inner: Provider = {
    ...source('text', ''),
    templates: async () => [{ template: '{+path}', name: 'Files' }],
    stat: async (path) => ({ path }),
    complete: async () => ({ values: [] }),
    watch: async () => (async function* () {})(),
    close: async () => {},
  }
  const outer = sliced(inner)
  const templates = (await outer.templates?.(contextOf())) ?? []
  expect(templates.map(({ template }) => template)).toEqual(['{+path}', '{+path}{?lines,bytes}'])
  expect(compileTemplate(templates[1]?.template ?? '').variables).toEqual(['path', 'lines', 'bytes'])
  for (const name of ['stat', 'complete', 'watch', 'close', 'list'] as const) expect(outer[name]).toBe(inner[name])
  expect(await sliced(source('text', '')).templates?.(contextOf())).toHaveLength(1)
  expect(sliced(source('text', ''))).not.toHaveProperty('stat')
})

test('a source that refuses every range of an empty resource, or of one that became shorter, is read all the same', async () => {
  const inner = source('ranges of bytes', '')
  const strict: Provider = {
    ...inner,
    read: async (request, context) => {
      const start = request.range?.start ?? -1
      if (start >= inner.bytes.length) throw invalid('behind the end', 'range')
      const answer = await inner.read(request, context)
      if (start === 0 && inner.bytes.length > 300_000)
        Object.assign(inner, { bytes: Buffer.from('short\n'), version: '2' })
      return answer.map((content) => ({ ...content, immutable: true }))
    },
  }
  const empty = await read(sliced(strict), { lines: '1-' })
  expect(contentOf(empty)).toBe('')
  expect(contentOf(await read(sliced(strict), { bytes: '0-' }))).toBe('')
  Object.assign(inner, { bytes: Buffer.alloc(400_000, 'x') })
  const content = await read(sliced(strict), { lines: '1' })
  expect(contentOf(content)).toBe('short\n')
  expect(content.immutable).toBe(true)
})
