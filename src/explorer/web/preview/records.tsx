import { defined, isObject, parseIsoTime, stringItems } from '../../../core/kit/object.ts'
import './schema.css'
import { useMemo } from 'preact/hooks'
import { lastSegment, type WireObject } from '../../../client/wire.ts'
import { type SearchAnswer, splitAtMarks } from '../../../core/search-answer.ts'
import { MarkedText, ServerText } from '../shell/fields.tsx'
import { linkTo } from '../state/route.ts'
import { escapeInvisible, formatNumber, formatTime, langOf, language } from '../words/texts.ts'
import { TableHead } from './controls.tsx'
import { SearchableRegion } from './find.tsx'
import { uriWithoutPart } from './load.ts'
import type { ListedAnalysis } from './model/documents.ts'
import { resolveReference } from './model/reference.ts'
import { t } from './words.ts'

/** The analyses of a list, each with a link to itself, its report and its tags. */
export function Analyses({ listed }: { readonly listed: readonly ListedAnalysis[] }) {
  if (listed.length === 0) return <p class="preview-note">{t('noAnalyses')}</p>
  return (
    <SearchableRegion class="sheet" label={t('rendered')}>
      <div class="scroll-x">
        <table class="analyses">
          <TableHead
            names={[t('question'), t('made'), t('kept'), t('confidence'), t('cost'), t('votes'), t('report')]}
          />
          <tbody>
            {listed.map((one) => (
              <AnalysisRow key={one.uri} one={one} />
            ))}
          </tbody>
        </table>
      </div>
    </SearchableRegion>
  )
}

function AnalysisRow({ one }: { readonly one: ListedAnalysis }) {
  const { uri, report, title, confidence, thresholdsMet, cost, created, expires, providers, tags } = one
  const isOver = expires !== undefined && expires < Date.now()
  const percent = new Intl.NumberFormat(language.value, { style: 'percent' })
  return (
    <tr>
      <th scope="row">
        <ServerText as="a" href={linkTo({ uri, source: undefined })} text={title} />{' '}
        {tags.map((tag) => (
          <a key={tag.uri} class="quiet" href={linkTo({ uri: tag.uri, source: undefined })}>
            #{escapeInvisible(tag.name)}
          </a>
        ))}
      </th>
      <td class="nowrap">{created === undefined ? '' : formatTime(created)}</td>
      <td class={isOver ? 'nowrap bad' : 'nowrap'}>
        {expires === undefined
          ? t('always')
          : isOver
            ? t('expiredAt', { time: formatTime(expires) })
            : formatTime(expires)}
      </td>
      <td
        class={thresholdsMet === false ? 'bad' : ''}
        title={thresholdsMet === false ? t('thresholdsMissed') : undefined}
      >
        {confidence === undefined ? '' : percent.format(confidence)}
      </td>
      <td>{cost === undefined ? '' : `$${formatNumber(cost)}`}</td>
      <td>{escapeInvisible(providers.join(', '))}</td>
      <td>
        <a href={linkTo({ uri: report, source: undefined })} aria-label={`${t('report')}: ${escapeInvisible(title)}`}>
          {t('report')}
        </a>
      </td>
    </tr>
  )
}

/** An analysis by several models: the question, the consensus, and the answer of each. */
export function Analysis({ value, uri }: { readonly value: WireObject; readonly uri: string }) {
  const consensus = isObject(value.consensus) ? value.consensus : {}
  const votes = (Array.isArray(value.votes) ? value.votes : []).filter(isObject)
  const { met } = isObject(value.thresholds) ? value.thresholds : {}
  return (
    <SearchableRegion class="sheet" label={t('rendered')}>
      <AnalysisFacts value={value} />
      <h3>{t('question')}</h3>
      <Prose text={value.prompt} />
      <h3>{t('consensus')}</h3>
      <p class="quiet">
        <Share name={t('confidence')} value={consensus.confidence} />
        {met === true ? t('thresholdsMet') : met === false ? t('thresholdsMissed') : ''}
        {typeof value.totalCost === 'number' ? ` ${t('cost')}: $${formatNumber(value.totalCost)}` : ''}{' '}
        <a href={linkTo({ uri: `${uriWithoutPart(uri)}/report`, source: undefined })}>{t('report')}</a>
      </p>
      <Prose text={consensus.content} />
      <Prose text={consensus.reasoning} />
      <h3>{t('votes')}</h3>
      <div class="votes">
        {votes.map((vote, index) => (
          <div key={index} class="vote">
            <p>
              <strong>{escapeInvisible(String(vote.provider ?? ''))}</strong>{' '}
              <span class="quiet">
                {typeof vote.model === 'string' ? `${escapeInvisible(vote.model)} · ` : ''}
                <Share name={t('confidence')} value={vote.confidence} />
                <Share name={t('agreement')} value={vote.agreement} />
              </span>
            </p>
            {typeof vote.error === 'string' ? <p class="bad">{escapeInvisible(vote.error)}</p> : null}
            <Prose text={vote.content} />
          </div>
        ))}
      </div>
    </SearchableRegion>
  )
}

