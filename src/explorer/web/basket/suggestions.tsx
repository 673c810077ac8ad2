import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { add, basket, isPicked } from '../state/basket.ts'
import { linkTo, place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { connected } from '../state/session.ts'
import { shown, tailOf } from '../state/shown.ts'
import { readableUri } from '../tree/columns.ts'
import { type Suggestion, suggest } from './ask.ts'
import { settings } from './store.ts'
import { t } from './words.ts'

/** Further resources that may help, each with the reason. */
export function Suggestions() {
  const found = useSignal<readonly Suggestion[] | undefined>(undefined)
  const told = useSignal('')
  const asking = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => asking.current?.abort(), [])
  const ask = async () => {
    asking.current?.abort()
    const controller = new AbortController()
    asking.current = controller
    told.value = t('working')
    try {
      // Without a purpose, the current search is the purpose.
      const { purpose } = settings.value
      const asked = { ...settings.value, purpose: purpose.trim() === '' ? (place.value.q ?? '') : purpose }
      const suggestions = await suggest(connected(), basket.value, asked, controller.signal)
      found.value = suggestions
      told.value = suggestions.length === 0 ? t('noSuggestions') : ''
    } catch (error) {
      if (!controller.signal.aborted) told.value = reasonOf(error)
    }
  }
  const open = (found.value ?? []).filter(({ resource }) => !isPicked(resource.uri))
  return (
    <div class="basket-suggestions">
      <h3>{t('suggestions')}</h3>
      <ul>
        {open.map(({ resource, because }) => {
          const name = shown(resource.title ?? resource.name)
          return (
            <li key={resource.uri}>
              <div>
                <a href={linkTo({ uri: resource.uri })} title={resource.uri}>
                  <bdi>{name}</bdi>
                </a>
                <p class="basket-uri">
                  <bdi>{tailOf(readableUri(resource.uri), 48)}</bdi>
                </p>
              </div>
              <button
                type="button"
                class="button"
                aria-label={t('add', { name })}
                onClick={() => add([{ resource, level: 'auto' }])}
              >
                +
              </button>
              <details>
                <summary>{t('why')}</summary>
                <ul>
                  {because.map((line) => (
                    <li key={line}>{shown(line)}</li>
                  ))}
                </ul>
              </details>
            </li>
          )
        })}
      </ul>
      <p class="basket-hint" role="status">
        {told.value}
      </p>
      <button type="button" class="button" onClick={ask}>
        {t('suggest')}
      </button>
    </div>
  )
}
