import { notFound, unavailable } from '../../core/errors.ts'
import { createSlices } from '../../core/kit/breath.ts'
import { type Folder, lookIn, withFolder } from './folder.ts'
import { cutMark, oneLine, shortId, type TextPage } from './page-text.ts'
import type { RefTable } from './refs.ts'
import type { Repository } from './repository.ts'

const maxBytes = 4 * 1024 * 1024

/**
 * Creates a reader of the state of the working tree compared with the index and `HEAD`.
 *
 * It runs `git status` in the git directory of the provider's own, with the index of the repository. So no filter, monitor or hook of the
 * repository runs, its index is not written, and submodules are not entered. The effect of a filter on a file is unknown: such a file shows as modified when
 * its time has changed.
 */
export function createStatusReader({ launcher, mirror, anchors }: Repository) {
  /** The last read that began. Reads run one at a time, because they share the links to a split index. */
  let turn: Promise<unknown> = Promise.resolve()

  const run = async (table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const current = await anchors.current()
    const { workTree } = current
    if (workTree === undefined) throw notFound('a bare repository has no status')
    const stats = await lookIn(current.gitDir, 'index')
    if (stats !== undefined && !stats.isFile()) throw unavailable('The index of the repository is not a file.')
    await mirror.linkIndex(current.gitDir)
    const { bytes, cut } = await launcher.run({
      args: [
        'status',
        '--porcelain=v1',
        '-z',
        '--ignore-submodules=all',
        '--untracked-files=normal',
        '--no-ahead-behind',
      ],
      cwd: workTree.shared,
      env: { GIT_WORK_TREE: '.', GIT_INDEX_FILE: `${current.gitDir.shared}/index` },
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

/** Whether a file is in the working tree itself. git also lists files behind a symbolic link that has just replaced a directory. */
async function isThere(workTree: Folder, path: string): Promise<boolean> {
  const segments = path.replace(/\/$/, '').split('/')
  const last = segments.pop() ?? ''
  const found = await withFolder(workTree, segments, (folder) => lookIn(folder, last)).catch(() => undefined)
  return found !== undefined
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
