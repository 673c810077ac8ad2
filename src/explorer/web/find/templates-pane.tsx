import { useSignal } from '@preact/signals'
import type { ResourceTemplate } from '../../../core/view.ts'
import { fold } from '../state/fold.ts'
import { linkTo, place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { shown } from '../state/shown.ts'
import { loadTemplates, templates } from '../state/templates.ts'
import { TemplateForm } from './template-form.tsx'
import { t } from './words.ts'

/** All templates, or the form of the one in the place. */
export function TemplatesPane() {
  const filter = useSignal('')
  const { state, items, error } = templates.value
  const { template } = place.value
  const chosen = items.find(({ uriTemplate }) => uriTemplate === template)
  const needle = fold(filter.value)
  const fitting = items.filter((item) => fold(`${item.title ?? ''} ${item.name} ${item.uriTemplate}`).includes(needle))
  return (
    <section class="find" aria-label={t('templates')} aria-busy={state === 'loading'}>
      {state === 'failed' ? (
        <p class="find-note find-bad">
          {reasonOf(error)}{' '}
          <button type="button" class="button" onClick={() => void loadTemplates()}>
            {t('retry')}
          </button>
        </p>
      ) : null}
      {template === undefined ? (
        <>
          <h2 class="find-head">{t('templates')}</h2>
          <p class="find-hint">
            {state === 'loading' ? t('loading') : items.length === 0 ? t('noTemplates') : t('templatesHint')}
          </p>
          {items.length > 8 ? (
            <input
              type="search"
              class="field find-filter"
              aria-label={t('filterTemplates')}
              placeholder={t('filterTemplates')}
              value={filter.value}
              onInput={({ currentTarget }) => {
                filter.value = currentTarget.value
              }}
            />
          ) : null}
          <ul class="templates">
            {fitting.map((item) => (
              <TemplateRow key={item.uriTemplate} template={item} />
            ))}
          </ul>
        </>
      ) : (
        <>
          <p class="find-hint">
            <a href={linkTo({ template: undefined, values: undefined })}>← {t('back')}</a>
          </p>
          {chosen === undefined ? (
            <p class="find-count">{state === 'loading' ? t('loading') : t('unknownTemplate')}</p>
          ) : (
            <TemplateForm key={template} template={chosen} />
          )}
        </>
      )}
    </section>
  )
}

function TemplateRow({ template: { uriTemplate, title, name, description } }: { readonly template: ResourceTemplate }) {
  return (
    <li class="template">
      <a href={linkTo({ template: uriTemplate, values: undefined })}>
        <bdi>{shown(title ?? name)}</bdi>
      </a>
      <code>{shown(uriTemplate)}</code>
      {description === undefined ? null : <p>{shown(description)}</p>}
    </li>
  )
}
