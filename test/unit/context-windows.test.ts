import { expect, test } from 'vitest'
import { formsOfCandidate } from '../../src/context/forms.ts'
import { createContextReader } from '../../src/context/reader.ts'
import { rendererOf } from '../../src/context/render.ts'
import { openCounter } from '../../src/context/tokens.ts'
import { defaultLimits } from '../../src/context/types.ts'
import { windowsOf } from '../../src/context/windows.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { memory } from '../support/memory.ts'

const filler = (name: string) => `function ${name}() {\n${'  return other\n'.repeat(30)}}\n`
const wanted =
  '/** Seals a cursor. */\nexport function seal(cursor: string) {\n  const key = keyOf(cursor)\n\n  return sealed(key)\n}\n'
const text = [filler('one'), wanted, filler('two'), 'function three() {\n  cursor()\n}\n', filler('four')].join('\n')
const shown = { text, path: 'src/seal.ts', mimeType: undefined, found: [] }
const terms = new Set(['seal', 'cursor'])

test('the windows of code are whole functions with their comments, the best first', () => {
  const [small, large, ...others] = windowsOf(shown, terms, [50, 400])
  expect(others).toEqual([])
  expect(small?.text).toContain(wanted.trim())
  expect(small?.text).not.toContain('three')
  expect(small?.ranges).toEqual([{ start: 34, end: 40 }])
  expect(large?.text).toContain('function three')
  expect(large?.share).toBeCloseTo(1)
  expect(small?.share ?? 1).toBeLessThan(large?.share ?? 0)
})

test('windows of prose are whole sections, and those that a search found come first', () => {
  const prose = '# One\n\nA cursor.\n\n```\n# cursor in a fence\n```\n\n# Two\n\nNothing of it.\n\n# Three\n\nMore.\n'
  const about = { text: prose, path: 'a.md', mimeType: undefined }
  expect(windowsOf({ ...about, found: [] }, terms, [40])[0]?.ranges).toEqual([{ start: 1, end: 8 }])
  const found = [{ start: 11, end: 11 }]
  const windows = windowsOf({ ...about, found }, new Set(), [40])
  expect(windows[0]?.ranges).toEqual([{ start: 9, end: 12 }])
})

test('a text without the words of the query has no windows, and a long text without blank lines has a window of the lines around a word', () => {
  expect(windowsOf(shown, new Set(['absent']), [2000])).toEqual([])
  const lines = Array.from({ length: 200 }, (_, at) => (at === 130 ? 'the cursor' : 'x'))
  const [only] = windowsOf({ ...shown, text: lines.join('\n') }, terms, [100])
  expect(only?.ranges).toEqual([{ start: 121, end: 180 }])
})

test('the sizes of windows are the same up to a budget of 8,000 tokens, and grow with the budget above it', async () => {
  const long = Array.from({ length: 40 }, (_, at) => `function f${at}() {\n${'  return cursor\n'.repeat(30)}}\n`).join(
    '\n',
  )
  const resource = { uri: 'memory://m/long.ts', name: 'long.ts' }
  const view = createCatalog({
    mounts: [{ address: 'memory://m', provider: memory({ 'long.ts': { text: long } }) }],
  }).view({ id: 'a', roles: [] })
  const reader = createContextReader(view, defaultLimits, () => false, {})
  const [reading] = await reader.read([resource.uri])
  const counter = await openCounter('o200k_base')
  const smallestAt = async (most: number) => {
    const forming = { counter, renderer: rendererOf('markdown'), format: 'markdown', terms, most } as const
    const { forms } = await formsOfCandidate(
      { resource, explanation: { score: 1, factors: [] }, found: [] },
      reading,
      forming,
      0,
    )
    return forms.find(({ part }) => part.level === 'windows')?.part.body?.length ?? 0
  }
  expect(await smallestAt(4000)).toBe(await smallestAt(8000))
  expect(await smallestAt(32_000)).toBeGreaterThan(3 * (await smallestAt(8000)))
})

test('each of the ten best texts has as its share of a context an eighth of the budget, from 300 to 4,000 tokens', async () => {
  const resource = { uri: 'memory://m/small.ts', name: 'small.ts' }
  const provider = memory({ 'small.ts': { text: 'cursor()\n' } })
  const view = createCatalog({ mounts: [{ address: 'memory://m', provider }] }).view({ id: 'a', roles: [] })
  const [reading] = await createContextReader(view, defaultLimits, () => false, {}).read([resource.uri])
  const counter = await openCounter('o200k_base')
  const sizeAt = async (index: number, most: number) => {
    const forming = { counter, renderer: rendererOf('markdown'), format: 'markdown', terms, most } as const
    const candidate = { resource, explanation: { score: 1, factors: [] }, found: [] }
    return (await formsOfCandidate(candidate, reading, forming, index)).size
  }
  expect(await sizeAt(0, 8000)).toBe(1000)
  expect(await sizeAt(9, 1000)).toBe(300)
  expect(await sizeAt(0, 64_000)).toBe(4000)
  expect(await sizeAt(10, 64_000)).toBe(300)
})
