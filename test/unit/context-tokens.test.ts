import fc from 'fast-check'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, test } from 'vitest'
import { tokenFileOf } from '../../scripts/token-file.ts'
import { maxTokenBytes, minTokensOf } from '../../src/context/forms.ts'
import { formats, openCounter } from '../../src/context/index.ts'
import { buildTokenRanks } from '../../src/context/ranks.ts'
import { rendererOf } from '../../src/context/render.ts'
import { maxCounted, mergeSteps } from '../../src/context/tokens.ts'
import { toBinaryString } from '../../src/core/kit/utf8.ts'
import { awkwardText } from '../support/awkward-text.ts'
import { volumeOf } from '../support/volume.ts'

const asText = { disallowedSpecial: new Set<string>() }
const both = [
  { encoding: 'o200k_base', plain: (text: string) => countO200k(text, asText) },
  { encoding: 'cl100k_base', plain: (text: string) => countCl100k(text, asText) },
] as const

describe.each(both)('the token counter of $encoding', ({ encoding, plain }) => {
  test('counts as many as the tokenizer itself, for any text', async () => {
    const counter = await openCounter(encoding)
    await fc.assert(
      fc.asyncProperty(awkwardText, async (given) => {
        // The library takes a byte order mark away where it looks a token up, and so counts two for the one there is.
        const text = given.replaceAll('\ufeff', '')
        expect(await counter.count(text)).toBe(plain(text))
      }),
      { numRuns: volumeOf(300) },
    )
  })

  test('counts no fewer tokens than the lower bound that is made of the words and numbers of a text, in every format', async () => {
    const counter = await openCounter(encoding)
    const word = fc.constantFrom(
      ...[
        "don't",
        'naïve',
        'a',
        'I',
        'HTTPServer',
        'snake_case',
        '1234567',
        'x86',
        '\n',
        '\t',
        ' ',
        "'",
        "'s",
        '日本',
        'é',
      ],
      ...['<b>', '&', '"', '\\', '=>', '```', '\u0000', '\ud800', '½', 'ﬁ', '-', '/', 'the ', ' of', 'LL', "'LL"],
    )
    const text = fc.oneof(
      awkwardText,
      fc.array(word, { maxLength: 60 }).map((words) => words.join('')),
    )
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom(...formats), async (body, format) => {
        const part = { resource: { uri: 'x:a', name: 'a' }, level: 'full', body } as const
        const tokens = await counter.count(rendererOf(format).part(part, 1))
        expect(minTokensOf(body)).toBeLessThanOrEqual(tokens)
        expect(minTokensOf(body)).toBeLessThanOrEqual(await counter.count(body))
      }),
      { numRuns: volumeOf(1000) },
    )
    expect(minTokensOf("It's x86 of 2026, naïve")).toBe(6)
  })

  test('counts exactly in runs without a boundary, too', async () => {
    const counter = await openCounter(encoding)
    for (const unit of ['_', 'a', 'ab', 'Aa', ' ', '\n', '漢', 'あ', '😀', '👨‍👩‍👧', '\u0301', '=-', '7', '\ud800']) {
      const text = unit.repeat(2000)
      expect({ unit, tokens: await counter.count(text) }).toEqual({ unit, tokens: plain(text) })
    }
  })

  test('counts a special token as its text', async () => {
    const counter = await openCounter(encoding)
    expect(await counter.count('<|endoftext|>')).toBe(plain('<|endoftext|>'))
    expect(await counter.count('<|endoftext|>')).toBeGreaterThan(1)
    expect(await counter.count('\ufeff')).toBe(1)
  })

  test('counts the same for a part of a context at every number from 1 to 999', async () => {
    const counter = await openCounter(encoding)
    for (const format of formats) {
      const renderer = rendererOf(format)
      const part = { resource: { uri: 'file:///a', name: 'a' }, level: 'full', body: 'text' } as const
      const counts = new Set<number>()
      for (let index = 1; index <= 999; index += 1) counts.add(await counter.count(renderer.part(part, index)))
      expect(counts.size).toBe(1)
    }
  })
})

test.each([
  ['o200k_base', o200k],
  ['cl100k_base', cl100k],
] as const)('each token of the encoding %s has its rank, and no other bytes have a rank', async (_, tokens) => {
  const list = tokens as readonly (string | readonly number[] | undefined)[]
  // As the build writes them to a file, and as the module of the package has them.
  const ranks = await buildTokenRanks(Buffer.from(tokenFileOf(list)))
  const ofModule = await buildTokenRanks(list)
  let wrong = 0
  for (const [rank, token] of tokens.entries()) {
    if (token === undefined) continue
    const bytes =
      typeof token === 'string' ? toBinaryString(token) : String.fromCharCode(...(token as readonly number[]))
    if (
      ranks.get(bytes) !== rank ||
      ofModule.get(`ab${bytes}c`, 2, 2 + bytes.length) !== rank ||
      ranks.get(`${bytes}\u0000\u0001`) !== undefined
    )
      wrong++
  }
  expect(wrong).toBe(0)
})

test('no token is longer than the maximum that the token counter assumes', () => {
  for (const token of [...o200k, ...cl100k])
    if (token !== undefined && Buffer.from(token as string).length > maxTokenBytes) expect(token).toBeUndefined()
})

test('the steps of merging a run of characters are linear in its length', () => {
  // Every pair of two letters is a token, and nothing longer is.
  const ranks = new Map([...'ab'].flatMap((a) => [...'ab'].map((b) => [a + b, b === 'a' ? 1 : 2] as [string, number])))
  for (const letter of 'ab') ranks.set(letter, 0)
  const yields = (length: number) => {
    const steps = mergeSteps('ab'.repeat(length / 2), ranks)
    let count = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) count++
    return { count, tokens: step.value }
  }
  const [small, large] = [yields(100_000), yields(400_000)]
  expect(small.count).toBeGreaterThan(10)
  expect(large.count).toBeLessThan(6 * small.count)
  expect(large.tokens).toBeGreaterThanOrEqual(200_000)
})

test('other work continues while a long text is counted', async () => {
  const counter = await openCounter('o200k_base')
  let turns = 0
  const ticking = setInterval(() => turns++, 0)
  await counter.count('あいうえお'.repeat(60_000))
  clearInterval(ticking)
  expect(turns).toBeGreaterThan(3)
})

test('counting tokens fails if it is cancelled, or if the text is too long', async () => {
  const counter = await openCounter('o200k_base')
  await expect(counter.count('xyz_'.repeat(200_000), AbortSignal.abort())).rejects.toMatchObject({
    kind: 'unavailable',
  })
  await expect(counter.count('a'.repeat(maxCounted + 1))).rejects.toMatchObject({ kind: 'too-large' })
})
