import { isUtf8 } from 'node:buffer'
import type { Launcher } from './launch.ts'
import { cutMark, decodeLines, oneLine, wholeLines } from './text.ts'

/** The difference of two trees: the changes of each file, and the patch. */
export interface Difference {
  readonly text: string
  readonly cut: boolean
}

export interface DifferenceQuery {
  /** Ids of commits or trees. */
  readonly from: string
  readonly to: string
  /** Only this file or directory. */
  readonly path?: string
  /** Note after the numbers, such as `against the first parent`. */
  readonly note?: string
}

interface FileChange {
  readonly added?: number
  readonly removed?: number
  readonly path: string
  /** The name before a rename. */
  readonly before?: string
}

/** Maximum length of a patch, in bytes, and maximum number of files that are named. */
const maxPatch = 256 * 1024
const maxFiles = 300
const maxNumbers = 4 * 1024 * 1024

/** Lines of a patch that name files. (A removed line can look the same; it is then formatted the same.) */
const named = /^(?:diff --git |--- |\+\+\+ |rename |copy |Binary files ).*$/gm

/** Compares two trees, without any driver, filter or external program. */
export async function readDifference(
  launcher: Launcher,
  { from, to, path, note }: DifferenceQuery,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Difference> {
  const ends = ['--end-of-options', from, to, '--', ...(path === undefined ? [] : [path])]
  const plain = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color']
  const limit = Math.min(maxPatch, maxBytes)
  const [numbers, patch] = await Promise.all([
    launcher.run({ args: ['diff-tree', ...plain, '--numstat', '-z', ...ends], limit: maxNumbers, signal }),
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
  const shown = textOf(patch).replace(named, (line) => oneLine(line.replace(/\t$/, ''), Number.POSITIVE_INFINITY))
  return { text: `${lines.join('\n')}\n${shown === '' ? '' : '\n'}${shown}${end}`, cut }
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
