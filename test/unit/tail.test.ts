import * as fs from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Content, Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { decoded, encodingKey } from '../../src/wrap/decoded.ts'
import { type TailFacts, tailKey } from '../../src/wrap/part.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type TailedOptions, tailed } from '../../src/wrap/tailed.ts'
import { encode } from '../fixtures/documents/sentences.ts'
import { createFolder, type Folder, readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'
import { shapes, source } from '../support/sources.ts'
import { volumeOf } from '../support/volume.ts'

let folder: Folder
let root: Provider

beforeAll(async () => {
  folder = createFolder()
  root = await files({ root: folder.root })
})
afterAll(async () => {
  await root.close?.()
  folder.remove()
})

const tail = (provider: Provider, path: string, count: number | string) =>
  readOne(provider, path, { params: { tail: String(count) } })
const textOf = (content: Content) =>
  'text' in content ? content.text : 'bytes' in content ? Buffer.from(content.bytes).toString() : ''
const toldOf = (content: Content) => content.meta?.[tailKey] as TailFacts
const partOf = (content: Content) => content.meta?.['dev.hikidashi/part']

/** The last lines of a text, in the plainest way. */
const lastLines = (text: string, count: number) => (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice(-count).join('')

describe.each(shapes)('the last lines of a source of %s', (shape) => {
  const text = 'one\ntwo\r\nthrée 𠮷\n\nfive'

  test.each([1, 2, 3, 4, 5, 6, 100_000])(
    'are as many as requested, or the whole text if it has fewer: %i',
    async (count) => {
      const content = await tail(tailed(source(shape, text)), 'a', count)
      expect(textOf(content)).toBe(lastLines(text, count))
      expect(toldOf(content)).toEqual({ lines: Math.min(5, count), earlier: count < 5, unfinished: 'shown' })
      const start = Buffer.byteLength(text) - Buffer.byteLength(lastLines(text, count))
      expect(content).toMatchObject({
        version: '1',
        range: { start, end: Buffer.byteLength(text) },
        size: Buffer.byteLength(text),
      })
    },
  )

  test('are whole lines at the end of any text, unless one line exceeds the limit', async () => {
    const characters = fc.array(fc.constantFrom('a', 'é', 'あ', '𠮷', '\n', '\n', '\r'), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(
        characters,
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 8, max: 80 }),
        async (parts, count, maxBytes) => {
          const whole = parts.join('')
          const content = await tail(tailed(source(shape, whole), { maxBytes }), 'a', count)
          const shown = textOf(content)
          const { lines, earlier } = toldOf(content)
          expect(whole.endsWith(shown)).toBe(true)
          expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(maxBytes + 3)
          expect(earlier).toBe(shown.length < whole.length)
          if (lastLines(whole, count + 1).length < maxBytes / 4) expect(shown).toBe(lastLines(whole, count))
          // What is cut is one line that is too long, or ends of lines.
          else if (lines > 1) expect(shown).toBe(lastLines(whole, lines))
        },
      ),
      { numRuns: volumeOf(60) },
    )
  })

  test('of an empty text are empty', async () => {
    const content = await tail(tailed(source(shape, '')), 'a', 5)
    expect([textOf(content), toldOf(content)]).toEqual(['', { lines: 0, earlier: false }])
  })
})

