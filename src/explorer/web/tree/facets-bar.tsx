import { useSignal } from '@preact/signals'
import { browseModel, selectedRows } from '../listing/browse.ts'
import { ages, type Facet, facets, noFacets, noType, priorities } from '../listing/select.ts'
import { Select, type SelectOption } from '../shell/fields.tsx'
import { navigate, route } from '../state/route.ts'
import { escapeInvisible, formatDay } from '../words/texts.ts'
import { t } from './words.ts'

export function FacetsBar() {
  const count = facets.filter((facet) => route.value[facet] !== undefined).length
  const isOpen = useSignal(count > 0)
  return (
    <div class="narrow">
      <div class="narrow-line">
        <button
          type="button"
          class="narrow-open"
          aria-expanded={isOpen.value}
          aria-controls="facets"
          onClick={() => {
            isOpen.value = !isOpen.value
            // Counting the rows for each value needs the whole list.
            if (isOpen.value) browseModel.value?.listed.load()
          }}
        >
          {count === 0 ? t('narrow') : t('narrowCount', { count })}
        </button>
        {count === 0 ? null : (
          <button type="button" class="narrow-open" onClick={() => navigate(noFacets)}>
            {t('clear')}
          </button>
        )}
      </div>
      <div id="facets" class="facets-grid" hidden={!isOpen.value}>
        {isOpen.value ? facets.map((facet) => <FacetChoice key={facet} facet={facet} />) : null}
      </div>
    </div>
  )
}

function FacetChoice({ facet }: { readonly facet: Facet }) {
  const now = route.value[facet]
  const counts = selectedRows.value.counts[facet]
  const values = facetValues(facet, counts, now)
  return (
    <Select
      class="facet-choice"
      label={t(facet)}
      options={[
        ['', t('any')],
        ...values.map((value): SelectOption<string> => {
          const [name, count] = [facetValueLabel(facet, value), counts.get(value)]
          return [value, count === undefined ? name : t('option', { name, count })]
        }),
      ]}
      value={now ?? ''}
      onChoose={(value) => navigate({ [facet]: value === '' ? undefined : value })}
    />
  )
}

/** Returns the values to offer: those with rows, all mounts, and the selected value. */
function facetValues(facet: Facet, counts: ReadonlyMap<string, number>, now: string | undefined): readonly string[] {
  const all = [...counts].filter(([value, count]) => count > 0 || value === now || facet === 'mount')
  const pairs = facet === 'mime' ? all.sort(([, a], [, b]) => b - a) : all
  const values = pairs.map(([value]) => value)
  return now === undefined || values.includes(now) ? values : [now, ...values]
}

function facetValueLabel(facet: Facet, value: string): string {
  switch (facet) {
    case 'mount': {
      const mount = browseModel.value?.listed.columns.mounts.find(({ uri }) => uri.replace(/\/$/, '') === value)
      return escapeInvisible(mount?.title ?? mount?.name ?? value)
    }
    case 'mime':
      return value === noType ? t('noType') : escapeInvisible(value)
    case 'audience':
      return value === 'user' || value === 'assistant' ? t(value) : escapeInvisible(value)
    case 'minPriority':
      return value === priorities[0] ? t('priority1') : t('priorityFrom', { value: escapeInvisible(value) })
    case 'since': {
      const age = ages.find((one) => one === value)
      if (age !== undefined) return t(`age${age}`)
      const time = Date.parse(value)
      return t('sinceDate', { date: Number.isNaN(time) ? escapeInvisible(value) : formatDay(time) })
    }
  }
}
