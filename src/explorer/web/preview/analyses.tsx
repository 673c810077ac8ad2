import './schema.css'
import { langOf } from '../state/lang.ts'
import { linkTo } from '../state/place.ts'
import { shown } from '../state/shown.ts'
import { formatNumber, formatTime, language } from '../words/language.ts'
import type { ListedAnalysis } from './model/analyses.ts'
import { Region } from './region.tsx'
import { t } from './words.ts'

/** All analyses of a list, newest first, each with a link to itself, its report and its tags. */
export function Analyses({ listed }: { readonly listed: readonly ListedAnalysis[] }) {
  if (listed.length === 0) return <p class="preview-note">{t('noAnalyses')}</p>
  return (
    <Region class="sheet" label={t('rendered')}>
      <div class="scroll-x">
        <table class="analyses">
          <thead>
            <tr>
              <th scope="col">{t('question')}</th>
              <th scope="col">{t('made')}</th>
              <th scope="col">{t('kept')}</th>
              <th scope="col">{t('confidence')}</th>
              <th scope="col">{t('cost')}</th>
              <th scope="col">{t('votes')}</th>
              <th scope="col">{t('report')}</th>
            </tr>
          </thead>
          <tbody>
            {listed.map((one) => (
              <Row key={one.uri} one={one} />
            ))}
          </tbody>
        </table>
      </div>
    </Region>
  )
}

function Row({ one }: { readonly one: ListedAnalysis }) {
  const { uri, report, title, confidence, thresholdsMet, cost, created, expires, providers, tags } = one
  const isOver = expires !== undefined && expires < Date.now()
  const percent = new Intl.NumberFormat(language.value, { style: 'percent' })
  return (
    <tr>
      <th scope="row">
        <a href={linkTo({ uri, source: undefined })} lang={langOf(title)}>
          <bdi>{shown(title)}</bdi>
        </a>{' '}
        {tags.map((tag) => (
          <a key={tag.uri} class="quiet" href={linkTo({ uri: tag.uri, source: undefined })}>
            #{shown(tag.name)}
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
      <td>{shown(providers.join(', '))}</td>
      <td>
        <a href={linkTo({ uri: report, source: undefined })} aria-label={`${t('report')}: ${shown(title)}`}>
          {t('report')}
        </a>
      </td>
    </tr>
  )
}
