import { useSignal } from '@preact/signals'
import { type Encoding, encodings, type Format, formats, type Settings } from './ask.ts'
import { settings } from './store.ts'
import { t } from './words.ts'

const presets = [4000, 8000, 32_000, 128_000, 200_000] as const

const names: Readonly<Record<Format, string>> = { xml: 'XML', markdown: 'Markdown', json: 'JSON' }

/** The budget, the encoding of tokens, and the question of the basket. */
export function BasketSettings() {
  const { budget, encoding, format, purpose } = settings.value
  const isOwn = useSignal(!presets.some((preset) => preset === budget))
  const set = (change: Partial<Settings>) => {
    settings.value = { ...settings.value, ...change }
  }
  return (
    <div class="basket-settings">
      <label>
        <span>{t('budget')}</span>
        <select
          class="field"
          value={isOwn.value ? 'own' : String(budget)}
          onChange={({ currentTarget }) => {
            isOwn.value = currentTarget.value === 'own'
            if (!isOwn.value) set({ budget: Number(currentTarget.value) })
          }}
        >
          {presets.map((preset) => (
            <option key={preset} value={preset}>
              {preset / 1000}k
            </option>
          ))}
          <option value="own">{t('own')}</option>
        </select>
      </label>
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
              const wanted = Math.round(currentTarget.valueAsNumber)
              if (wanted >= 1 && wanted <= 1_000_000) set({ budget: wanted })
            }}
          />
        </label>
      ) : null}
      <label>
        <span>{t('encoding')}</span>
        <select
          class="field"
          value={encoding}
          onChange={({ currentTarget }) => set({ encoding: currentTarget.value as Encoding })}
        >
          {encodings.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{t('format')}</span>
        <select
          class="field"
          value={format}
          onChange={({ currentTarget }) => set({ format: currentTarget.value as Format })}
        >
          {formats.map((one) => (
            <option key={one} value={one}>
              {names[one]}
            </option>
          ))}
        </select>
      </label>
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
