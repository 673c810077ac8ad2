import { Button, Select, type SelectOption, ServerText } from '../shell/fields.tsx'
import './adding.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import {
  type BasketLevel,
  estimateTokens,
  isShortened,
  levelsOf,
  type PlannedItem,
  usableBudget,
} from '../../../browse/basket.ts'
import { readableUri } from '../listing/columns.ts'
import { Icon } from '../shell/icons.tsx'
import { errorSentence } from '../state/announce.ts'
import { linkTo } from '../state/route.ts'
import { escapeInvisible, formatNumber } from '../words/texts.ts'
import { type AssemblySettings, type BasketFormat, basketFormats, type TokenEncoding, tokenEncodings } from './ask.ts'
import {
  addableItems,
  cancelAdding,
  confirmAdding,
  maxBasketItems,
  moveInBasket,
  type PendingAdd,
  pendingAdd,
  removeBelow,
  removeFromBasket,
  setLevel,
} from './picked.ts'
import { basketPlan, basketSettings, staleItems, tokenCosts } from './store.ts'
import { t } from './words.ts'

interface ItemProps {
  readonly item: PlannedItem
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** An item of the basket on one line, with its level and its tokens; faults are shown below. */
export function BasketItemRow({ item, isFirst, isLast }: ItemProps) {
  const { resource, taken, tokens, missing, notes } = item
  const { uri, name } = resource
  const label = escapeInvisible(name)
  const estimate = tokens === undefined ? estimateTokens(resource) : undefined
  const share = (100 * (tokens ?? estimate ?? 0)) / Math.max(1, basketPlan.value.tokens)
  const isShort = isShortened(item, tokenCosts.value.get(uri))
  const title = [resource.title, readableUri(uri), t('share_of', { percent: Math.round(share) })]
  return (
    <li class={`basket-item${missing ? ' basket-missing' : ''}${isShort ? ' basket-short' : ''}`}>
      <div class="basket-line">
        <ServerText
          as="a"
          href={linkTo({ uri })}
          title={escapeInvisible(title.filter((one) => one !== undefined).join('\n'))}
          text={label}
        />
        {isShort ? (
          <span class="basket-mark" title={t('shortened', { level: t(taken) })}>
            <Icon name="warn" />
            <span class="unseen">{t('shortened', { level: t(taken) })}</span>
          </span>
        ) : null}
        <LevelChoice item={item} label={label} />
        <span class="basket-tokens">
          {tokens !== undefined ? formatNumber(tokens) : estimate === undefined ? '…' : `~${formatNumber(estimate)}`}
        </span>
        <span class="basket-buttons">
          <Button
            name={t('up', { name: label })}
            icon="up"
            class="button-icon"
            disabled={isFirst}
            onClick={() => moveInBasket(uri, -1)}
          />
          <Button
            name={t('down', { name: label })}
            icon="down"
            class="button-icon"
            disabled={isLast}
            onClick={() => moveInBasket(uri, 1)}
          />
          <Button
            name={t('remove', { name: label })}
            icon="close"
            class="button-icon"
            onClick={() => removeFromBasket(uri)}
          />
        </span>
      </div>
      {missing ? <p class="basket-note basket-bad">{t('missing')}</p> : null}
      {staleItems.value.has(uri) ? <p class="basket-note">{t('changed')}</p> : null}
      {(missing ? [] : notes).map((note) => (
        <p key={note} class="basket-note">
          {escapeInvisible(note)}
        </p>
      ))}
    </li>
  )
}

/** The level of an item: automatic, or chosen by the user. */
function LevelChoice({ item, label }: { readonly item: PlannedItem; readonly label: string }) {
  const { resource, level, taken } = item
  const cost = tokenCosts.value.get(resource.uri)
  const offered = levelsOf(cost)
  // A shared link can choose a level that the resource does not have.
  const levels = level === 'auto' || offered.includes(level) ? offered : [level, ...offered]
  return (
    <select
      class="field"
      aria-label={t('level', { name: label })}
      value={level}
      onChange={({ currentTarget }) => setLevel(resource.uri, currentTarget.value as BasketLevel)}
    >
      <option value="auto">{t('auto', { level: t(taken) })}</option>
      {levels.map((one) => {
        const count = cost?.levels[one]
        return (
          <option key={one} value={one}>
            {count === undefined ? t(one) : `${t(one)} · ${formatNumber(count)}`}
          </option>
        )
      })}
    </select>
  )
}

const presets = [4000, 8000, 32_000, 128_000, 200_000] as const

const names: Readonly<Record<BasketFormat, string>> = { xml: 'XML', markdown: 'Markdown', json: 'JSON' }

export function BasketSettings() {
  const { budget, encoding, format, purpose } = basketSettings.value
  const isOwn = useSignal(!presets.some((preset) => preset === budget))
  const set = (change: Partial<AssemblySettings>) => {
    basketSettings.value = { ...basketSettings.value, ...change }
  }
  return (
    <div class="basket-settings">
      <Select
        label={t('budget')}
        options={[
          ...presets.map((preset): SelectOption<string> => [String(preset), `${preset / 1000}k`]),
          ['own', t('own')],
        ]}
        value={isOwn.value ? 'own' : String(budget)}
        onChoose={(value) => {
          isOwn.value = value === 'own'
          if (!isOwn.value) set({ budget: Number(value) })
        }}
      />
      {isOwn.value ? (
        <label>
          <span>{t('ownBudget')}</span>
          <input
            type="number"
            class="field"
            min={100}
            max={1_000_000}
            step={100}
            value={budget}
            onChange={({ currentTarget }) => {
              const budget = Math.round(currentTarget.valueAsNumber)
              if (budget >= 1 && budget <= 1_000_000) set({ budget: budget })
            }}
          />
        </label>
      ) : null}
      <Select
        label={t('encoding')}
        options={tokenEncodings.map((one): SelectOption<TokenEncoding> => [one, one])}
        value={encoding}
        onChoose={(value) => set({ encoding: value })}
      />
      <Select
        label={t('format')}
        options={basketFormats.map((one): SelectOption<BasketFormat> => [one, names[one]])}
        value={format}
        onChoose={(value) => set({ format: value })}
      />
      <label class="basket-purpose">
        <span>{t('purpose')}</span>
        <input
          type="text"
          class="field"
          value={purpose}
          title={t('purposeHint')}
          onChange={({ currentTarget }) => set({ purpose: currentTarget.value })}
        />
      </label>
    </div>
  )
}

/** Shows the number of resources that will be added, and asks for a confirmation. */
export function AddingDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const now = pendingAdd.value
  useEffect(() => {
    if (now !== undefined && dialog.current?.open === false) dialog.current.showModal()
  }, [now])
  if (now === undefined) return null
  return (
    <dialog ref={dialog} class="adding" aria-labelledby="adding-title" onClose={cancelAdding}>
      <h2 id="adding-title">
        {now.folder === undefined
          ? t('addMany', { what: escapeInvisible(now.name) })
          : t('addFolder', { name: escapeInvisible(now.name) })}
      </h2>
      <AddingBody now={now} />
    </dialog>
  )
}

