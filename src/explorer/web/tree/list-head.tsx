import { Shape } from '../shell/icons.tsx'
import { go, place } from '../state/place.ts'
import { type Sort, sortOf, sorts } from './order.ts'
import { t } from './words.ts'

/** Largest, latest and most important first; names from the beginning. */
const downFirst: ReadonlySet<Sort> = new Set(['size', 'modified', 'priority'])

/** The names of the columns. A press sorts by one, another one the other way round, a third as the server does. */
export function ListHead() {
  const now = sortOf(place.value.sort)
  return (
    <div class="list-head list-cells" role="group" aria-label={t('sortBy')}>
      <span class="cell-icon" />
      {sorts.map((sort) => {
        const isNow = now?.by === sort
        return (
          <button
            key={sort}
            type="button"
            class={`list-sort cell-${sort}`}
            aria-pressed={isNow}
            aria-label={isNow ? `${t(sort)}, ${t(now.down ? 'down' : 'up')}` : t(sort)}
            onClick={() => go({ sort: nextOf(sort) })}
          >
            {t(sort)}
            {isNow ? <Shape name={now.down ? 'down' : 'up'} /> : null}
          </button>
        )
      })}
      <span class="cell-path" />
      <span class="cell-do" />
    </div>
  )
}

function nextOf(sort: Sort): string | undefined {
  const now = place.value.sort
  const [first, second] = downFirst.has(sort) ? [`-${sort}`, sort] : [sort, `-${sort}`]
  return now === first ? second : now === second ? undefined : first
}
