/**
 * Reads every document of a folder in the worker of the product, and compares the words with those of the tools that a user would
 * take instead, as far as they are installed. Prints a table in Markdown. It needs a build.
 *
 *   npm run eval:documents -- FOLDER [--all] [--only EXTENSION,…] [--libraries FOLDER] [--alone]
 *
 * `--all`: each file that is not read, or whose words do not agree, is named as well, with words that its reading has not.
 * `--alone`: no reference is asked, so that the peak of memory is that of the readings.
 * `--libraries`: a folder with `node_modules` that has libraries of others to compare with (`references`).
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import iconv from 'iconv-lite'
import { createTaskWorker, workerLimits } from '../../src/core/kit/workers.ts'
import { documentFormatOf, type ReadingAnswer, type ReadingJob } from '../../src/readings/formats.ts'
import type { LibraryJob } from './libraries.ts'
import { createOffice } from './office.ts'
import { usedRecords } from './presentations.ts'

const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }
const [maxBytes, maxOutputBytes, timeoutMs] = [32 * 2 ** 20, 64 * 2 ** 20, 20_000]
/** The least share of the words of the reference that a reading has if it agrees. */
const leastRecall = 0.9
/** The least share of the words of a reference that another one has if they do not contradict each other. */
const leastAccord = 0.9
/** The share of characters without meaning from which on a line of a reference is no text. */
const garbageShare = 0.1
/** Maximum number of words that are named for a file. */
const maxNamed = 30

/** A command with its arguments; the file is the last one, or stands for `{}`. Or the name of a library. */
type Tool = readonly string[] | string
type Reference = Tool | OfficeReference

/** LibreOffice, and the tool that reads what it makes of a file. */
interface OfficeReference {
  readonly office: ReturnType<typeof createOffice>
  readonly tool: Tool
}

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
const catppt = ['catppt', '-d', 'utf-8']
const pdftotext = ['pdftotext', '-q', '{}', '-']
const mutool = ['mutool', 'draw', '-q', '-F', 'txt', '-o', '-']
const python = ['python3', join(import.meta.dirname, 'mail.py')]
interface FormatCount {
  files: number
  read: number
  encrypted: number
  /** Scans: documents without text. */
  empty: number
  /** Bombs: documents that are refused for what they would unpack to, or for a document type definition. */
  refused: number
  /** Files that end the worker. */
  failed: number
  /** Files from which references have words. */
  compared: number
  agreed: number
  /** Of these, files on which the references do not contradict each other. */
  undisputed: number
  agreedUndisputed: number
  /** Files that are not read although the reference has words. */
  missed: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean' },
    alone: { type: 'boolean' },
    only: { type: 'string' },
    libraries: { type: 'string' },
  },
})
const [folder] = positionals
if (folder === undefined) throw new Error('Name a folder: npm run eval:documents -- FOLDER')
const only = values.only?.split(',')

const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => documentFormatOf(path, undefined) !== undefined && only?.includes(extensionOf(path)) !== false)
  .filter((path) => isMeasured(statSync(join(folder, path))))
  .sort()

function extensionOf(path: string): string {
  return extname(path).slice(1).toLowerCase()
}

function isMeasured(status: Stats): boolean {
  return status.isFile() && status.size > 0 && status.size <= maxBytes
}

const officeOf = (target: 'txt:Text' | 'pptx', extensions: readonly string[]) =>
  createOffice(
    paths.filter((path) => extensions.includes(extensionOf(path))).map((path) => join(folder, path)),
    target,
  )
const written = { office: officeOf('txt:Text', ['doc', 'rtf', 'odt']), tool: ['cat'] }
const slides = { office: officeOf('pptx', ['ppt']), tool: 'officeparser' }

/** The references of each extension. Those that are installed are asked. */
const references: Readonly<Record<string, readonly Reference[]>> = {
  pdf: [pdftotext, 'pdfjs-dist', mutool],
  doc: ['word-extractor', ['catdoc', '-d', 'utf-8'], ['antiword', '-t', '-w', '0', '-m', 'UTF-8.txt'], written],
  xls: ['xlsx', ['xls2csv', '-d', 'utf-8']],
  xlsx: ['xlsx'],
  xlsm: ['xlsx'],
  xlsb: ['xlsx'],
  ods: ['xlsx'],
  ppt: [catppt, slides],
  pptx: ['officeparser'],
  odp: ['officeparser'],
  msg: ['@kenjiuno/msgreader', 'msgconvert'],
  eml: ['postal-mime', python],
  mbox: [python],
  mhtml: [python],
  mht: [python],
  html: [lynx],
  htm: [lynx],
  xhtml: [lynx],
  docx: ['mammoth', pandoc],
  odt: [pandoc, written],
  rtf: [pandoc, 'unrtf', written],
  epub: [pandoc, mutool],
  ipynb: [pandoc],
}

const run = promisify(execFile)
const missing = new Set<Reference>()
let libraries: ChildProcess | undefined

