import { isUtf8 } from 'node:buffer'
import { invalid, tooLarge } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import type { Content } from '../../core/provider.ts'
import { decodeBytes, hasZeros } from '../../text/encoding/decode.ts'
import { detectEncoding } from '../../text/encoding/detect.ts'
import type { Launcher } from './launch.ts'
import type { Settings } from './options.ts'

/** Characters that hide adjacent text or control a terminal: control characters, and those that change the writing direction. */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Formats untrusted names, messages and paths as one line: hidden and direction-changing characters become `\u{…}`. */
export function oneLine(text: string, most = 500): string {
  const shown = text.length > most ? `${text.slice(0, most)}…` : text
  return shown.toWellFormed().replace(hidden, escapeCharacter)
}

/** Formats untrusted text of several lines like {@link oneLine}, but keeps line feeds and tabs. */
export function manyLines(text: string): string {
  const lines = text.replace(/\r\n/g, '\n').toWellFormed()
  return lines.replace(hidden, (c) => (c === '\n' || c === '\t' ? c : escapeCharacter(c)))
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

/** Abbreviates an id for display. Twelve digits identify a commit in practice, and can be used in reads. */
export function shortId(oid: string): string {
  return oid.slice(0, 12)
}

/** Decodes the output of a process, up to its last whole line if it was cut. */
export function wholeLines({ bytes, cut }: { readonly bytes: Buffer; readonly cut: boolean }): string {
  return (cut ? bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1) : bytes).toString('utf8')
}

/** Decodes lines of a file in their detected encoding. */
function decodeLines(bytes: Uint8Array): string {
  return decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
}

/** Returns the mark that tells a model that something was left out. */
export function cutMark(what: string): string {
  return `[cut: ${what}]`
}

/** The generated text of a resource. */
export interface TextPage {
  readonly text: string
  readonly cut: boolean
  readonly version?: string
  readonly immutable?: boolean
}

export const pageType = 'text/plain'

export function contentOf({ text, cut, version, immutable }: TextPage): Content {
  return {
    text,
    mimeType: pageType,
    ...defined({ version }),
    ...(immutable === true ? { immutable } : {}),
    ...(cut ? { meta: { 'dev.hikidashi/truncated': true } } : {}),
  }
}

interface DifferenceQuery {
  /** Ids of commits or trees. */
  readonly from: string
  readonly to: string
  /** The only file or directory to compare. */
  readonly path?: string
  /** Note after the numbers, such as `against the first parent`. */
  readonly note?: string
}

export type DifferenceSettings = Pick<Settings, 'maxBytes' | 'withheld'>

interface FileChange {
  readonly added?: number
  readonly removed?: number
  readonly path: string
  /** The name before a rename. */
  readonly before?: string
}

/** Maximum length of a patch, in bytes, and maximum number of files that are named. */
const maxPatchBytes = 256 * 1024
const maxFiles = 300
const maxNumbersBytes = 4 * 1024 * 1024

/** Lines of a patch that name files. (A removed line can look the same; it is then formatted the same.) */
const named = /^(?:diff --git |--- |\+\+\+ |rename |copy |Binary files ).*$/gm

/** Compares two trees, without any driver, filter or external program. Returns the changes of each file, and the patch, as text. */
export async function readDifference(
  launcher: Launcher,
  { from, to, path, note }: DifferenceQuery,
  { maxBytes, withheld }: DifferenceSettings,
  signal: AbortSignal,
) {
  const ends = ['--end-of-options', from, to, '--', ...(path === undefined ? [] : [path])]
  const plain = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color']
  const limit = Math.min(maxPatchBytes, maxBytes)
  const [numbers, patch] = await Promise.all([
    launcher.run({ args: ['diff-tree', ...plain, '--numstat', '-z', ...ends], limit: maxNumbersBytes, signal }),
    launcher.run({ args: ['diff-tree', ...plain, '--patch', ...ends], limit, signal }),
  ])
  const changes = parseNumbers(numbers.bytes.toString('utf8'))
  const cut = numbers.cut || patch.cut || changes.length > maxFiles
  const lines = [
    ...(changes.length === 0 ? ['No changes.'] : [summaryOf(changes, numbers.cut, note)]),
    ...changes.slice(0, maxFiles).map(formatChange),
    ...(changes.length > maxFiles || numbers.cut
      ? [cutMark(`more files changed than the ${Math.min(changes.length, maxFiles)} shown`)]
      : []),
  ]
  const end = patch.cut
    ? `${cutMark(`the patch is longer than ${limit} bytes; see one file with diff/FROM/TO?path=`)}\n`
    : ''
  // git appends a tab to a name that contains a space.
  const shown = withoutFiles(textOf(patch), withheld).replace(named, (line) =>
    oneLine(line.replace(/\t$/, ''), Number.POSITIVE_INFINITY),
  )
  return { text: `${lines.join('\n')}\n${shown === '' ? '' : '\n'}${shown}${end}`, cut }
}