/** The tokens that would be left in the budget, or exceed it, if the files were added in full. */
function BudgetAfter({ tokens }: { readonly tokens: number }) {
  const usable = usableBudget(basketSettings.value.budget)
  const after = basketPlan.value.tokens + tokens
  if (tokens === 0) return null
  return after <= usable ? (
    <p class="quiet">{t('budgetAfter', { left: usable - after })}</p>
  ) : (
    <p class="basket-note">{t('budgetOver', { over: after - usable, usable })}</p>
  )
}

function AddingBody({ now }: { readonly now: PendingAdd }) {
  const { state, below, error, folder } = now
  const offer = below === undefined ? undefined : addableItems(below.files)
  const count = offer?.fresh.length ?? 0
  return (
    <>
      <div role="status">
        {state === 'counting' ? <p class="quiet">{t('countingFiles')}</p> : null}
        {state === 'failed' ? <p class="bad">{errorSentence(error)}</p> : null}
        {offer === undefined ? null : (
          <>
            <p class="adding-sum">
              {offer.unknown > 0 || offer.tokens === 0
                ? t('files', { count })
                : t('filesAbout', { count, tokens: offer.tokens })}
            </p>
            <BudgetAfter tokens={offer.tokens} />
            {offer.alreadyIn > 0 ? <p class="quiet">{t('alreadyIn', { count: offer.alreadyIn })}</p> : null}
            {offer.tooMany > 0 || below?.isPart === true ? (
              <p class="basket-note">{t('limited', { count, most: maxBasketItems })}</p>
            ) : null}
          </>
        )}
      </div>
      <p class="adding-acts">
        {offer !== undefined && offer.alreadyIn > 0 && folder !== undefined ? (
          <Button
            name={t('takeOut', { count: offer.alreadyIn })}
            class="adding-out"
            onClick={() => {
              removeBelow(folder)
              cancelAdding()
            }}
          />
        ) : null}
        <Button name={t('cancel')} onClick={cancelAdding} />
        <Button
          name={t('addFiles', { count })}
          class="button-main"
          disabled={count === 0}
          onClick={() => confirmAdding(now)}
        />
      </p>
    </>
  )
}
