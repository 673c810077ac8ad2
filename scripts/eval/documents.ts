/**
 * Reads every document of a folder, and compares the words with those of the tools that a user would take instead, as far as they
 * are installed. Prints a table in Markdown.
 *
 *   npm run eval:documents -- FOLDER [--all]
 *
 * `--all`: each file that is not read, or whose words do not agree, is named as well.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { isResourceError } from '../../src/core/errors.ts'
import { formatOf } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'

const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }
const [maxBytes, maxOutputBytes, timeoutMs] = [32 * 2 ** 20, 64 * 2 ** 20, 20_000]
/** The least share of the words of the reference that a reading has if it agrees. */
const leastRecall = 0.9

const pandoc = ['pandoc', '--to=plain', '--wrap=none']
/** The commands that print a document as text, by extension. The file is their last argument, or stands for `{}`. */
const references: Readonly<Record<string, readonly string[]>> = {
  pdf: ['pdftotext', '-q', '{}', '-'],
  doc: ['catdoc', '-d', 'utf-8'],
  xls: ['xls2csv', '-d', 'utf-8'],
  ppt: ['catppt', '-d', 'utf-8'],
  html: ['lynx', '-dump', '-nolist', '-force_html', '-display_charset=utf-8'],
  htm: ['lynx', '-dump', '-nolist', '-force_html', '-display_charset=utf-8'],
  docx: pandoc,
  odt: pandoc,
  rtf: pandoc,
  epub: pandoc,
  ipynb: pandoc,
}

interface FormatCount {
  files: number
  read: number
  encrypted: number
  /** Files from which the reference has words. */
  compared: number
  agreed: number
  /** Files that are not read although the reference has words. */
  missed: number
}

const run = promisify(execFile)
const missing = new Set<string>()

/** The text that the reference prints; `undefined` if it is not installed or fails. */
async function referenceText(extension: string, file: string): Promise<string | undefined> {
  const [command, ...rest] = references[extension] ?? []
  if (command === undefined || missing.has(command)) return undefined
  const args = rest.includes('{}') ? rest.map((part) => (part === '{}' ? file : part)) : [...rest, file]
  try {
    return (await run(command, args, { timeout: timeoutMs, maxBuffer: maxOutputBytes })).stdout
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') missing.add(command)
    return undefined
  }
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu),
  )
}

function recallOf(text: string, words: ReadonlySet<string>): number {
  const own = wordsIn(text)
  return [...words].filter((word) => own.has(word)).length / words.size
}

const [folder, ...options] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name a folder: npm run eval:documents -- FOLDER')
const names = options.includes('--all')
const counts = new Map<string, FormatCount>()
let peakMib = 0

for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
  const file = join(folder, path)
  const extension = extname(path).slice(1).toLowerCase()
  const format = formatOf(path, undefined)
  const status = statSync(file)
  if (format === undefined || !status.isFile() || status.size === 0 || status.size > maxBytes) continue
  const count = counts.get(extension) ?? { files: 0, read: 0, encrypted: 0, compared: 0, agreed: 0, missed: 0 }
  counts.set(extension, count)
  count.files++
  let text: string | undefined
  let fault = ''
  try {
    text = (await readDocument({ format, form: 'text', bytes: readFileSync(file), limits })).text
    count.read++
  } catch (error) {
    if (!isResourceError(error)) console.error(`${path}: ${String(error)}`)
    fault = error instanceof Error ? error.message : String(error)
    if (isResourceError(error) && error.detail.reason === 'withheld') count.encrypted++
  }
  peakMib = Math.max(peakMib, Math.round(process.memoryUsage.rss() / 2 ** 20))
  const words = wordsIn((await referenceText(extension, file)) ?? '')
  if (words.size === 0) continue
  count.compared++
  const recall = text === undefined ? 0 : recallOf(text, words)
  if (text === undefined) count.missed++
  else if (recall >= leastRecall) count.agreed++
  if (names && recall < leastRecall) console.error(`${path}: ${fault === '' ? `recall ${recall.toFixed(2)}` : fault}`)
}

console.log('| format | reference | files | read | encrypted | agree | not read, but by the reference |')
console.log('|---|---|---|---|---|---|---|')
for (const [extension, count] of [...counts].sort(([a], [b]) => a.localeCompare(b))) {
  const command = references[extension]?.[0]
  const reference = command === undefined || missing.has(command) ? 'none' : command
  const agreed = count.compared === 0 ? '' : `${count.agreed} of ${count.compared}`
  console.log(
    `| \`.${extension}\` | ${reference} | ${count.files} | ${count.read} | ${count.encrypted} | ${agreed} | ${count.missed} |`,
  )
}
console.log(`\nPeak memory: ${peakMib} MiB.`)
