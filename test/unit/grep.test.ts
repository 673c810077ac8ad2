import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { invalid, tooLarge } from '../../src/core/errors.ts'
import { metaKeys } from '../../src/core/meta.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import type { ReadResult } from '../../src/core/view.ts'
import { type GrepOptions, type GrepPosition, grep, type MatchingLine } from '../../src/text/grep.ts'
import { sliced } from '../../src/wrap/sliced.ts'

const lines = Array.from({ length: 60_000 }, (_, i) => `${i % 20_000 === 19_999 ? 'ERROR' : 'INFO'} request ${i + 1}`)
const files = {
  'a.log': `${lines.join('\r\n')}\r\n`,
  'wide.txt': `${'x'.repeat(3_000_000)}needle\nneedle\n`,
  'ja.txt': '見積\n返金の手順\nＡＢ\n',
  'bytes.bin': Uint8Array.of(0xff, 0xfe, 0xfd),
  'secret.txt': 'ERROR of ada\n',
}

function read(provider: Provider) {
  const access = (_: Principal, path: string) => path !== 'secret.txt'
  const view = createCatalog({ mounts: [{ address: 'docs://d', provider, access }] }).view({ id: 'ada', roles: [] })
  return (uri: string) => view.read(uri)
}

const whole = read(memory(files))
/** Answers as a source does whose contents are too large for one answer. */
const inParts = read(sliced(memory(files), { maxBytes: 200_000 }))

test.each([
  ['at once', whole],
  ['in parts', inParts],
])('a pattern finds the same lines with their numbers in a text that is read %s', async (_, reading) => {
  const found = await grep(reading, 'docs://d/a.log', {
    pattern: '^error.*\\d+$',
    ignoresCase: true,
    limit: 2,
    context: 1,
  })
  expect(found).toMatchObject({ uri: 'docs://d/a.log', next: { from: 40_001, line: 40_000 }, lastLine: 40_000 })
  expect(found.matches.map(({ line }) => line)).toEqual([20_000, 40_000])
  expect(found.matches[1]).toEqual({
    ...{ line: 40_000, text: 'ERROR request 40000', start: 0, end: 19 },
    ...{ before: ['INFO request 39999'], after: ['INFO request 40001'] },
  })
  const rest = await grep(reading, 'docs://d/a.log', { pattern: 'ERROR', limit: 2, from: 40_001 })
  expect(rest.matches.map(({ line }) => line)).toEqual([60_000])
  expect(rest).toMatchObject({ lastLine: 60_000, cutLines: 0 })
  expect(rest).not.toHaveProperty('next')
})

test('a literal pattern is not read as a regular expression, and a pattern finds Japanese text', async () => {
  const at = async (pattern: string, isLiteral = false) =>
    (await grep(whole, 'docs://d/ja.txt', { pattern, isLiteral, limit: 9 })).matches.map(({ line }) => line)
  expect(await at('返金')).toEqual([2])
  expect(await at('\\p{Han}{2}$')).toEqual([1, 2])
  expect(await at('の.順')).toEqual([2])
  expect(await at('の.順', true)).toEqual([])
})

test('a search answers for a pattern that would backtrack for years, and counts a line that is too long', async () => {
  const found = await grep(whole, 'docs://d/wide.txt', { pattern: '(x+x+)+y|needle', limit: 9 })
  expect(found.matches.map(({ line }) => line)).toEqual([2])
  expect(found.cutLines).toBe(1)
})

/** Searches in as many answers as it takes, each without time left after its first line or with few matches. */
async function inAnswers(reading: typeof whole, uri: string, options: Omit<GrepOptions, 'position'>) {
  const matches: MatchingLine[] = []
  for (let position: GrepPosition | undefined; ; ) {
    const found = await grep(reading, uri, { ...options, ...(position === undefined ? {} : { position }) })
    matches.push(...found.matches)
    const { next, lastLine } = found
    if (next === undefined) return { matches, lastLine }
    expect(next.line + next.from).toBeGreaterThan(position === undefined ? 1 : position.line + position.from)
    position = next
  }
}

test('a search without time left examines one line, and the next searches continue from there until the text ends', async () => {
  expect(await grep(whole, 'docs://d/a.log', { pattern: 'x', limit: 1, maxMs: -1 })).toMatchObject({
    ...{ next: { line: 2, from: 2, at: 'INFO request 1\r\n'.length }, lastLine: 1, matches: [] },
  })
  // The lines before the first are passed in bounded answers too.
  const found = await inAnswers(whole, 'docs://d/ja.txt', { pattern: '.', limit: 9, from: 2, maxMs: -1 })
  expect(found).toMatchObject({ matches: [{ line: 2 }, { line: 3 }], lastLine: 3 })
})

