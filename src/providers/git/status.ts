import { copyFile, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { notFound, type ResourceError, unavailable } from '../../core/errors.ts'
import { createSlices } from '../../core/kit/breath.ts'
import type { Anchors } from './anchors.ts'
import { entriesOf, type Folder, holdIn, LinkError, lookIn, openIn, readIn, withFolder } from './folder.ts'
import { cutMark, oneLine, shortId, type TextPage } from './page-text.ts'
import type { RefTable } from './refs.ts'
import type { Repository } from './repository.ts'
import { configOf, createBare } from './shadow.ts'

const maxBytes = 4 * 1024 * 1024
const maxExcludeBytes = 512 * 1024
/** Maximum size of the copied index and its shared index, in bytes: the length or the disk usage, whichever is larger. */
const maxIndexBytes = 256 * 1024 * 1024
/** Maximum size of an index that is searched for the name of its shared index, in bytes. */
const maxSplitIndexBytes = 64 * 1024 * 1024
const statBlockBytes = 512

/**
 * Creates a reader of the state of the working tree compared with the index and `HEAD`.
 *
 * It runs `git status` in a git directory of the provider's own, over a copy of the index. So no filter, monitor or hook of the repository runs,
 * its index is not written, and submodules are not entered. The effect of a filter on a file is unknown: such a file shows as modified when
 * its time has changed.
 */
export function createStatusReader({ launcher, shadow, anchors, lend, config }: Repository) {
  const own = join(shadow.folder, 'status.git')
  /** The last read that began. Reads run one at a time, because they share a directory. */
  let turn: Promise<unknown> = Promise.resolve()

  const prepare = async ({ head }: RefTable, { gitDir, commonDir }: Anchors): Promise<void> => {
    await createBare(own, configOf(config.format, config.checkout))
    if (head !== undefined) await writeFile(join(own, 'HEAD'), `${head.oid}\n`)
    await writeFile(join(own, 'info', 'exclude'), await excludesOf(commonDir))
    for (const name of await readdir(own)) if (name.startsWith('sharedindex.')) await rm(join(own, name))
    const copied = await copyIndex(gitDir, 'index', own, maxIndexBytes)
    const shared = copied > maxSplitIndexBytes ? undefined : await sharedIndexOf(gitDir, join(own, 'index'))
    if (shared !== undefined) await copyIndex(gitDir, shared, own, maxIndexBytes - copied)
    // The index may name new objects that no commit has yet.
    await lend()
  }

  const run = async (table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const current = await anchors.current()
    const { workTree } = current
    if (workTree === undefined) throw notFound('a bare repository has no status')
    await prepare(table, current)
    const { bytes, cut } = await launcher.run({
      args: [
        'status',
        '--porcelain=v1',
        '-z',
        '--ignore-submodules=all',
        '--untracked-files=normal',
        '--no-ahead-behind',
      ],
      gitDir: own,
      cwd: workTree.shared,
      env: { GIT_WORK_TREE: '.', GIT_INDEX_FILE: join(own, 'index') },
      limit: maxBytes,
      signal,
    })
    const lines: StatusLine[] = []
    const slices = createSlices()
    for (const line of parseStatus(bytes.toString('utf8'))) {
      if (line.staged !== '?' || (await isThere(workTree, line.path))) lines.push(line)
      if (slices.due()) await slices.rest()
    }
    return formatStatus(lines, cut, table)
  }

  return (table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const mine = turn.then(() => run(table, signal))
    turn = mine.catch(() => {})
    return mine
  }
}

async function excludesOf(commonDir: Folder): Promise<Buffer | string> {
  try {
    const info = await openIn(commonDir, 'info')
    if (info === undefined) return ''
    try {
      return (await readIn(info, 'exclude', maxExcludeBytes)) ?? ''
    } finally {
      info.close()
    }
  } catch {
    return ''
  }
}

/**
 * Copies an index with its modification time, because git compares files that are as new as the index byte by byte. Returns its length or disk
 * usage in bytes, whichever is larger.
 *
 * @throws ResourceError `unavailable` for anything but a file, and for more than `most` bytes.
 */
async function copyIndex(gitDir: Folder, name: string, own: string, most: number): Promise<number> {
  const to = join(own, name)
  const held = await holdIn(gitDir, name).catch((error: unknown) => {
    throw error instanceof LinkError ? unusable() : error
  })
  if (held === undefined) {
    if ((await lookIn(gitDir, name)) !== undefined) throw unusable()
    // Without an index, nothing is staged. An older copy would claim otherwise.
    await rm(to, { force: true })
    return 0
  }
  try {
    const { size, blocks, mtimeMs } = held.stats
    const bytes = Math.max(Number(size), Number(blocks) * statBlockBytes)
    if (bytes > most) throw unusable()
    await copyFile(held.shared, to)
    const seconds = Math.floor(Number(mtimeMs) / 1000)
    await utimes(to, seconds, seconds)
    return bytes
  } finally {
    held.close()
  }
}

/**
 * Returns the name of the shared index of a split index: gitformat-index(5), "Split index". File names in the index may look the same, so only
 * the name of an existing file is accepted.
 */
async function sharedIndexOf(gitDir: Folder, index: string): Promise<string | undefined> {
  const there = new Set((await entriesOf(gitDir)).map(({ name }) => name).filter((name) => sharedName.test(name)))
  if (there.size === 0) return undefined
  const bytes = await readFile(index).catch(() => Buffer.alloc(0))
  const signature = Buffer.from('link')
  for (let at = bytes.lastIndexOf(signature); at > 0; at = bytes.lastIndexOf(signature, at - 1)) {
    for (const idBytes of [20, 32]) {
      const start = at + 8
      const name = `sharedindex.${bytes.toString('hex', start, start + idBytes)}`
      if (there.has(name)) return name
    }
  }
  return undefined
}

const sharedName = /^sharedindex\.[0-9a-f]{40,64}$/

/** Whether a file is in the working tree itself. git also lists files behind a symbolic link that has just replaced a directory. */
async function isThere(workTree: Folder, path: string): Promise<boolean> {
  const segments = path.replace(/\/$/, '').split('/')
  const last = segments.pop() ?? ''
  const found = await withFolder(workTree, segments, (folder) => lookIn(folder, last)).catch(() => undefined)
  return found !== undefined
}

function unusable(): ResourceError {
  return unavailable('The index of the repository is not a file, or too large.')
}

/** One path of `git status`: a letter for the index, and one for the working tree. */
interface StatusLine {
  readonly staged: string
  readonly unstaged: string
  readonly path: string
  /** The name before a rename. */
  readonly before?: string
}

const maxPaths = 1000

const words: Readonly<Record<string, string>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type changed',
}

