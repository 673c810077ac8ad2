/**
 * Reads every document of a folder in the worker of the product, and compares the words with those of the tools that a user would
 * take instead, as far as they are installed. Prints a table in Markdown. It needs a build.
 *
 *   npm run eval:documents -- FOLDER [--all] [--only EXTENSION,…] [--libraries FOLDER]
 *
 * `--all`: each file that is not read, or whose words do not agree, is named as well, with words that its reading has not.
 * `--libraries`: a folder with `node_modules` that has libraries of others to compare with (`references`).
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { createHost, workerLimits } from '../../src/core/kit/workers.ts'
import { formatOf, type ReadingAnswer, type ReadingJob } from '../../src/readings/formats.ts'
import type { LibraryJob } from './libraries.ts'

const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }
const [maxBytes, maxOutputBytes, timeoutMs] = [32 * 2 ** 20, 64 * 2 ** 20, 20_000]
/** The least share of the words of the reference that a reading has if it agrees. */
const leastRecall = 0.9
/** Maximum number of words that are named for a file. */
const maxNamed = 30

/** A command with its arguments; the file is the last one, or stands for `{}`. Or the name of a library. */
type Reference = readonly string[] | string

const pandoc = ['pandoc', '--to=plain', '--wrap=none']
const lynx = [
  'lynx',
  '-dump',
  '-nolist',
  '-width=1024',
  '-force_html',
  '-display_charset=utf-8',
  '-assume_charset=utf-8',
]
/** The references of each extension. Those that are installed are asked until a reading agrees with one. */
const references: Readonly<Record<string, readonly Reference[]>> = {
  pdf: [['pdftotext', '-q', '{}', '-'], 'pdfjs-dist'],
  doc: ['word-extractor', ['catdoc', '-d', 'utf-8']],
  xls: ['xlsx', ['xls2csv', '-d', 'utf-8']],
  xlsx: ['xlsx'],
  xlsm: ['xlsx'],
  xlsb: ['xlsx'],
  ods: ['xlsx'],
  ppt: [['catppt', '-d', 'utf-8']],
  pptx: ['officeparser'],
  odp: ['officeparser'],
  msg: ['@kenjiuno/msgreader', 'msgconvert'],
  eml: ['postal-mime'],
  html: [lynx],
  htm: [lynx],
  xhtml: [lynx],
  docx: ['mammoth', pandoc],
  odt: [pandoc],
  rtf: ['rtf-parser', pandoc],
  epub: [pandoc],
  ipynb: [pandoc],
}

interface FormatCount {
  files: number
  read: number
  encrypted: number
  /** Scans: documents without text. */
  empty: number
  /** Files that end the worker. */
  failed: number
  /** Files from which the reference has words. */
  compared: number
  agreed: number
  /** Files that are not read although the reference has words. */
  missed: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'boolean' }, only: { type: 'string' }, libraries: { type: 'string' } },
})
const [folder] = positionals
if (folder === undefined) throw new Error('Name a folder: npm run eval:documents -- FOLDER')
const only = values.only?.split(',')

const run = promisify(execFile)
const missing = new Set<Reference>()
let libraries: ChildProcess | undefined

function nameOf(reference: Reference): string {
  return typeof reference === 'string' ? reference : (reference[0] ?? '')
}

/** The texts that the references have; those that fail have none. */
async function* referenceTexts(extension: string, file: string): AsyncGenerator<string> {
  for (const reference of references[extension] ?? []) {
    if (missing.has(reference)) continue
    const { text = '', isMissing } = await (typeof reference === 'string'
      ? textOfLibrary({ library: reference, file })
      : textOfCommand(reference, file))
    if (isMissing) missing.add(reference)
    else yield text
  }
}

interface ReferenceText {
  readonly text?: string | undefined
  readonly isMissing?: boolean
}

async function textOfCommand([command = '', ...rest]: readonly string[], file: string): Promise<ReferenceText> {
  const args = rest.includes('{}') ? rest.map((part) => (part === '{}' ? file : part)) : [...rest, file]
  try {
    return { text: (await run(command, args, { timeout: timeoutMs, maxBuffer: maxOutputBytes })).stdout }
  } catch (error) {
    return { isMissing: (error as NodeJS.ErrnoException).code === 'ENOENT' }
  }
}

async function textOfLibrary(job: LibraryJob): Promise<ReferenceText> {
  if (values.libraries === undefined) return { isMissing: true }
  libraries ??= fork(join(import.meta.dirname, 'libraries.ts'), [values.libraries], {
    stdio: 'ignore',
    env: { ...process.env, TZ: 'UTC' },
  })
  const child = libraries
  child.send(job)
  const done = new AbortController()
  const late = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([done.signal, late])
  try {
    return (await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(() => [{}]),
    ]).then(([answer]) => answer)) as ReferenceText
  } catch {
    return {}
  } finally {
    done.abort()
    if (late.aborted) child.kill('SIGKILL')
    if (late.aborted || child.exitCode !== null || child.signalCode !== null) libraries = undefined
  }
}

/**
 * What references print and documents do not show, by extension: lynx names the targets of a page's head, and catppt the designs,
 * whose names are records of type 0xfba.
 */
