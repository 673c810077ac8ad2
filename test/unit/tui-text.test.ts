import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { cellsOf, clustersOf, columnsOf, fitted, selected, span, wrap } from '../../src/cli/tui/cells.ts'
import { createInputDecoder, edit, editorOf, type Input, insert } from '../../src/cli/tui/input.ts'
import { createPainter } from '../../src/cli/tui/screen.ts'
import { textOf } from '../support/tui-screen.ts'

const xterm = createRequire(import.meta.url)('@xterm/headless') as typeof import('@xterm/headless')
const family = '👨‍👩‍👧‍👦'
const accented = 'e\u0301'
const texts = (text: string) => clustersOf(text).map((cluster) => cluster.text)

describe('clusters', () => {
  test.each([
    ['plain text', 10],
    ['日本語', 6],
    ['ﾊﾝｶｸ', 4],
    [family, 2],
    ['👍🏽', 2],
    ['🇯🇵🇫🇷', 4],
    ['❤️', 2],
    ['1️⃣', 2],
    [accented, 1],
    ['が', 2],
    ['葛\u{e0100}', 2],
    ['…─α', 3],
    ['각', 2],
  ])('%s takes %i columns', (text, width) => expect(columnsOf(cellsOf([span(text)]))).toBe(width))

  test('a character with its marks, and an emoji of several parts, are one', () => {
    expect(texts(`a${accented}${family}日`)).toEqual(['a', accented, family, '日'])
  })

  test.each([
    ['\u001b[6n', '\\u001b[6n'],
    ['a\u202eb', 'a\\u202eb'],
    ['\u200b', '\\u200b'],
    ['\u{e0041}', '\\u{e0041}'],
    ['a\u200db', 'a\\u200db'],
    ['x\u3164', 'x\\u3164'],
    ['\u009b31m', '\\u009b31m'],
    ['❤\ufe0f\ufe01', '❤\ufe0f\\ufe01'],
    ['\ud800', '\\ud800'],
    ['\u0301', '\u25cc\u0301'],
  ])('what would act or hide is visible: %j is drawn as %s', (text, drawn) => {
    expect(
      clustersOf(text)
        .map((cluster) => cluster.text)
        .join(''),
    ).toBe(drawn)
  })

  test('a tab goes to the next stop', () => {
    expect(texts('a\tb\t日\tc').join('')).toBe('a   b   日  c')
  })

  test('marks without end are cut, in linear time', () => {
    const clusters = clustersOf(`a${'\u0301'.repeat(200_000)}`)
    expect(Math.max(...clusters.map(({ text }) => text.length))).toBeLessThan(40)
    expect(
      clusters
        .map(({ text }) => text)
        .join('')
        .replaceAll('\u25cc', ''),
    ).toHaveLength(200_001)
  })
})

describe('cells', () => {
  const row = cellsOf([span('日本語とtext')])

  test.each([1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 40])('fill %i columns exactly, whichever end is kept', (columns) => {
    for (const keep of ['start', 'end'] as const) expect(columnsOf(fitted(row, columns, keep))).toBe(columns)
  })

  test('what is cut says so, and no wide character is drawn by half', () => {
    expect(textOf(fitted(row, 6))).toBe('日本… ')
    expect(textOf(fitted(row, 6, 'end'))).toBe(' …text')
    expect(textOf(fitted(row, 7, 'end'))).toBe('…とtext')
  })

  test('lines are wrapped by what they take, behind a blank where one is near', () => {
    expect(wrap(row, 5).map(textOf)).toEqual(['日本', '語とt', 'ext'])
    expect(wrap(cellsOf([span('one two three')]), 9).map(textOf)).toEqual(['one two ', 'three'])
    expect(wrap([], 5)).toEqual([[]])
  })
})

