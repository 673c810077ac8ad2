import './prompts.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ListedPrompt } from '../../../core/view.ts'
import { linkTo, place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { connected } from '../state/session.ts'
import { shown } from '../state/shown.ts'
import { PromptForm } from './prompt-form.tsx'
import { t } from './words.ts'

/** So many pages of prompts are followed: a listing that never ends is not followed for ever. */
const maxPages = 50

/** All prompts of the server, or the form of the one in the place. Nothing, for a server without any. */
export function PromptsPane() {
  const items = useSignal<readonly ListedPrompt[] | undefined>(undefined)
  const error = useSignal('')
  const tries = useSignal(0)
  const { prompts } = connected().view
  useEffect(() => {
    const controller = new AbortController()
    const load = async () => {
      const found: ListedPrompt[] = []
      let cursor: string | undefined
      for (let pages = 0; prompts !== undefined && pages < maxPages; pages++) {
        const page = await prompts.list(cursor === undefined ? {} : { cursor }, { signal: controller.signal })
        found.push(...page.items)
        cursor = page.nextCursor
        if (cursor === undefined) break
      }
      items.value = found
      error.value = ''
    }
    load().catch((cause: unknown) => {
      if (!controller.signal.aborted) error.value = reasonOf(cause)
    })
    return () => controller.abort()
  }, [prompts, tries.value])
  const { prompt } = place.value
  const chosen = items.value?.find(({ name }) => name === prompt)
  if (prompt === undefined && items.value?.length === 0) return null
  return (
    <section class="find" aria-label={t('prompts')} aria-busy={items.value === undefined}>
      {error.value === '' ? null : (
        <p class="find-note find-bad">
          {error.value}{' '}
          <button type="button" class="button" onClick={() => tries.value++}>
            {t('retry')}
          </button>
        </p>
      )}
      {prompt === undefined ? (
        <>
          <h2 class="prompts-head">{t('prompts')}</h2>
          <p class="find-hint">{items.value === undefined ? t('loading') : t('promptsHint')}</p>
          <ul class="templates">
            {items.value?.map(({ name, title, description }) => (
              <li key={name} class="template">
                <a href={linkTo({ prompt: name, values: undefined })}>
                  <bdi>{shown(title ?? name)}</bdi>
                </a>
                {title === undefined ? null : <code>{shown(name)}</code>}
                {description === undefined ? null : <p>{shown(description)}</p>}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <>
          <p class="find-hint">
            <a href={linkTo({ prompt: undefined, values: undefined })}>← {t('promptBack')}</a>
          </p>
          {chosen === undefined ? (
            <p class="find-count">{items.value === undefined ? t('loading') : t('unknownPrompt')}</p>
          ) : (
            <PromptForm key={prompt} prompt={chosen} />
          )}
        </>
      )}
    </section>
  )
}
