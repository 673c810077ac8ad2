import './basket.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Shape } from '../shell/icons.tsx'
import { type BasketItem, basket } from '../state/basket.ts'
import { go } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { estimateOf } from './estimate.ts'
import { Export } from './export.tsx'
import { Item } from './item.tsx'
import { isShortened, usableOf } from './plan.ts'
import { Savings } from './savings.tsx'
import { BasketSettings } from './settings.tsx'
import { canAssemble, costs, countAgain, countingError, isCounting, plan, settings, startBasket } from './store.ts'
import { Suggestions } from './suggestions.tsx'
import { t } from './words.ts'

/** The basket: what was picked, what it costs, and the way out. */
export function BasketPane() {
  const undone = useSignal<readonly BasketItem[]>([])
  useEffect(startBasket, [])
  const { items } = plan.value
  return (
    <section class="basket" aria-labelledby="basket-title">
      <header class="basket-top">
        <h2 id="basket-title">{t('basket')}</h2>
        <button
          type="button"
          class="button button-icon"
          aria-label={t('close')}
          title={t('close')}
          onClick={() => go({ basket: undefined })}
        >
          <Shape name="close" />
        </button>
      </header>
      {items.length === 0 ? (
        <div class="basket-scroll">
          <div class="basket-nothing" aria-hidden="true">
            <Shape name="basket" />
          </div>
          <p class="basket-strong">{t('empty')}</p>
          <p class="basket-hint">{t('emptyHint')}</p>
          {undone.value.length === 0 ? null : (
            <p class="basket-hint" role="status">
              {t('cleared', { count: undone.value.length })}{' '}
              <button
                type="button"
                class="button"
                onClick={() => {
                  basket.value = undone.value
                  undone.value = []
                }}
              >
                {t('undo')}
              </button>
            </p>
          )}
          {canAssemble.value ? <Suggestions /> : null}
        </div>
      ) : (
        <>
          <Sum />
          <div class="basket-scroll">
            {canAssemble.value ? null : <p class="basket-note">{t('estimated')}</p>}
            {countingError.value === undefined ? null : (
              <p class="basket-note basket-bad" role="alert">
                {reasonOf(countingError.value)}{' '}
                <button type="button" class="button" onClick={countAgain}>
                  ↻
                </button>
              </p>
            )}
            <Savings />
            <ol class="basket-items">
              {items.map((item, at) => (
                <Item key={item.resource.uri} item={item} isFirst={at === 0} isLast={at === items.length - 1} />
              ))}
            </ol>
            <BasketSettings />
            {canAssemble.value ? <Suggestions /> : null}
            <button
              type="button"
              class="button basket-clear"
              onClick={() => {
                undone.value = basket.value
                basket.value = []
              }}
            >
              {t('clear')}
            </button>
          </div>
          {canAssemble.value ? <Export /> : null}
        </>
      )}
    </section>
  )
}

/** How much of the budget is used: exact where the server counts. */
function Sum() {
  const { tokens, over, isWhole, items } = plan.value
  const usable = usableOf(settings.value.budget)
  const missing = items.filter((item) => item.tokens === undefined)
  const used = tokens + missing.reduce((sum, { resource }) => sum + (estimateOf(resource) ?? 0), 0)
  const left = usable - used
  const shortened = items.filter((item) => isShortened(item, costs.value.get(item.resource.uri))).length
  return (
    <div class="basket-sum">
      <div class={over > 0 ? 'basket-bar basket-bar-over' : 'basket-bar'} aria-hidden="true">
        <div style={{ width: `${Math.min(100, (100 * used) / Math.max(1, usable))}%` }} />
      </div>
      <p role="status" aria-live="polite">
        <strong>{t(isWhole ? 'of' : 'aboutOf', { used, usable })}</strong>
        <span class={over > 0 ? 'basket-over' : 'basket-left'}>
          {isCounting.value ? t('counting') : left < 0 ? t('over', { count: -left }) : t('left', { count: left })}
        </span>
      </p>
      {shortened === 0 ? null : (
        <p class="basket-warn">{t('someShortened', { count: shortened, all: items.length })}</p>
      )}
      <p class="basket-reserve">{t('reserve', { budget: settings.value.budget, usable })}</p>
    </div>
  )
}
