import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { type Facet, facets, noFacets } from '../listing/select.ts'
import { Button, Select, type SelectOption } from '../shell/fields.tsx'
import { navigate, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import { t } from './words.ts'

export function Facets({ mimes }: { readonly mimes: readonly string[] }) {
  const mounts = useSignal<readonly Resource[]>([])
  useEffect(() => {
    const controller = new AbortController()
    requireConnection()
      .view.mounts({ signal: controller.signal })
      .then((mountList) => {
        mounts.value = mountList
      })
      .catch(() => {})
    return () => controller.abort()
  }, [])
  const { mime } = route.value
  const count = facets.filter((facet) => route.value[facet] !== undefined).length
  const types = [...new Set([...mimes, ...(mime === undefined || mime.endsWith('/*') ? [] : [mime])])].sort()
  return (
    <details class="facets" open={count > 0}>
      <summary>{count === 0 ? t('facets') : t('facetsOn', { count })}</summary>
      <div class="facets-fields">
        <FacetSelect
          facet="mount"
          options={mounts.value.map(({ uri, title, name }) => [uri.replace(/\/$/, ''), escapeInvisible(title ?? name)])}
        />
        <FacetSelect
          facet="mime"
          options={[
            ['text/*', t('texts')],
            ['image/*', t('images')],
            ...types.map((type): SelectOption<string> => [type, escapeInvisible(type)]),
          ]}
        />
        <FacetSelect
          facet="audience"
          options={[
            ['user', t('audienceUser')],
            ['assistant', t('audienceAssistant')],
          ]}
        />
        <FacetSelect facet="minPriority" options={['0.3', '0.5', '0.8', '1'].map((value) => [value, value])} />
        <FacetSelect
          facet="since"
          options={[
            ['1d', t('day')],
            ['7d', t('week')],
            ['30d', t('month')],
            ['365d', t('year')],
          ]}
        />
        {count === 0 ? null : <Button name={t('clear')} onClick={() => navigate(noFacets)} />}
      </div>
    </details>
  )
}

function FacetSelect({ facet, options }: { readonly facet: Facet; readonly options: readonly SelectOption<string>[] }) {
  const any = facet === 'since' ? t('anyTime') : t('any')
  return (
    <Select
      class="facet"
      label={t(facet === 'minPriority' ? 'priority' : facet)}
      options={[['', any], ...options]}
      value={route.value[facet] ?? ''}
      onChoose={(value) => navigate({ [facet]: value === '' ? undefined : value })}
    />
  )
}
