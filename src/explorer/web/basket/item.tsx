import { type BasketLevel, move, remove, setLevel } from '../state/basket.ts'
import { linkTo } from '../state/place.ts'
import { shown, tailOf } from '../state/shown.ts'
import { readableUri } from '../tree/columns.ts'
import { formatNumber } from '../words/language.ts'
import { estimateOf } from './estimate.ts'
import { levelsOf, type PlannedItem } from './plan.ts'
import { costs, plan, stale } from './store.ts'
import { t } from './words.ts'

interface ItemProps {
  readonly item: PlannedItem
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** One thing in the basket: how much of it is taken, and what that costs. */
export function Item({ item, isFirst, isLast }: ItemProps) {
  const { resource, level, taken, tokens, missing, notes } = item
  const { uri, name } = resource
  const label = shown(resource.title ?? name)
  const estimate = tokens === undefined ? estimateOf(resource) : undefined
  const share = (100 * (tokens ?? estimate ?? 0)) / Math.max(1, plan.value.tokens)
  const cost = costs.value.get(uri)
  const there = levelsOf(cost)
  return (
    <li class={missing ? 'basket-item basket-missing' : 'basket-item'}>
      <div class="basket-item-top">
        <a href={linkTo({ uri })} title={uri}>
          <bdi>{label}</bdi>
        </a>
        <span class="basket-tokens">
          {tokens !== undefined ? formatNumber(tokens) : estimate === undefined ? '…' : `~${formatNumber(estimate)}`}
        </span>
      </div>
      <div class="basket-share" title={t('share_of', { percent: Math.round(share) })} aria-hidden="true">
        <div style={{ width: `${Math.min(100, share)}%` }} />
      </div>
      <p class="basket-uri">
        <bdi>{tailOf(readableUri(uri), 48)}</bdi>
      </p>
      <div class="basket-acts">
        <select
          class="field"
          aria-label={t('level', { name: label })}
          value={level}
          onChange={({ currentTarget }) => setLevel(uri, currentTarget.value as BasketLevel)}
        >
          <option value="auto">{t('auto', { level: t(taken) })}</option>
          {there.map((one) => {
            const count = cost?.levels[one]
            return (
              <option key={one} value={one}>
                {count === undefined ? t(one) : `${t(one)} · ${formatNumber(count)}`}
              </option>
            )
          })}
        </select>
        <span class="basket-buttons">
          <button
            type="button"
            class="button"
            aria-label={t('up', { name: label })}
            disabled={isFirst}
            onClick={() => move(uri, -1)}
          >
            ↑
          </button>
          <button
            type="button"
            class="button"
            aria-label={t('down', { name: label })}
            disabled={isLast}
            onClick={() => move(uri, 1)}
          >
            ↓
          </button>
          <button type="button" class="button" aria-label={t('remove', { name: label })} onClick={() => remove(uri)}>
            ×
          </button>
        </span>
      </div>
      {missing ? <p class="basket-note basket-bad">{t('missing')}</p> : null}
      {stale.value.has(uri) ? <p class="basket-note">{t('changed')}</p> : null}
      {(missing ? [] : notes).map((note) => (
        <p key={note} class="basket-note">
          {shown(note)}
        </p>
      ))}
    </li>
  )
}
