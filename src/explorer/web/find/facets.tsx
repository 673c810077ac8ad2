import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { type Change, go, place } from '../state/place.ts'
import { connected } from '../state/session.ts'
import { shown } from '../words/texts.ts'
import { t } from './words.ts'

const none: Change = {
  mount: undefined,
  mime: undefined,
  audience: undefined,
  minPriority: undefined,
  since: undefined,
}

/** Filters of a search; all of them are part of the permalink. */
export function Facets({ mimes }: { readonly mimes: readonly string[] }) {
  const mounts = useSignal<readonly Resource[]>([])
  useEffect(() => {
    const controller = new AbortController()
    connected()
      .view.mounts({ signal: controller.signal })
      .then((found) => {
        mounts.value = found
      })
      .catch(() => {})
    return () => controller.abort()
  }, [])
  const { mount, mime, audience, minPriority, since } = place.value
  const count = [mount, mime, audience, minPriority, since].filter((value) => value !== undefined).length
  const types = [...new Set([...mimes, ...(mime === undefined || mime.endsWith('/*') ? [] : [mime])])].sort()
  return (
    <details class="facets" open={count > 0}>
      <summary>{count === 0 ? t('facets') : t('facetsOn', { count })}</summary>
      <div class="facets-fields">
        <Choice label={t('mount')} value={mount} name="mount">
          <option value="">{t('any')}</option>
          {mounts.value.map(({ uri, title, name }) => (
            <option key={uri} value={uri.replace(/\/$/, '')}>
              {shown(title ?? name)}
            </option>
          ))}
        </Choice>
        <Choice label={t('mime')} value={mime} name="mime">
          <option value="">{t('any')}</option>
          <option value="text/*">{t('texts')}</option>
          <option value="image/*">{t('images')}</option>
          {types.map((type) => (
            <option key={type} value={type}>
              {shown(type)}
            </option>
          ))}
        </Choice>
        <Choice label={t('audience')} value={audience} name="audience">
          <option value="">{t('any')}</option>
          <option value="user">{t('audienceUser')}</option>
          <option value="assistant">{t('audienceAssistant')}</option>
        </Choice>
        <Choice label={t('priority')} value={minPriority} name="minPriority">
          <option value="">{t('any')}</option>
          {['0.3', '0.5', '0.8', '1'].map((value) => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </Choice>
        <Choice label={t('since')} value={since} name="since">
          <option value="">{t('anyTime')}</option>
          <option value="1d">{t('day')}</option>
          <option value="7d">{t('week')}</option>
          <option value="30d">{t('month')}</option>
          <option value="365d">{t('year')}</option>
        </Choice>
        {count === 0 ? null : (
          <button type="button" class="button" onClick={() => go(none)}>
            {t('clear')}
          </button>
        )}
      </div>
    </details>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly name: 'mount' | 'mime' | 'audience' | 'minPriority' | 'since'
  readonly value: string | undefined
  readonly children: ComponentChildren
}

function Choice({ label, name, value = '', children }: ChoiceProps) {
  return (
    <label class="facet">
      <span>{label}</span>
      <select
        class="field"
        value={value}
        onChange={({ currentTarget }) => go({ [name]: currentTarget.value === '' ? undefined : currentTarget.value })}
      >
        {children}
      </select>
    </label>
  )
}
