import { expect, test } from 'vitest'
import { windowsOf } from '../../src/context/windows.ts'

const filler = (name: string) => `function ${name}() {\n${'  return other\n'.repeat(30)}}\n`
const wanted =
  '/** Seals a cursor. */\nexport function seal(cursor: string) {\n  const key = keyOf(cursor)\n\n  return sealed(key)\n}\n'
const text = [filler('one'), wanted, filler('two'), 'function three() {\n  cursor()\n}\n', filler('four')].join('\n')
const shown = { text, path: 'src/seal.ts', mimeType: undefined, found: [] }
const terms = new Set(['seal', 'cursor'])

test('windows are whole functions with their comments, the best first', () => {
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

test('a text without the terms has no windows, and a long one without gaps is cut', () => {
  expect(windowsOf(shown, new Set(['absent']), [2000])).toEqual([])
  const lines = Array.from({ length: 200 }, (_, at) => (at === 130 ? 'the cursor' : 'x'))
  const [only] = windowsOf({ ...shown, text: lines.join('\n') }, terms, [100])
  expect(only?.ranges).toEqual([{ start: 121, end: 180 }])
})