describe('the last lines of a file', () => {
  test('are found in a file of 5 GB by reading less than 100,000 bytes', async () => {
    const path = folder.at('five-gigabytes.log')
    const handle = fs.openSync(path, 'w')
    fs.ftruncateSync(handle, 5_000_000_000)
    const lines = Array.from({ length: 5000 }, (_, i) => `line ${i} 今年の梅雨は例年より長い。\n`)
    fs.writeSync(handle, `\n${lines.join('')}`, 5_000_000_000)
    fs.closeSync(handle)
    let read = 0
    const counting: Provider = {
      ...root,
      read: async (request, context) => {
        const contents = await root.read(request, context)
        for (const content of contents) read += Buffer.byteLength(textOf(content))
        return contents
      },
    }
    const content = await tail(tailed(counting), 'five-gigabytes.log', 200)
    expect(textOf(content)).toBe(lines.slice(-200).join(''))
    expect(read).toBeLessThan(100_000)
    expect(partOf(content)).toMatchObject({ unit: 'bytes', size: fs.statSync(path).size })
    expect(textOf(await tail(tailed(counting), 'five-gigabytes.log', 4000))).toBe(lines.slice(-4000).join(''))
    fs.rmSync(path)
  })

  test('leave out a partly written line', async () => {
    folder.write({ 'growing.log': 'first\nsecond\nthi' })
    const provider = tailed(root)
    const content = await tail(provider, 'growing.log', 10)
    expect(textOf(content)).toBe('first\nsecond\n')
    expect(toldOf(content)).toEqual({ lines: 2, earlier: false, unfinished: 'left-out' })
    // What was left out is what follows.
    expect(partOf(content)).toMatchObject({ last: 12, next: 'bytes=13-' })
    fs.appendFileSync(folder.at('growing.log'), 'rd\n')
    const next = await readOne(sliced(provider), 'growing.log', { params: { bytes: '13-' } })
    expect(textOf(next)).toBe('third\n')
    expect(toldOf(await tail(provider, 'growing.log', 10))).toEqual({ lines: 3, earlier: false })
  })

  test('include a last line without a newline once the file has not changed for a while, or if it is the only line', async () => {
    folder.write({ 'settled.txt': 'first\nlast', 'one.json': '{"a":1}' })
    const before = new Date(Date.now() - 60_000)
    fs.utimesSync(folder.at('settled.txt'), before, before)
    expect(textOf(await tail(tailed(root), 'settled.txt', 1))).toBe('last')
    expect(textOf(await tail(tailed(root), 'one.json', 1))).toBe('{"a":1}')
    folder.write({ 'soon.txt': 'first\nlast' })
    const provider = tailed(root, { settleMs: 45_000 })
    expect(textOf(await tail(provider, 'soon.txt', 1))).toBe('first\n')
    fs.utimesSync(folder.at('soon.txt'), before, before)
    expect(textOf(await tail(provider, 'soon.txt', 1))).toBe('last')
  })

  test('are whole lines while the file is written very fast', async () => {
    folder.write({ 'busy.log': 'begin\n' })
    const handle = fs.openSync(folder.at('busy.log'), 'a')
    let written = 0
    const writer = setInterval(() => {
      // Half a line, and then the other half, as a buffer would be written out.
      for (let i = 0; i < 20; i++) fs.writeSync(handle, `entry ${++written} of the log, 梅`)
      for (let i = 0; i < 20; i++) fs.writeSync(handle, '雨入り\n')
      fs.writeSync(handle, `entry ${++written} of the log, 梅`)
    }, 1)
    try {
      for (let i = 0; i < 40; i++) {
        const text = textOf(await tail(tailed(root), 'busy.log', 5))
        expect(text).toMatch(/\n$/)
        expect(text).not.toContain('\ufffd')
      }
    } finally {
      clearInterval(writer)
      fs.closeSync(handle)
    }
  })

  test('are those of the new text if the file is rewritten meanwhile', async () => {
    folder.write({ 'rotated.log': 'old line\n'.repeat(50_000) })
    let rotated = false
    const rotating: Provider = {
      ...root,
      read: async (request, context) => {
        const contents = await root.read(request, context)
        if (!rotated) folder.write({ 'rotated.log': 'new line\n' })
        rotated = true
        return contents
      },
    }
    expect(textOf(await tail(tailed(rotating), 'rotated.log', 3))).toBe('new line\n')
  })
})

describe('the last lines of a text in another encoding', () => {
  const lines = Array.from({ length: 9000 }, (_, i) => `${i + 1}行目：今年の梅雨は上旬から、例年より長い。\n`)
  const stack = () => sliced(decoded(tailed(root)))

  test.each(['shift_jis', 'euc-jp', 'iso-2022-jp', 'utf-16le', 'utf-16be'])(
    'are decoded from %s, as many as requested',
    async (label) => {
      const mark = label === 'utf-16le' ? [0xff, 0xfe] : label === 'utf-16be' ? [0xfe, 0xff] : []
      folder.write({ [`${label}.log`]: Buffer.concat([Buffer.from(mark), encode(lines.join(''), label)]) })
      for (const count of [1, 3, 5000]) {
        const content = await tail(stack(), `${label}.log`, count)
        expect(textOf(content)).toBe(lines.slice(-count).join(''))
        expect(content.meta?.[encodingKey]).toBe(label)
        expect(toldOf(content)).toEqual({ lines: count, earlier: true })
        // Places in the file are none in the text.
        expect([content.range, content.size, partOf(content)]).toEqual([undefined, undefined, undefined])
      }
      expect(textOf(await tail(stack(), `${label}.log`, 100_000))).toBe(lines.join(''))
    },
  )

  test('are decoded if the beginning is all ASCII', async () => {
    folder.write({
      'boot.log': encode(`${'boot ok\n'.repeat(20_000)}エラーが発生しました。接続を確認してください。\n`, 'shift_jis'),
    })
    expect(textOf(await tail(stack(), 'boot.log', 2))).toBe('boot ok\nエラーが発生しました。接続を確認してください。\n')
  })

  test('show a damaged byte as a question mark', async () => {
    folder.write({
      'damaged.log': Buffer.concat([Buffer.from('今年の梅雨は\n'.repeat(9000)), Buffer.from([0xe4, 0x0a])]),
    })
    expect(textOf(await tail(stack(), 'damaged.log', 2))).toBe('今年の梅雨は\n?\n')
  })

  test('are refused if one line exceeds the maximum of a read', async () => {
    folder.write({ 'line.txt': encode(`短い行。\n${'長い行が続く。'.repeat(5000)}`, 'shift_jis') })
    const read = tail(decoded(tailed(root, { maxBytes: 10_000 })), 'line.txt', 1)
    await expect(read).rejects.toMatchObject({ kind: 'too-large', detail: { limit: 10_000 } })
  })
})