function AnalysisFacts({ value }: { readonly value: WireObject }) {
  const [created, expires] = [parseIsoTime(value.created), parseIsoTime(value.expires)]
  const tags = stringItems(value.tags)
  const facts = [
    ...(created === undefined ? [] : [t('madeAt', { time: formatTime(created) })]),
    ...(expires === undefined
      ? []
      : [t(expires < Date.now() ? 'expiredAt' : 'keptUntil', { time: formatTime(expires) })]),
    ...tags.map((tag) => `#${escapeInvisible(tag)}`),
  ]
  return facts.length === 0 ? null : <p class="quiet analysis-facts">{facts.join(' · ')}</p>
}

function Share({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (typeof value !== 'number') return null
  const percent = new Intl.NumberFormat(language.value, { style: 'percent' }).format(value)
  return <span class="spaced">{`${name}: ${percent} `}</span>
}

function Prose({ text }: { readonly text: unknown }) {
  if (typeof text !== 'string') return null
  return (
    <p class="vote-text" lang={langOf(text)}>
      {escapeInvisible(text)}
    </p>
  )
}

/** Hits of a search: each opens at its lines. */
export function HitList({ found }: { readonly found: SearchAnswer }) {
  const { hits, total, notes } = found
  return (
    <SearchableRegion class="sheet" label={t('rendered')}>
      <p class="quiet">{hits.length === 0 ? t('noHits') : t('hits', { count: total ?? hits.length })}</p>
      {notes.map((note) => (
        <p key={note} class="quiet">
          {escapeInvisible(note)}
        </p>
      ))}
      {hits.map((hit) => (
        <div key={hit.uri} class="hit">
          <p>
            <ServerText
              as="a"
              href={linkTo({ uri: hit.uri, source: undefined })}
              text={hit.title ?? lastSegment(hit.document)}
            />{' '}
            <span class="quiet">
              {hit.heading === undefined ? '' : `${escapeInvisible(hit.heading)} · `}
              {t('lines', { first: hit.lines.start, last: hit.lines.end })}
            </span>
          </p>
          <p class="hit-snippet" lang={langOf(hit.snippet.text)}>
            <MarkedText pieces={splitAtMarks(hit.snippet)} />
          </p>
        </div>
      ))}
    </SearchableRegion>
  )
}

/** Maximum number of drawn commits: each is about ten elements. */
const maxCommits = 2000

/** The commits of a repository, newest first. A click opens a commit. */
export function GitLog({ text, uri }: { readonly text: string; readonly uri: string }) {
  const log = useMemo(() => gitLogOf(text) ?? { title: '', commits: [], notes: [] }, [text])
  return (
    <SearchableRegion class="sheet" label={t('rendered')}>
      {log.commits.length > maxCommits ? <p class="preview-banner">{t('shortened')}</p> : null}
      <p class="quiet">{escapeInvisible(log.title)}</p>
      <div class="scroll-x">
        <table>
          <TableHead names={[t('commit'), t('subject'), t('author'), t('modified')]} />
          <tbody>
            {log.commits.slice(0, maxCommits).map(({ id, date, author, names, subject }) => (
              <tr key={id}>
                <td>
                  <a href={linkTo({ uri: resolveReference(uri, `commits/${id}`)?.uri, source: undefined })}>
                    <code>{id.slice(0, 12)}</code>
                  </a>
                </td>
                <td class="log-subject" lang={langOf(subject)}>
                  {names === undefined ? null : <span class="chip">{escapeInvisible(names)}</span>}{' '}
                  <bdi>{escapeInvisible(subject)}</bdi>
                </td>
                <ServerText as="td" class="nowrap" text={author} />
                <td class="nowrap">
                  <time dateTime={date}>{formatTime(Date.parse(date))}</time>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {log.notes.map((note) => (
        <p key={note} class="quiet">
          {escapeInvisible(note)}
        </p>
      ))}
    </SearchableRegion>
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

/** Parses a log of the git provider (docs/providers/git.md). `undefined`: the text is not such a log. The notes are the other lines. */
export function gitLogOf(text: string) {
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
