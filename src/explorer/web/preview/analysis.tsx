import './schema.css'
import { langOf } from '../state/lang.ts'
import { linkTo } from '../state/place.ts'
import { shown } from '../state/shown.ts'
import { formatNumber, formatTime, language } from '../words/language.ts'
import { bare } from './load.ts'
import { timeOf } from './model/analyses.ts'
import { isRecord } from './model/series.ts'
import { Region } from './region.tsx'
import { t } from './words.ts'

type Wire = Readonly<Record<string, unknown>>

/** An analysis by several models: the question, the consensus, and the answer of each. */
export function Analysis({ value, uri }: { readonly value: Wire; readonly uri: string }) {
  const consensus = isRecord(value.consensus) ? value.consensus : {}
  const votes = (Array.isArray(value.votes) ? value.votes : []).filter(isRecord)
  const { met } = isRecord(value.thresholds) ? value.thresholds : {}
  return (
    <Region class="sheet" label={t('rendered')}>
      <Facts value={value} />
      <h3>{t('question')}</h3>
      <Prose text={value.prompt} />
      <h3>{t('consensus')}</h3>
      <p class="quiet">
        <Share name={t('confidence')} value={consensus.confidence} />
        {met === true ? t('thresholdsMet') : met === false ? t('thresholdsMissed') : ''}
        {typeof value.totalCost === 'number' ? ` ${t('cost')}: $${formatNumber(value.totalCost)}` : ''}{' '}
        <a href={linkTo({ uri: `${bare(uri)}/report`, source: undefined })}>{t('report')}</a>
      </p>
      <Prose text={consensus.content} />
      <Prose text={consensus.reasoning} />
      <h3>{t('votes')}</h3>
      <div class="votes">
        {votes.map((vote, index) => (
          <div key={index} class="vote">
            <p>
              <strong>{shown(String(vote.provider ?? ''))}</strong>{' '}
              <span class="quiet">
                {typeof vote.model === 'string' ? `${shown(vote.model)} · ` : ''}
                <Share name={t('confidence')} value={vote.confidence} />
                <Share name={t('agreement')} value={vote.agreement} />
              </span>
            </p>
            {typeof vote.error === 'string' ? <p class="bad">{shown(vote.error)}</p> : null}
            <Prose text={vote.content} />
          </div>
        ))}
      </div>
    </Region>
  )
}

/** Its creation time, expiry time and tags. */
function Facts({ value }: { readonly value: Wire }) {
  const [created, expires] = [timeOf(value.created), timeOf(value.expires)]
  const tags = (Array.isArray(value.tags) ? value.tags : []).filter((tag) => typeof tag === 'string')
  const facts = [
    ...(created === undefined ? [] : [t('madeAt', { time: formatTime(created) })]),
    ...(expires === undefined
      ? []
      : [t(expires < Date.now() ? 'expiredAt' : 'keptUntil', { time: formatTime(expires) })]),
    ...tags.map((tag) => `#${shown(tag)}`),
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
      {shown(text)}
    </p>
  )
}