describe('an invalid tail', () => {
  const refusal = (provider: Provider, path: string, count: string, more: Readonly<Record<string, string>> = {}) =>
    readOne(provider, path, { params: { tail: count, ...more } }).then(
      () => 'answered',
      (error: { kind: string; detail: { reason?: string }; message: string }) =>
        `${error.kind} ${error.detail.reason}: ${error.message}`,
    )

  test('is refused with an error that shows the syntax', async () => {
    folder.write({ 'a.txt': 'a\n' })
    for (const count of ['0', '-1', '', 'x', '1e3', '1.5', '100001', '9'.repeat(400)])
      expect(await refusal(tailed(root), 'a.txt', count)).toMatch(/^invalid parameter: .*\?tail=200/)
  })

  test('of a binary content is refused', async () => {
    folder.write({
      'a.png': Buffer.concat([Buffer.from('\x89PNG\n', 'latin1'), Buffer.alloc(100)]),
      'b.dat': Uint8Array.of(1, 0, 10, 2),
    })
    for (const path of ['a.png', 'b.dat'])
      expect(await refusal(tailed(root), path, '2')).toMatch(/^invalid parameter: .*\?bytes=0-4095/)
  })

  test('of a part, or of several contents, is refused', async () => {
    expect(await refusal(sliced(tailed(root)), 'a.txt', '2', { lines: '1-2' })).toMatch(
      /^invalid parameter: .*not both/,
    )
    const several: Provider = { ...memory({}), read: async () => [{ text: 'a' }, { text: 'b' }] }
    expect(await refusal(tailed(several), 'x', '2')).toMatch(/^invalid parameter: .*several contents/)
  })

  test('of an absent resource gives the error "not-found"', async () => {
    expect(await refusal(tailed(root), 'nothing.txt', '2')).toMatch(/^not-found/)
  })
})

test('the last lines are whole, and fewer than requested, within a small limit of the provider or of the wrapper', async () => {
  const small = await files({ root: folder.root, maxBytes: 20_000 })
  folder.write({ 'long.log': Array.from({ length: 30_000 }, (_, i) => `line ${i}\n`).join('') })
  for (const options of [{}, { maxBytes: 5000 }] satisfies TailedOptions[]) {
    const content = await tail(tailed(small, options), 'long.log', 50_000)
    const { lines } = toldOf(content)
    expect(lines).toBeGreaterThan(300)
    expect(lines).toBeLessThan(30_000)
    expect(textOf(content)).toBe(Array.from({ length: lines }, (_, i) => `line ${30_000 - lines + i}\n`).join(''))
  }
  await small.close?.()
})

describeProvider(
  { describe, test },
  'the wrapper tailed over files',
  async () => {
    const made = createFolder()
    made.write({ 'a.log': 'one\ntwo\n', '日本語.txt': '今年の梅雨は\n'.repeat(9000), 'b.dat': Uint8Array.of(1, 0, 2) })
    return {
      provider: tailed(await files({ root: made.root })),
      expectation: {
        entries: {
          'a.log': { text: 'one\ntwo\n' },
          '日本語.txt': { text: '今年の梅雨は\n'.repeat(9000) },
          'b.dat': { bytes: Uint8Array.of(1, 0, 2) },
        },
      },
      dispose: made.remove,
    }
  },
  { through: { decoded, 'sliced decoded': (inner) => sliced(decoded(inner)) } },
)