function nameOf(reference: Reference): string {
  if (typeof reference === 'string') return reference
  if ('office' in reference) return 'LibreOffice'
  return reference === python ? 'Python' : (reference[0] ?? '')
}

/** The texts that the references have, without those that fail. */
async function* referenceTexts(
  extension: string,
  file: string,
): AsyncGenerator<{ readonly reference: Reference; readonly text: string }> {
  for (const reference of references[extension] ?? []) {
    if (values.alone === true || missing.has(reference)) continue
    const { text, isMissing } = await (typeof reference === 'object' && 'office' in reference
      ? textOfOffice(reference, file)
      : textOfTool(reference, file))
    if (isMissing) missing.add(reference)
    else if (text !== undefined) yield { reference, text }
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

async function textOfOffice({ office, tool }: OfficeReference, file: string): Promise<ReferenceText> {
  const { path, isMissing } = await office.pathOf(file)
  return path === undefined ? { isMissing } : textOfTool(tool, path)
}

function textOfTool(tool: Tool, file: string): Promise<ReferenceText> {
  return typeof tool === 'string' ? textOfLibrary({ library: tool, file }) : textOfCommand(tool, file)
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
 * What references print and documents do not show: lynx names the targets of a page's head; catppt reads records of
 * earlier edits, and the names of designs, which are records of type 0xfba; antiword and pandoc mark pictures.
 */
function isShown(line: string, reference: Reference, used: string): boolean {
  if (reference === catppt) {
    const wide = Buffer.from(line, 'utf16le').toString('latin1')
    const size = Buffer.from([line.length * 2, 0, 0, 0]).toString('latin1')
    const isDesign = ['\x20\0\xba\x0f', '\x30\0\xba\x0f'].some((head) => used.includes(head + size + wide))
    return !isDesign && (used.includes(wide) || used.includes(line))
  }
  return !(reference === lynx && /^\s*(?:REFRESH\(|#)/.test(line)) && !isGarbage(line)
}

/** A tenth of its characters are control characters, or have no meaning: what no font or table of characters explains. */
function isGarbage(line: string): boolean {
  const characters = line.match(/\S/gu)?.length ?? 0
  return (line.match(/(?!\s)[\p{Cc}\p{Cn}\p{Co}]/gu)?.length ?? 0) > characters * garbageShare
}

/** Names that lynx writes in place of buttons, frames, insertions, and pictures without another text. */
const lynxMarks =
  /^\s*IFRAME: .*$|\(BUTTON\)|\[BUTTON Input\]|\[INS:|:INS\]|\[[^\]\s]*\.(?:png|jpe?g|gif|svg|webp)[^\]\s]*\]/gim
/** What references print in place of what is no text, by extension. */
const marks: Readonly<Record<string, RegExp>> = {
  html: lynxMarks,
  htm: lynxMarks,
  xhtml: lynxMarks,
  doc: /\[pic\]/g,
  docx: /^\[[^\]]*\]$/gm,
}
const definition = /^The document has a document type definition/

/** Encodings of texts that references take for Latin. */
const encodings = [
  'windows-1250',
  'windows-1251',
  'koi8-r',
  'macintosh',
  'gb18030',
  'shift_jis',
  'euc-jp',
  'big5',
  'euc-kr',
]

/** The words of a reference that takes the text for Latin, in other encodings. */
function* recoded(text: string): Generator<ReadonlySet<string>> {
  if (!/[^\0-\x7f]/.test(text)) return
  const bytes = iconv.encode(text, 'windows-1252')
  for (const encoding of encodings) yield wordsIn(iconv.decode(bytes, encoding))
}

/** Whether no reference has the words of another one. */
function areDisputed(all: readonly ReadonlySet<string>[]): boolean {
  const accord = (words: ReadonlySet<string>, other: ReadonlySet<string>) =>
    [...words].filter((word) => other.has(word)).length >= words.size * leastAccord
  return all.length > 1 && !all.some((words) => all.some((other) => words !== other && accord(words, other)))
}

/** Each character is a word of a script that writes no spaces between words. */
function wordsIn(text: string): ReadonlySet<string> {
  return new Set(
    text
      // The hyphen of a word that may be parted, but is not, and marks of direction.
      .replaceAll(/[\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
      .normalize('NFKC')
      .toLowerCase()
      .replaceAll('\u00ad', '')
      .match(/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|[\p{L}\p{N}]+/gu),
  )
}

/** The words of a reference that a reading has not. */
interface Comparison {
  readonly recall: number
  readonly absent: readonly string[]
}

/**
 * The words that a text has not. Characters between words are not compared, since tools part words differently, and words at the
 * ends of lines may be written together.
 */
function absentFrom(text: string, words: ReadonlySet<string>): readonly string[] {
  const own = new Set(wordsIn(text))
  for (const [, last = '', first = ''] of text.matchAll(/([\p{L}\p{N}]+)\n+(?=[ \t]*([\p{L}\p{N}]+))/gu))
    for (const word of wordsIn(last + first)) own.add(word)
  return [...words].filter((word) => !own.has(word))
}

const worker = join(import.meta.dirname, '../../dist/readings/worker.js')
const host = createTaskWorker<ReadingJob, ReadingAnswer>(worker, workerLimits.documents)
const counts = new Map<string, FormatCount>()
const peak = { mib: 0, path: '' }
let current = ''
setInterval(() => {
  const mib = Math.round(process.memoryUsage.rss() / 2 ** 20)
  if (current !== '' && mib > peak.mib) Object.assign(peak, { mib, path: current })
}, 20).unref()

for (const path of paths) {
  const file = join(folder, path)
  const extension = extensionOf(path)
  const format = documentFormatOf(path, undefined)
  if (format === undefined) continue
  const zero = {
    files: 0,
    read: 0,
    encrypted: 0,
    empty: 0,
    refused: 0,
    failed: 0,
    compared: 0,
    agreed: 0,
    undisputed: 0,
    agreedUndisputed: 0,
    missed: 0,
  }
  const count: FormatCount = counts.get(extension) ?? zero
  counts.set(extension, count)
  count.files++
  current = path
  const bytes = readFileSync(file)
  const job: ReadingJob = { format, form: 'text', bytes, limits }
  const outcome = await host.run(job, new AbortController().signal)
  current = ''
  const answer = 'failure' in outcome ? undefined : outcome.result
  const text = answer !== undefined && 'reading' in answer ? answer.reading.text : undefined
  const fault = 'failure' in outcome ? outcome.failure : 'message' in outcome.result ? outcome.result.message : ''
  if (text !== undefined) count.read++
  else if (answer === undefined) count.failed++
  else if ('reason' in answer && answer.reason === 'withheld') count.encrypted++
  else if (fault.startsWith('The document holds no text')) count.empty++
  const isRefused = (answer !== undefined && 'kind' in answer && answer.kind === 'too-large') || definition.test(fault)
  if (isRefused) count.refused++
  const used = extension === 'ppt' ? usedRecords(bytes) : ''
  const texts: string[] = []
  let asked = 0
  for await (const { reference, text: referenceText } of referenceTexts(extension, file)) {
    asked++
    const lines = referenceText.split(/[\n\f]/).filter((line) => isShown(line, reference, used))
    const shown = lines.join('\n').replace(marks[extension] ?? '', '')
    // A soft hyphen within a line of a page is drawn.
    const drawn = extension === 'pdf' ? shown.replace(/\u00ad(?=\S)/g, '-') : shown
    if (wordsIn(drawn).size > 0) texts.push(drawn)
  }
  if (answer === undefined) console.error(`${path}: ${fault}`)
  // A text that most references do not find is none.
  if (isRefused || texts.length === 0 || texts.length * 2 < asked) {
    if (values.all === true && fault !== '') console.error(`(${path}: ${fault})`)
    continue
  }
  const all = texts.map(wordsIn)
  let best: Comparison = { recall: -1, absent: [] }
  const compare = (words: ReadonlySet<string>) => {
    const absent = absentFrom(text ?? '', words)
    const recall = 1 - absent.length / words.size
    if (recall > best.recall) best = { recall, absent }
  }
  for (const words of all) if (best.recall < leastRecall) compare(words)
  for (const referenceText of texts)
    for (const words of recoded(referenceText)) if (best.recall < leastRecall) compare(words)
  const { recall, absent } = best
  const isDisputed = areDisputed(all)
  count.compared++
  if (!isDisputed) count.undisputed++
  if (text === undefined) count.missed++
  else if (recall >= leastRecall) {
    count.agreed++
    if (!isDisputed) count.agreedUndisputed++
  }
  if (values.all === true && recall < leastRecall)
    console.error(
      `${path}${isDisputed ? ', on which the references contradict each other' : ''}: ${fault === '' ? `recall ${recall.toFixed(2)}, without ${absent.slice(0, maxNamed).join(' ')}` : fault}`,
    )
}

console.log(
  '| format | reference | files | read | encrypted | without text | refused | failed | agree | agree where the references do | not read, but by the reference |',
)
console.log('|---|---|---|---|---|---|---|---|---|---|---|')
for (const [extension, count] of [...counts].sort(([a], [b]) => a.localeCompare(b))) {
  const installed = (references[extension] ?? []).filter((reference) => !missing.has(reference))
  const agreed = count.compared === 0 ? '' : `${count.agreed} of ${count.compared}`
  const { files, read, encrypted, empty, refused, failed, missed } = count
  const undisputed = count.compared === 0 ? '' : `${count.agreedUndisputed} of ${count.undisputed}`
  const name = installed.length === 0 ? 'none' : installed.map(nameOf).join(' or ')
  console.log(
    `| \`.${extension}\` | ${name} | ${files} | ${read} | ${encrypted} | ${empty} | ${refused} | ${failed} | ${agreed} | ${undisputed} | ${missed} |`,
  )
}
console.log(`\nPeak memory: ${peak.mib} MiB, with ${peak.path}.`)
libraries?.kill()
for (const { office } of [written, slides]) office.close()
host.close()
