import './schema.css'
import { useMemo } from 'preact/hooks'
import { defined } from '../../../core/kit/object.ts'
import { linkTo } from '../state/place.ts'
import { formatTime, langOf, shown } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { resolveReference } from './model/reference.ts'
import { t } from './words.ts'

/** Maximum number of drawn commits: each is about ten elements. */
const maxCommits = 2000

/** The commits of a repository, newest first. A click opens a commit. */
export function Log({ text, uri }: { readonly text: string; readonly uri: string }) {
  const log = useMemo(() => gitLogOf(text) ?? { title: '', commits: [], notes: [] }, [text])
  return (
    <Region class="sheet" label={t('rendered')}>
      {log.commits.length > maxCommits ? <p class="preview-banner">{t('shortened')}</p> : null}
      <p class="quiet">{shown(log.title)}</p>
      <div class="scroll-x">
        <table>
          <thead>
            <tr>
              <th scope="col">{t('commit')}</th>
              <th scope="col">{t('modified')}</th>
              <th scope="col">{t('author')}</th>
              <th scope="col">{t('subject')}</th>
            </tr>
          </thead>
          <tbody>
            {log.commits.slice(0, maxCommits).map(({ id, date, author, names, subject }) => (
              <tr key={id}>
                <td>
                  <a href={linkTo({ uri: resolveReference(uri, `commits/${id}`)?.uri, source: undefined })}>
                    <code>{id.slice(0, 12)}</code>
                  </a>
                </td>
                <td class="nowrap">
                  <time dateTime={date}>{formatTime(Date.parse(date))}</time>
                </td>
                <td lang={langOf(author)}>
                  <bdi>{shown(author)}</bdi>
                </td>
                <td lang={langOf(subject)}>
                  {names === undefined ? null : <span class="chip">{shown(names)}</span>} <bdi>{shown(subject)}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {log.notes.map((note) => (
        <p key={note} class="quiet">
          {shown(note)}
        </p>
      ))}
    </Region>
  )
}

interface LogLine {
  readonly id: string
  /** ISO 8601 with a zone. */
  readonly date: string
  readonly author: string
  /** Branches and tags at this commit. */
  readonly names?: string
  readonly subject: string
}

interface GitLog {
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
