import './schema.css'
import { useMemo } from 'preact/hooks'
import { linkTo } from '../state/place.ts'
import { langOf, shown } from '../state/shown.ts'
import { formatTime } from '../words/language.ts'
import { Region } from './controls.tsx'
import { gitLogOf } from './model/git-log.ts'
import { resolveReference } from './model/reference.ts'
import { t } from './words.ts'

/** How many commits are drawn: each is about ten elements. */
const maxCommits = 2000

/** The commits of a repository, newest first: each opens. */
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
