import './basket.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type BasketItem, estimateTokens, isShortened, suggestSavings, usableBudget } from '../../../browse/basket.ts'
import { readableUri } from '../listing/columns.ts'
import { Button, ServerText } from '../shell/fields.tsx'
import { Icon } from '../shell/icons.tsx'
import { errorSentence } from '../state/announce.ts'
import { linkTo, navigate, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, truncateStart } from '../words/texts.ts'
import { type Suggestion, suggest } from './ask.ts'
import { BasketExport } from './export.tsx'
import { BasketItemList } from './groups.tsx'
import { BasketSettings } from './parts.tsx'
import { addToBasket, basket, isPicked, removeFromBasket, setLevel } from './picked.ts'
import {
  basketPlan,
  basketSettings,
  canAssemble,
  countAgain,
  countingError,
  isCounting,
  startBasket,
  tokenCosts,
} from './store.ts'
import { t } from './words.ts'

/** The basket: its items, their tokens, and the export. */
export function BasketPane() {
  const undone = useSignal<readonly BasketItem[]>([])
  useEffect(startBasket, [])
  const { items } = basketPlan.value
  return (
    <section class="basket" aria-labelledby="basket-title">
      <header class="basket-top">
        <h2 id="basket-title">{t('basket')}</h2>
        <Button name={t('close')} icon="close" class="button-icon" onClick={() => navigate({ basket: undefined })} />
      </header>
      {items.length === 0 ? (
        <div class="basket-scroll">
          <div class="basket-nothing" aria-hidden="true">
            <Icon name="basket" />
          </div>
          <p class="basket-strong">{t('empty')}</p>
          <p class="hint">{t('emptyHint')}</p>
          {undone.value.length === 0 ? null : (
            <p class="hint" role="status">
              {t('cleared', { count: undone.value.length })}{' '}
              <Button
                name={t('undo')}
                onClick={() => {
                  basket.value = undone.value
                  undone.value = []
                }}
              />
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
                {errorSentence(countingError.value)} <Button name="↻" onClick={countAgain} />
              </p>
            )}
            <Savings />
            <BasketItemList items={items} />
            <BasketSettings />
            {canAssemble.value ? <Suggestions /> : null}
            <Button
              name={t('clear')}
              class="basket-clear"
              onClick={() => {
                undone.value = basket.value
                basket.value = []
              }}
            />
          </div>
          {canAssemble.value ? <BasketExport /> : null}
        </>
      )}
    </section>
  )
}

/** The used share of the budget: an estimate until the server has counted the tokens of all items. */
function Sum() {
  const { tokens, over, isWhole, items } = basketPlan.value
  const usable = usableBudget(basketSettings.value.budget)
  const missing = items.filter((item) => item.tokens === undefined)
  const usedTokens = tokens + missing.reduce((sum, { resource }) => sum + (estimateTokens(resource) ?? 0), 0)
  const remainingTokens = usable - usedTokens
  const shortened = items.filter((item) => isShortened(item, tokenCosts.value.get(item.resource.uri))).length
  return (
    <div class="basket-sum">
      <div class={over > 0 ? 'basket-bar basket-bar-over' : 'basket-bar'} aria-hidden="true">
        <div style={{ width: `${Math.min(100, (100 * usedTokens) / Math.max(1, usable))}%` }} />
      </div>
      <p role="status" aria-live="polite">
        <strong>{t(isWhole ? 'of' : 'aboutOf', { used: usedTokens, usable })}</strong>
        <span class={over > 0 ? 'basket-over' : 'basket-left'}>
          {isCounting.value
            ? t('counting')
            : remainingTokens < 0
              ? t('over', { count: -remainingTokens })
              : t('left', { count: remainingTokens })}
        </span>
      </p>
      {shortened === 0 ? null : (
        <p class="basket-warn">{t('someShortened', { count: shortened, all: items.length })}</p>
      )}
      <p class="basket-reserve">{t('reserve', { budget: basketSettings.value.budget, usable })}</p>
    </div>
  )
}

/** Suggestions to remove or lower items when the basket exceeds the budget, each with one click. */
function Savings() {
  const savings = suggestSavings(basketPlan.value, tokenCosts.value)
  if (savings.length === 0) return null
  const names = new Map(
    basketPlan.value.items.map(({ resource }) => [resource.uri, escapeInvisible(resource.title ?? resource.name)]),
  )
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
                <Button
                  name={t('lower', { name, level: t(saving.to), saved })}
                  onClick={() => setLevel(uri, saving.to)}
                />
              ) : (
                <Button name={t('drop', { name, saved })} onClick={() => removeFromBasket(uri)} />
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

/** Further resources that may help, each with the reason. */
function Suggestions() {
  const need = useSignal<readonly Suggestion[] | undefined>(undefined)
  const message = useSignal('')
  const asking = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => asking.current?.abort(), [])
  const ask = async () => {
    asking.current?.abort()
    const controller = new AbortController()
    asking.current = controller
    message.value = t('working')
    try {
      // Without a purpose, the current search is the purpose.
      const { purpose } = basketSettings.value
      const query = { ...basketSettings.value, purpose: purpose.trim() === '' ? (route.value.q ?? '') : purpose }
      const suggestions = await suggest(requireConnection(), basket.value, query, controller.signal)
      need.value = suggestions
      message.value = suggestions.length === 0 ? t('noSuggestions') : ''
    } catch (error) {
      if (!controller.signal.aborted) message.value = errorSentence(error)
    }
  }
  const open = (need.value ?? []).filter(({ resource }) => !isPicked(resource.uri))
  return (
    <div class="basket-suggestions">
      <h3>{t('suggestions')}</h3>
      <ul>
        {open.map(({ resource, because }) => {
          const name = escapeInvisible(resource.title ?? resource.name)
          return (
            <li key={resource.uri}>
              <div>
                <ServerText as="a" href={linkTo({ uri: resource.uri })} title={resource.uri} text={name} />
                <ServerText as="p" class="basket-uri" text={truncateStart(readableUri(resource.uri), 48)} />
              </div>
              <Button name={t('add', { name })} sign="+" onClick={() => addToBasket([{ resource, level: 'auto' }])} />
              <details>
                <summary>{t('why')}</summary>
                <ul>
                  {because.map((line) => (
                    <li key={line}>{escapeInvisible(line)}</li>
                  ))}
                </ul>
              </details>
            </li>
          )
        })}
      </ul>
      <p class="hint" role="status">
        {message.value}
      </p>
      <Button name={t('suggest')} onClick={ask} />
    </div>
  )
}
