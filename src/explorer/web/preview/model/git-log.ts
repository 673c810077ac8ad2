import { defined } from '../../../../core/kit/defined.ts'

export interface LogLine {
  readonly id: string
  /** ISO 8601 with a zone. */
  readonly date: string
  readonly author: string
  /** Branches and tags at this commit. */
  readonly names?: string
  readonly subject: string
}

export interface GitLog {
  readonly title: string
  readonly commits: readonly LogLine[]
  /** Further lines, such as a note that there are more commits. */
  readonly notes: readonly string[]
}

/** Parses a log of the git provider (docs/providers/git.md). `undefined`: the text is not such a log. */
export function gitLogOf(text: string): GitLog | undefined {
  const [title = '', ...lines] = text.split('\n')
  if (!/^Log of .+, newest first\.$/.test(title)) return undefined
  const commits: LogLine[] = []
  const notes: string[] = []
  for (const line of lines) {
    const [, id, date, author, names, subject] =
      /^([0-9a-f]{7,64}) (\d{4}-\d\d-\d\dT[\d:]+(?:Z|[+-]\d\d:\d\d)) ([^:(]*?)(?: \(([^)]*)\))?: (.*)$/.exec(line) ?? []
    if (id !== undefined && date !== undefined && author !== undefined && subject !== undefined)
      commits.push({ id, date, author, subject, ...defined({ names }) })
    else if (line !== '') notes.push(line)
  }
  return { title, commits, notes }
}