/** Replaces the changes of the withheld files of a patch by a note, and leaves out their object ids, which are hashes of the contents. */
function withoutFiles(patch: string, withheld: DifferenceSettings['withheld']): string {
  const files = patch.split(/^(?=diff --git )/m).map((file) => {
    const head = file.slice(0, /^(?:@@ |GIT binary patch)/m.exec(file)?.index)
    const names = Array.from(head.matchAll(/^(?:--- |\+\+\+ |rename (?:from|to) )(.*)$/gm), ([, name = '']) => name)
    // A change without lines, or of a binary file, is named on the first line only: twice the same.
    const both = /^diff --git (.*)$/m.exec(head)?.[1] ?? ''
    const paths = [...names, both.slice((both.length + 1) / 2)].map((name) =>
      name.replace(/^"?(?:[ab]\/)?|"?\t?$/g, ''),
    )
    if (!paths.some(withheld)) return file
    return `${head.replace(/^index .*\n/m, '')}[redacted] The changes are withheld: files of this name hold secrets.\n`
  })
  return files.join('')
}

/** Decodes a patch as text. File names are UTF-8; the content of each file has its own encoding. */
function textOf(patch: { readonly bytes: Buffer; readonly cut: boolean }): string {
  if (isUtf8(patch.bytes) && !patch.bytes.includes(0x1b)) return wholeLines(patch)
  const whole = patch.cut ? patch.bytes.subarray(0, patch.bytes.lastIndexOf(0x0a) + 1) : patch.bytes
  const files = whole.toString('latin1').split(/^(?=diff --git )/m)
  return files
    .map((file) => {
      const bytes = Buffer.from(file, 'latin1')
      const lines = file.search(/^@@ /m)
      if (lines === -1) return bytes.toString('utf8')
      return bytes.subarray(0, lines).toString('utf8') + decodeLines(bytes.subarray(lines))
    })
    .join('')
}

function summaryOf(changes: readonly FileChange[], more: boolean, note: string | undefined): string {
  const sum = (of: (change: FileChange) => number | undefined) => changes.reduce((all, one) => all + (of(one) ?? 0), 0)
  const count = `${changes.length}${more ? ' or more' : ''} ${changes.length === 1 ? 'file' : 'files'}`
  const numbers = `+${sum(({ added }) => added)} -${sum(({ removed }) => removed)}`
  return `${count}, ${numbers}${note === undefined ? '' : `, ${note}`}`
}

function formatChange({ added, removed, path, before }: FileChange): string {
  const numbers = added === undefined || removed === undefined ? 'binary' : `+${added} -${removed}`
  return `${numbers} ${before === undefined ? '' : `${oneLine(before)} → `}${oneLine(path)}`
}

/** Parses `added TAB removed TAB path NUL`; for a rename, an empty path, then both names, each with a NUL. */
function parseNumbers(text: string): readonly FileChange[] {
  const fields = text.split('\0')
  const changes: FileChange[] = []
  for (let at = 0; at < fields.length; at++) {
    const [added = '', removed = '', ...rest] = (fields[at] ?? '').split('\t')
    if (rest.length === 0) continue
    const counts = added === '-' ? {} : { added: Number(added), removed: Number(removed) }
    const path = rest.join('\t')
    if (path !== '') changes.push({ ...counts, path })
    else {
      changes.push({ ...counts, before: fields[at + 1] ?? '', path: fields[at + 2] ?? '' })
      at += 2
    }
  }
  return changes
}

