import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { childLimits, pdfiumMemoryBytes, workerLimits } from '../../src/core/kit/workers.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/limits.md'), 'utf8')

/** The cells of the row of the page whose first cell begins so. */
function rowOf(start: string): string {
  const row = page.split('\n').find((line) => line.startsWith(`| ${start}`))
  if (row === undefined) throw new Error(`docs/limits.md has no row "${start}"`)
  return row
}

const size = (bytes: number) =>
  bytes >= 2 ** 30 && bytes % 2 ** 30 === 0 ? `${bytes / 2 ** 30} GiB` : `${bytes / 2 ** 20} MiB`
const workerOf = ({ memoryMb, timeoutMs }: { readonly memoryMb: number; readonly timeoutMs: number }) => [
  `${memoryMb} MiB of JavaScript`,
  `${timeoutMs / 1000} seconds`,
]

test.each([
  ['`git`, for one answer', [size(childLimits.git(1).memoryBytes)]],
  ['`git cat-file`', [size(childLimits.gitObjects(0).memoryBytes)]],
  ['the process that reads a file of SQLite', [size(childLimits.sqlite(0).memoryBytes)]],
  ['the program that captures a screen', [size(childLimits.screen(1, 1).memoryBytes)]],
  ['`tesseract` for one page', [size(childLimits.ocr(1).memoryBytes)]],
  ['the command of a `remote` mount', [size(childLimits.remoteCommand().memoryBytes)]],
  [
    'the worker thread that reads documents',
    [...workerOf(workerLimits.documents), `${size(pdfiumMemoryBytes)} of PDFium`],
  ],
  ['the worker thread that looks for secrets', workerOf(workerLimits.redaction)],
  ['the worker thread that parses settings', workerOf(workerLimits.settings)],
])('docs/limits.md has the limits of %s', (start, expected) => {
  for (const words of expected) expect(rowOf(start)).toContain(words)
})

test('only one file has numbers for the memory of child processes and workers', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const found = files
    .filter((file) => file.endsWith('.ts') && file !== join('core', 'kit', 'workers.ts'))
    .filter((file) => {
      const code = readFileSync(join(root, 'src', file), 'utf8')
      return /\b(?:memoryMb|memoryBytes|maxOldGenerationSizeMb)\s*[:=]\s*\d|maxMemory\s*=/.test(code)
    })
  expect(found).toEqual([])
})