/** Parses `git status --porcelain=v1 -z`: `XY path NUL`, and after a renamed path its old name. */
function parseStatus(text: string): readonly StatusLine[] {
  const fields = text.split('\0')
  // The text after the last NUL is empty or an incomplete line.
  fields.pop()
  const lines: StatusLine[] = []
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? ''
    const [staged = ' ', unstaged = ' '] = field
    const path = field.slice(3)
    const renamed = staged === 'R' || staged === 'C' || unstaged === 'R' || unstaged === 'C'
    lines.push({ staged, unstaged, path, ...(renamed ? { before: fields[++at] ?? '' } : {}) })
  }
  return lines
}

/** Formats the state of a working tree as text: the branch or commit of `HEAD`, and the paths under a heading for each kind of change. */
function formatStatus(lines: readonly StatusLine[], cut: boolean, table: RefTable): TextPage {
  const isConflict = ({ staged, unstaged }: StatusLine) => /U|^AA$|^DD$/.test(staged + unstaged)
  const called = ({ path, before }: StatusLine) =>
    `${before === undefined ? '' : `${oneLine(before)} → `}${oneLine(path)}`
  const group = (heading: string, keep: (line: StatusLine) => boolean, format: (line: StatusLine) => string) => {
    const kept = lines.filter(keep)
    return kept.length === 0 ? [] : [`${heading}:`, ...kept.map((line) => `  ${format(line)}`)]
  }
  const tracked = (line: StatusLine) => line.staged !== '?' && !isConflict(line)
  const groups = [
    ...group('Conflicts', isConflict, called),
    ...group(
      'Staged',
      (line) => tracked(line) && line.staged !== ' ',
      (line) => `${words[line.staged] ?? line.staged} ${called(line)}`,
    ),
    ...group(
      'Not staged',
      (line) => tracked(line) && line.unstaged !== ' ',
      (line) => `${words[line.unstaged] ?? line.unstaged} ${called(line)}`,
    ),
    ...group('Untracked', ({ staged }) => staged === '?', called),
  ]
  const isCut = cut || groups.length > maxPaths
  const text = [
    titleOf(table),
    ...(groups.length === 0 ? ['Nothing has changed.'] : groups.slice(0, maxPaths)),
    ...(isCut ? [cutMark('more paths')] : []),
  ]
  return { text: `${text.join('\n')}\n`, cut: isCut }
}

function titleOf({ head, branch }: RefTable): string {
  const on = branch?.replace(/^refs\/heads\//, '')
  if (head === undefined)
    return on === undefined ? 'HEAD is on no commit.' : `On ${oneLine(on)}, which has no commits yet.`
  return on === undefined ? `HEAD is detached at ${shortId(head.oid)}.` : `On ${oneLine(on)} at ${shortId(head.oid)}.`
}
