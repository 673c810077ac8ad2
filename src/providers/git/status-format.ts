import type { RefTable } from './refs.ts'
import { cutMark, oneLine, type Page, shortId } from './text.ts'

/** One path of `git status`: a letter for the index, and one for the working tree. */
export interface StatusLine {
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
export function parseStatus(text: string): readonly StatusLine[] {
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
export function formatStatus(lines: readonly StatusLine[], cut: boolean, table: RefTable): Page {
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