function isShown(line: string, extension: string, source: string): boolean {
  if (extension === 'ppt')
    return !['\x20\0\xba\x0f', '\x30\0\xba\x0f'].some((head) =>
      source.includes(
        head +
          Buffer.from([line.length * 2, 0, 0, 0]).toString('latin1') +
          Buffer.from(line, 'utf16le').toString('latin1'),
      ),
    )
  return !(references[extension]?.includes(lynx) && /^\s*(?:REFRESH\(|#)/.test(line))
}

/** Names that lynx writes in place of buttons, frames, insertions, and pictures without another text. */
const lynxMarks =
  /^\s*IFRAME: .*$|\(BUTTON\)|\[BUTTON Input\]|\[INS:|:INS\]|\[[^\]\s]*\.(?:png|jpe?g|gif|svg|webp)[^\]\s]*\]/gim

/** Each character is a word of a script that writes no spaces between words. */
function wordsIn(text: string): ReadonlySet<string> {
  return new Set(
    text
      // The hyphen of a word that may be parted, but is not.
      .replaceAll('\u00ad', '')
      .normalize('NFKC')
      .toLowerCase()
      .replaceAll('\u00ad', '')
      .match(/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|[\p{L}\p{N}]+/gu),
  )
}

/** The words that a text has not. Characters between words are not compared, since tools part words differently. */
function absentFrom(text: string, words: ReadonlySet<string>): readonly string[] {
  const own = wordsIn(text)
  return [...words].filter((word) => !own.has(word))
}

const worker = join(import.meta.dirname, '../../dist/readings/worker.js')
const host = createHost<ReadingJob, ReadingAnswer>(worker, workerLimits.documents)
const counts = new Map<string, FormatCount>()
const peak = { mib: 0, path: '' }
let current = ''
setInterval(() => {
  const mib = Math.round(process.memoryUsage.rss() / 2 ** 20)
  if (mib > peak.mib) Object.assign(peak, { mib, path: current })
}, 20).unref()

for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
  const file = join(folder, path)
  const extension = extname(path).slice(1).toLowerCase()
  const format = formatOf(path, undefined)
  if (format === undefined || only?.includes(extension) === false) continue
  const status = statSync(file)
  if (!status.isFile() || status.size === 0 || status.size > maxBytes) continue
  const zero = { files: 0, read: 0, encrypted: 0, empty: 0, failed: 0, compared: 0, agreed: 0, missed: 0 }
  const count: FormatCount = counts.get(extension) ?? zero
  counts.set(extension, count)
  count.files++
  current = path
  const bytes = readFileSync(file)
  const job: ReadingJob = { format, form: 'text', bytes, limits }
  const outcome = await host.run(job, new AbortController().signal)
  const answer = 'failure' in outcome ? undefined : outcome.result
  const text = answer !== undefined && 'reading' in answer ? answer.reading.text : undefined
  const fault = 'failure' in outcome ? outcome.failure : 'message' in outcome.result ? outcome.result.message : ''
  if (text !== undefined) count.read++
  else if (answer === undefined) count.failed++
  else if ('reason' in answer && answer.reason === 'withheld') count.encrypted++
  else if (fault.startsWith('The document holds no text')) count.empty++
  const source = bytes.toString('latin1')
  let [hasWords, recall] = [false, 0]
  let absent: readonly string[] = []
  for await (const referenceText of referenceTexts(extension, file)) {
    const lines = referenceText.split(/[\n\f]/).filter((line) => isShown(line, extension, source))
    const shown = lines.join('\n')
    const words = wordsIn(references[extension]?.includes(lynx) ? shown.replace(lynxMarks, '') : shown)
    if (words.size === 0) continue
    const without = absentFrom(text ?? '', words)
    if (!hasWords || 1 - without.length / words.size > recall) {
      absent = without
      recall = 1 - without.length / words.size
    }
    hasWords = true
    if (text === undefined || recall >= leastRecall) break
  }
  if (answer === undefined) console.error(`${path}: ${fault}`)
  if (!hasWords) {
    if (values.all === true && fault !== '') console.error(`(${path}: ${fault})`)
    continue
  }
  count.compared++
  if (text === undefined) count.missed++
  else if (recall >= leastRecall) count.agreed++
  if (values.all === true && recall < leastRecall)
    console.error(
      `${path}: ${fault === '' ? `recall ${recall.toFixed(2)}, without ${absent.slice(0, maxNamed).join(' ')}` : fault}`,
    )
}

console.log(
  '| format | reference | files | read | encrypted | without text | failed | agree | not read, but by the reference |',
)
console.log('|---|---|---|---|---|---|---|---|---|')
for (const [extension, count] of [...counts].sort(([a], [b]) => a.localeCompare(b))) {
  const installed = (references[extension] ?? []).filter((reference) => !missing.has(reference))
  const agreed = count.compared === 0 ? '' : `${count.agreed} of ${count.compared}`
  const { files, read, encrypted, empty, failed, missed } = count
  const name = installed.length === 0 ? 'none' : installed.map(nameOf).join(' or ')
  console.log(
    `| \`.${extension}\` | ${name} | ${files} | ${read} | ${encrypted} | ${empty} | ${failed} | ${agreed} | ${missed} |`,
  )
}
console.log(`\nPeak memory: ${peak.mib} MiB, with ${peak.path}.`)
libraries?.kill()
host.close()