test('a search in several answers finds what one answer finds, in texts of every script and with lines in context', async () => {
  const line = fc.string({ unit: fc.constantFrom('a', 'b', '返', '𠮷', '\ufeff', '\r', 'é'), maxLength: 5 })
  const property = fc.asyncProperty(
    fc.array(line, { maxLength: 12 }),
    fc.constantFrom('', '\n'),
    fc.integer({ min: 0, max: 2 }),
    fc.integer({ min: 1, max: 8 }),
    async (lines, end, context, maxBytes) => {
      const text = `${lines.join('\n')}${end}`
      for (const reading of [read(memory({ 'a.txt': text })), read(sliced(memory({ 'a.txt': text }), { maxBytes }))]) {
        const options = { pattern: '[a返]', limit: 99, context }
        const once = await grep(reading, 'docs://d/a.txt', options)
        const { matches, lastLine } = await inAnswers(reading, 'docs://d/a.txt', { ...options, limit: 1, maxMs: -1 })
        expect(matches).toEqual(once.matches)
        expect(lastLine).toBe(once.lastLine)
      }
    },
  )
  await fc.assert(property)
})

test('a search does not continue in a text that has changed since, nor in another text', async () => {
  const inner = memory({ 'a.txt': 'one\ntwo\nthree\n', 'b.txt': 'one\ntwo\n' })
  let version = '1'
  const reading = read({
    ...inner,
    read: async (request, context) => (await inner.read(request, context)).map((content) => ({ ...content, version })),
  })
  const { next: position } = await grep(reading, 'docs://d/a.txt', { pattern: 'o', limit: 1 })
  const goOn = (uri: string) => grep(reading, uri, { pattern: 'o', limit: 9, ...(position && { position }) })
  expect((await goOn('docs://d/a.txt')).matches.map(({ line }) => line)).toEqual([2])
  await expect(goOn('docs://d/b.txt')).rejects.toThrow('has changed')
  version = '2'
  await expect(goOn('docs://d/a.txt')).rejects.toThrow('has changed')
})

test('a search resumes at a line far beyond the part that was already searched for secrets', async () => {
  const text = 'line\n'.repeat(100_000)
  let [searched, tooFar] = [0, 0]
  const reading = async (uri: string): Promise<ReadResult> => {
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(uri)?.map(Number) ?? []
    if (first === undefined || last === undefined) throw tooLarge('Too large.')
    if (first > searched + 200_000) {
      tooFar++
      searched += 200_000
      throw tooLarge('Too far.', { reason: 'range', place: searched })
    }
    const part = { first, last: Math.min(last, text.length - 1), ...(last < text.length - 1 ? { next: 'more' } : {}) }
    return {
      contents: [{ uri, version: '1', text: text.slice(first, last + 1), meta: { [metaKeys.part]: part } }],
      cache: { ttlMs: 0, scope: 'private' },
    }
  }
  const position = { uri: 'docs://d/a.txt', version: '1', line: 90_001, at: 450_000, from: 90_001 }
  const found = await grep(reading, 'docs://d/a.txt', { pattern: 'line', limit: 1, position })
  expect(found).toMatchObject({ matches: [{ line: 90_001 }], next: { at: 450_005, from: 90_002 } })
  expect(tooFar).toBe(2)
})

test('a search fails with the error of the source if the source does not progress in its own search for secrets', async () => {
  const reading = async (uri: string): Promise<ReadResult> => {
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(uri)?.map(Number) ?? []
    if (first === undefined || last === undefined) throw tooLarge('Too large.')
    if (first > 0) throw tooLarge('Too far.', { reason: 'range', place: 0 })
    const part = { first, last, next: 'more' }
    return {
      contents: [{ uri, version: '1', text: 'x'.repeat(last + 1), meta: { [metaKeys.part]: part } }],
      cache: { ttlMs: 0, scope: 'private' },
    }
  }
  const position = { uri: 'docs://d/a.txt', version: '1', line: 9, at: 450_000, from: 9 }
  const search = grep(reading, 'docs://d/a.txt', { pattern: 'line', limit: 1, position })
  await expect(search).rejects.toThrow('Too far.')
})

test('a search gives one error for a resource with several contents, and another for one that its source cannot read', async () => {
  const inner = memory({ 'a.txt': 'one' })
  const refused = (provider: Provider) =>
    grep(read(provider), 'docs://d/a.txt', { pattern: 'o', limit: 1 }).then(String, (error: Error) => error.message)
  const twice: Provider['read'] = async (...asked) => [...(await inner.read(...asked)), ...(await inner.read(...asked))]
  expect(await refused({ ...inner, read: twice })).toContain('several contents')
  const fail: Provider['read'] = () => Promise.reject(invalid('The view cannot be read.', 'unreadable'))
  expect(await refused({ ...inner, read: fail })).toBe('The view cannot be read.')
})

test('a search in a binary file or with an invalid pattern is refused with the reason, and a search in a denied file like one in an absent file', async () => {
  const refused = (uri: string, pattern = 'ERROR') =>
    grep(whole, uri, { pattern, limit: 1 }).then(String, (error: Error) => error.message)
  expect(await refused('docs://d/bytes.bin')).toContain('not text')
  expect(await refused('docs://d/a.log', '')).toContain('empty')
  expect(await refused('docs://d/a.log', '(?<!a)b')).toContain('RE2')
  expect(await refused('docs://d/a.log', '(a{30}){31}b{900}')).toContain('repeats too much')
  expect(await refused('docs://d/secret.txt')).toBe(await refused('docs://d/nothing.txt'))
})