describe('the painter', () => {
  const screenAfter = (writes: readonly string[]) =>
    new Promise<readonly string[]>((resolve) => {
      const terminal = new xterm.Terminal({ cols: 12, rows: 2, allowProposedApi: true })
      terminal.write(writes.join(''), () => {
        const line = (row: number) =>
          Array.from({ length: 12 }, (_, x) => terminal.buffer.active.getLine(row)?.getCell(x)?.getChars() || ' ')
        resolve([line(0).join(''), line(1).join('')])
      })
    })

  test('what follows is in its place, also where a terminal draws narrower or wider than we think', async () => {
    // This terminal knows no emoji of this century, draws the parts of a family one by one, and flags as letters.
    const writes: string[] = []
    const painter = createPainter((text) => writes.push(text), true)
    painter.draw([fitted(cellsOf([span(`${family}|🇯🇵|❤️|`)]), 12), fitted(cellsOf([span('日本|é|x')]), 12)])
    const [first = '', second = ''] = await screenAfter(writes)
    expect([...first.matchAll(/\|/g)]).toHaveLength(3)
    expect(second.replaceAll(' ', '')).toBe('日本|é|x')
    const before = first
    painter.draw([fitted(cellsOf([span('ab|cd|ef|')]), 12), fitted(cellsOf([span('日本|é|x')]), 12)])
    expect((await screenAfter(writes))[0]).toBe('ab|cd|ef|   ')
    expect(before.length).toBeGreaterThan(0)
  })

  test('writes only rows that changed, and nothing where none did', () => {
    const writes: string[] = []
    const painter = createPainter((text) => writes.push(text), true)
    const rows = (text: string) => [fitted(cellsOf([span('same')]), 12), fitted(cellsOf([span(text)]), 12)]
    painter.draw(rows('one'))
    painter.draw(rows('one'))
    expect(writes).toHaveLength(1)
    painter.draw(rows('two'))
    expect(writes[1]).not.toContain('same')
    expect(writes[1]).toContain('two')
    painter.forget()
    painter.draw(rows('two'))
    expect(writes[2]).toContain('same')
  })

  test('has no colours without them', () => {
    const of = (colour: boolean) => {
      let written = ''
      const row = fitted(cellsOf([span('folder', 'folder'), span('mark', 'mark'), span('\u0007', 'error')]), 20)
      createPainter((text) => (written += text), colour).draw([row, selected(row, 'firm')])
      return written
    }
    const colours = /\[[\d;]*\b[34]\dm/
    expect(of(true)).toMatch(colours)
    expect(of(false)).not.toMatch(colours)
    expect(of(false)).toContain('\\u0007')
  })
})

describe('what a terminal sends', () => {
  const decode = (...chunks: readonly (string | Uint8Array)[]): readonly Input[] => {
    const decoder = createInputDecoder()
    return [...chunks.flatMap((chunk) => decoder.take(Buffer.from(chunk as string))), ...decoder.settle()]
  }
  const key = (name: string, ctrl?: true) => ({ kind: 'key', name, ...(ctrl ? { ctrl } : {}) })
  const text = (value: string) => ({ kind: 'text', text: value })

  test('keys', () => {
    expect(decode('\u001b[A\u001bOB\u001b[5~\u001b[1;5H\r\t\u007f\u0003\u001b[Z')).toEqual([
      ...[key('up'), key('down'), key('pageup'), key('home'), key('enter'), key('tab'), key('backspace')],
      ...[key('c', true), key('backtab')],
    ])
  })

  test('an escape alone is a key once nothing follows it', () => {
    const decoder = createInputDecoder()
    expect(decoder.take(Buffer.from('\u001b'))).toEqual([])
    expect(decoder.isOpen).toBe(true)
    expect(decoder.settle()).toEqual([key('escape')])
    expect(decode('\u001b', '[', 'C')).toEqual([key('right')])
    expect(decode('\u001b', 'q')).toEqual([key('escape'), text('q')])
  })

  test('text of an input method, cut between its bytes', () => {
    const bytes = Buffer.from('日本語')
    expect(decode(bytes.subarray(0, 2), bytes.subarray(2, 4), bytes.subarray(4))).toEqual([text('日'), text('本語')])
  })

  test('a paste is one text without what could act, however it is cut, and no key', () => {
    const pasted = '\u001b[200~one\r\ntwo\u001b[A\u0007\u202ex\u001b[20'
    expect(decode(pasted, '1~j')).toEqual([{ kind: 'paste', text: 'one two[Ax' }, text('j')])
  })

  test('what a terminal answers is passed over', () => {
    expect(decode('\u001b[12;40R\u001b[?62;4c\u001b]11;rgb:0000/0000/0000\u001b\\\u001bP>|xterm\u001b\\k')).toEqual([
      text('k'),
    ])
    expect(decode('\u001b]52;c;aGk=\u0007', 'a')).toEqual([text('a')])
    expect(decode(`\u001b]${'x'.repeat(10_000)}`)).toEqual([])
  })
})

describe('a line that is written', () => {
  const type = (...keys: readonly string[]) =>
    keys.reduce((editor, name) => edit(editor, { kind: 'key', name }) ?? insert(editor, name), editorOf(''))

  test('moves and takes away by what is seen as one character', () => {
    expect(type('a', family, accented, 'backspace')).toEqual({ text: `a${family}`, at: 1 + family.length })
    expect(type('日本', 'left', '々', 'home', 'delete', 'end', 'x').text).toBe('々本x')
    expect(edit(editorOf('two words'), { kind: 'key', name: 'w', ctrl: true })?.text).toBe('two ')
    expect(edit(editorOf('all'), { kind: 'key', name: 'u', ctrl: true })?.text).toBe('')
  })

  test('does not grow without end', () => {
    expect(insert(editorOf('x'), '日'.repeat(10_000)).text).toHaveLength(4096)
  })
})
