import './find.css'
import { useEffect } from 'preact/hooks'
import { linkTo, place } from '../state/place.ts'
import { loadTemplates, templates } from '../state/templates.ts'
import { SearchPane } from './search-pane.tsx'
import { TemplatesPane } from './templates-pane.tsx'
import './prompts.css'
import { loadPrompts, prompts } from '../state/prompts.ts'
import { reasonOf } from '../state/reason.ts'
import { shown } from '../state/shown.ts'
import { PromptForm } from './prompt-form.tsx'
import { t } from './words.ts'

/** The results of a search, or the templates and the form for one. */
export function FindPane() {
  useEffect(() => {
    if (templates.value.state !== 'loaded') void loadTemplates()
  }, [])
  const { view, template, prompt } = place.value
  if (view !== 'templates') return <SearchPane />
  return (
    <>
      {template === undefined ? <PromptsPane /> : null}
      {prompt === undefined ? <TemplatesPane /> : null}
    </>
  )
}

/** All prompts of the server, or the form of the one in the permalink. Empty if the server has none. */
function PromptsPane() {
  const { state, items, isPart, error } = prompts.value
  const isLoading = state === 'loading'
  useEffect(() => {
    if (prompts.value.state !== 'loaded') void loadPrompts()
  }, [])
  const { prompt } = place.value
  const chosen = items.find(({ name }) => name === prompt)
  if (prompt === undefined && state === 'loaded' && items.length === 0) return null
  return (
    <section class="find" aria-label={t('prompts')} aria-busy={isLoading}>
      {state !== 'failed' ? null : (
        <p class="find-note find-bad">
          {reasonOf(error)}{' '}
          <button type="button" class="button" onClick={() => void loadPrompts()}>
            {t('retry')}
          </button>
        </p>
      )}
      {prompt === undefined ? (
        <>
          <h2 class="find-head">{t('prompts')}</h2>
          <p class="find-hint">{isLoading ? t('loading') : t('promptsHint')}</p>
          <ul class="templates">
            {items.map(({ name, title, description }) => (
              <li key={name} class="template">
                <a href={linkTo({ prompt: name, values: undefined })}>
                  <bdi>{shown(title ?? name)}</bdi>
                </a>
                {title === undefined ? null : <code>{shown(name)}</code>}
                {description === undefined ? null : <p>{shown(description)}</p>}
              </li>
            ))}
          </ul>
          {isPart ? <p class="find-hint">{t('promptsPart', { count: items.length })}</p> : null}
        </>
      ) : (
        <>
          <p class="find-hint">
            <a href={linkTo({ prompt: undefined, values: undefined })}>← {t('promptBack')}</a>
          </p>
          {chosen === undefined ? (
            <p class="find-count">{isLoading ? t('loading') : t('unknownPrompt')}</p>
          ) : (
            <PromptForm key={prompt} prompt={chosen} />
          )}
        </>
      )}
    </section>
  )
}