/** Maximum size of a file to blame, in bytes. */
const maxFileBytes = 1024 * 1024
const maxBlamedBytes = 64 * 1024 * 1024

/** Checks that a file can be blamed: text, and not too large. Returns its encoding. */
export function requireBlamable(bytes: Uint8Array | undefined, size: number): string {
  if (bytes === undefined || size > maxFileBytes)
    throw tooLarge(`The file has ${size} bytes, and files of at most ${maxFileBytes} are blamed.`, {
      size,
      limit: maxFileBytes,
    })
  if (isText(bytes)) return 'utf-8'
  const encoding = detectEncoding(bytes)
  // git splits lines by bytes, which fails for UTF-16 and UTF-32.
  if (encoding === undefined || hasZeros(encoding))
    throw invalid('The file is not text, so that it has no lines to blame.', 'binary')
  return encoding
}

/**
 * Reads the author of each line of a file, as text: the id, date and author of a commit precede its lines, with the subject the first time;
 * each line has its number.
 */
export async function readBlame(
  launcher: Launcher,
  { commit, path }: { readonly commit: string; readonly path: string },
  title: string,
  encoding: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<TextPage> {
  const output = await launcher.run({
    // git blame has no --end-of-options; the id was resolved by this provider, and the argument after -- is a path.
    args: ['blame', '--porcelain', '--no-textconv', '--encoding=UTF-8', commit, '--', path],
    limit: maxBlamedBytes,
    signal,
  })
  const lines = [title]
  const named = new Set<string>()
  let length = 0
  let previous: string | undefined
  for (const { oid, number, text, facts } of linesOf(output.bytes, encoding)) {
    const heading = oid === previous ? [] : [headingOf(oid, facts, !named.has(oid))]
    const shown = [...heading, `${String(number).padStart(6)}  ${text}`]
    previous = oid
    named.add(oid)
    length += shown.reduce((sum, line) => sum + line.length + 1, 0)
    if (length > maxBytes) return { text: `${[...lines, cutMark('the rest of the file')].join('\n')}\n`, cut: true }
    lines.push(...shown)
  }
  return { text: `${lines.join('\n')}\n`, cut: output.cut }
}

/**
 * Parses `id original final [count]`, then headers of the commit if it is new, then a tab and the line. The facts of a line are the headers of
 * its commit.
 */
function* linesOf(output: Buffer, encoding: string) {
  const decode = (line: string, label: string) => {
    const bytes = Buffer.from(line, 'latin1')
    return label === 'utf-8' ? bytes.toString('utf8') : (decodeBytes(bytes, label) ?? '')
  }
  const commits = new Map<string, Map<string, string>>()
  let oid = ''
  let number = 0
  for (const line of output.toString('latin1').split('\n')) {
    const head = /^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$/.exec(line)
    if (line.startsWith('\t')) {
      yield { oid, number, text: decode(line.slice(1), encoding), facts: commits.get(oid) ?? new Map<string, string>() }
    } else if (head !== null) {
      oid = head[1] ?? ''
      number = Number(head[2])
      if (!commits.has(oid)) commits.set(oid, new Map())
    } else {
      const space = line.indexOf(' ')
      if (space !== -1) commits.get(oid)?.set(line.slice(0, space), decode(line.slice(space + 1), 'utf-8'))
    }
  }
}

/** Returns the line above the lines of a commit. Only the first mention of the commit has its subject. */
function headingOf(oid: string, facts: ReadonlyMap<string, string>, first: boolean): string {
  const time = Number(facts.get('author-time')) * 1000
  const date = Math.abs(time) <= 8.64e15 ? new Date(time).toISOString().slice(0, 10) : 'no date'
  const subject = first ? `: ${oneLine(facts.get('summary') ?? '', 200)}` : ''
  return `${shortId(oid)} ${date} ${oneLine(facts.get('author') ?? '', 100)}${subject}`
}
