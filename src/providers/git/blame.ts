import { invalid, ResourceError } from '../../core/errors.ts'
import { isText } from '../../core/kit/utf8.ts'
import { decodeBytes } from '../../text/encoding/decode.ts'
import { detectEncoding } from '../../text/encoding/detect.ts'
import type { Launcher } from './launch.ts'
import { cutMark, oneLine, type Page, shortId } from './text.ts'

/** Maximum size of a file to blame, in bytes. */
const maxFile = 1024 * 1024
const maxOutput = 64 * 1024 * 1024

/** Checks that a file can be blamed: text, and not too large. Returns its encoding. */
export function requireBlamable(bytes: Uint8Array | undefined, size: number): string {
  if (bytes === undefined || size > maxFile)
    throw new ResourceError('too-large', `The file has ${size} bytes, and files of at most ${maxFile} are blamed.`, {
      reason: 'too-large',
      size,
      limit: maxFile,
    })
  if (isText(bytes)) return 'utf-8'
  const encoding = detectEncoding(bytes)
  // git splits lines by bytes, which fails for UTF-16.
  if (encoding === undefined || encoding.startsWith('utf-16'))
    throw invalid('The file is not text, so that it has no lines to blame.', 'binary')
  return encoding
}

/**
 * Reads the author of each line of a file, as text: the id, date and author of a commit precede its lines, with the subject the first time;
 * each line has its number.
 */
export async function readBlame(
  launcher: Launcher,
  {
    commit,
    path,
    title,
    encoding,
    maxBytes,
  }: {
    readonly commit: string
    readonly path: string
    readonly title: string
    readonly encoding: string
    readonly maxBytes: number
  },
  signal: AbortSignal,
): Promise<Page> {
  const output = await launcher.run({
    // git blame has no --end-of-options; the id was resolved by this provider, and the argument after -- is a path.
    args: ['blame', '--porcelain', '--no-textconv', '--encoding=UTF-8', commit, '--', path],
    limit: maxOutput,
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

interface BlamedLine {
  readonly oid: string
  readonly number: number
  readonly text: string
  /** The commit's headers in git's output. */
  readonly facts: ReadonlyMap<string, string>
}

/** Parses `id original final [count]`, then headers of the commit if it is new, then a tab and the line. */
function* linesOf(output: Buffer, encoding: string): Generator<BlamedLine> {
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
      yield { oid, number, text: decode(line.slice(1), encoding), facts: commits.get(oid) ?? new Map() }
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

/** The subject is shown only at the first mention of the commit. */
function headingOf(oid: string, facts: ReadonlyMap<string, string>, first: boolean): string {
  const time = Number(facts.get('author-time')) * 1000
  const date = Math.abs(time) <= 8.64e15 ? new Date(time).toISOString().slice(0, 10) : 'no date'
  const subject = first ? `: ${oneLine(facts.get('summary') ?? '', 200)}` : ''
  return `${shortId(oid)} ${date} ${oneLine(facts.get('author') ?? '', 100)}${subject}`
}
