import { remove, setLevel } from '../state/basket.ts'
import { shown } from '../state/shown.ts'
import { savingsFor } from './plan.ts'
import { costs, plan } from './store.ts'
import { t } from './words.ts'

/** Over the budget: what could be dropped or lowered, each by one press. */
export function Savings() {
  const savings = savingsFor(plan.value, costs.value)
  if (savings.length === 0) return null
  const names = new Map(plan.value.items.map(({ resource }) => [resource.uri, shown(resource.title ?? resource.name)]))
  return (
    <div class="basket-savings">
      <h3>{t('savings')}</h3>
      <ul>
        {savings.map((saving) => {
          const { uri, saved } = saving
          const name = names.get(uri) ?? uri
          return (
            <li key={`${saving.what} ${uri} ${saving.what === 'lower' ? saving.to : ''}`}>
              {saving.what === 'lower' ? (
                <button type="button" class="button" onClick={() => setLevel(uri, saving.to)}>
                  {t('lower', { name, level: t(saving.to), saved })}
                </button>
              ) : (
                <button type="button" class="button" onClick={() => remove(uri)}>
                  {t('drop', { name, saved })}
                </button>
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}
