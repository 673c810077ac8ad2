import { describe, expect, test } from 'vitest'
import { maxCells, notebookOf } from '../../src/explorer/web/preview/model/documents.ts'

const notebook = (cells: readonly unknown[], name = 'python') => ({
  nbformat: 4,
  metadata: { language_info: { name } },
  cells,
})
const code = (source: unknown, outputs: readonly unknown[] = []) => ({
  ...{ cell_type: 'code', execution_count: 3, source, outputs },
})

describe('a notebook in the explorer', () => {
  test('has its texts, code in a fence of its language, and outputs', () => {
    const outputs = [
      { output_type: 'stream', text: ['one\n', 'two\n'] },
      { output_type: 'execute_result', data: { 'text/html': '<script>1</script>', 'text/plain': '42' } },
      { output_type: 'display_data', data: { 'image/png': 'iVBO\nRw0=', 'text/plain': '<Figure>' } },
      { output_type: 'error', ename: 'ValueError', evalue: '\u001b[31mno tea\u001b[0m' },
    ]
    const cells = [{ cell_type: 'markdown', source: ['# Tea\n', 'green'] }, code('print("``` in it")', outputs)]
    expect(notebookOf(notebook(cells))).toEqual({
      isCut: false,
      cells: [
        { markdown: '# Tea\ngreen', outputs: [] },
        {
          markdown: '````python\nprint("``` in it")\n````\n',
          count: 3,
          outputs: [
            { kind: 'text', text: 'one\ntwo\n' },
            { kind: 'text', text: '42' },
            { kind: 'image', base64: 'iVBORw0=' },
            { kind: 'error', text: 'ValueError: no tea' },
          ],
        },
      ],
    })
  })

  test('that is very long is truncated and marked so; invalid cells are left out, and an invalid document is not shown as a notebook', () => {
    const long = notebookOf(notebook(Array.from({ length: maxCells + 1 }, () => code('1'))))
    expect([long?.cells.length, long?.isCut]).toEqual([maxCells, true])
    expect(notebookOf(notebook([null, 7, { cell_type: 'raw' }]))?.cells).toEqual([
      { markdown: '```\n\n```\n', outputs: [] },
    ])
    expect(notebookOf({ cells: [] })).toBeUndefined()
    expect(notebookOf([])).toBeUndefined()
  })

  test('ignores a name of its language that would end the code fence', () => {
    expect(notebookOf(notebook([code('1')], 'a\n```'))?.cells[0]?.markdown).toBe('```python\n1\n```\n')
  })
})
