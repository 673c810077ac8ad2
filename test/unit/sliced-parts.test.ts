import { afterEach, describe, expect, test } from 'vitest'
import { invalid } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { files } from '../../src/providers/files/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { contextOf, createFolder, type Folder, readOne } from '../support/folder.ts'
import { contentOf, factsOf, read, refusal, shapes, source } from '../support/sources.ts'

const opened: { folder: Folder; provider: Provider }[] = []
afterEach(async () => {
  for (const { folder, provider } of opened.splice(0)) {
    await provider.close?.()
    folder.remove()
  }
})

describe('a part of a resource', () => {
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
  ])('is refused with an error that shows the syntax if it is requested as %s=%s', async (unit, value, form) => {
    const provider = source('text', 'abc')
    expect(await refusal(sliced(provider), { [unit]: value })).toContain(form)
    expect(await refusal(sliced(provider), { [unit]: value })).toMatch(/^invalid range: /)
    expect(provider.reads).toEqual([])
  })

  test('is refused if both lines and bytes are requested', async () => {
    expect(await refusal(sliced(source('text', 'abc')), { lines: '1', bytes: '0' })).toMatch(
      /^invalid range: .*not both/,
    )
  })

  test('is read only if lines or bytes are requested, and other parameters are passed on', async () => {
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

  test('of a text leaves out its byte order mark', async () => {
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

  test('is of one version: a text that changes meanwhile is read again, and one that keeps changing is unavailable', async () => {
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

  test('of a long text is read in chunks, and a part that follows an earlier one is read directly', async () => {
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

  test('is limited: a longer one continues in the next part, and a line that is too long by bytes', async () => {
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

  test('of a source with a smaller limit is joined from smaller reads', async () => {
    const folder = createFolder()
    const inner = await files({ root: folder.root, maxBytes: 1000 })
    opened.push({ folder, provider: inner })
    folder.write({ a: `${'x'.repeat(99)}\n`.repeat(100) })
    const provider = sliced(inner)
    expect(contentOf(await read(provider, { lines: '90-' }))).toBe(`${'x'.repeat(99)}\n`.repeat(11))
    expect(contentOf(await read(provider, { bytes: '0-4999' }))).toBe(`${'x'.repeat(99)}\n`.repeat(50))
  })

  test('of a file is read without the byte order mark, and lines are refused if the file is binary, absent or too short', async () => {
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

test('the slicing wrapper adds one template to those of the provider, and keeps the abilities of the provider', async () => {
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

test('a source that refuses every range of an empty or truncated resource is read as a whole', async () => {
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
