import './find.css'
import { useEffect } from 'preact/hooks'
import { Button, ServerText } from '../shell/fields.tsx'
import { followPrompts } from '../state/live.ts'
import { loadTemplates, prompts, templates } from '../state/offered.ts'
import { linkTo, navigate, route } from '../state/route.ts'
import { SearchPane } from './search-pane.tsx'
import './prompts.css'
import { useSignal } from '@preact/signals'
import { foldText } from '../../../core/kit/matching.ts'
import type { ResourceTemplate } from '../../../core/view.ts'
import { copyToClipboard, errorSentence } from '../state/announce.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import {
  Combobox,
  createTemplateForm,
  formatFieldValues,
  missingFields,
  otherValues,
  parseFieldValues,
  type TemplateField,
  type TemplateFormModel,
  uriOfForm,
} from './combobox.tsx'
import { PromptForm } from './prompt-form.tsx'
import { t } from './words.ts'

/** The results of a search; or the prompts with the templates below them; or the form of one prompt or template. */
export function FindPane() {
  useEffect(() => {
    if (templates.value.state !== 'loaded') void loadTemplates()
  }, [])
  const { view, template, prompt } = route.value
  // A form begins at its top, also when the list was scrolled.
  useEffect(() => document.getElementById('left')?.scrollTo(0, 0), [view, template, prompt])
  if (view !== 'templates') return <SearchPane />
  return (
    <>
      {template === undefined ? <PromptsPane /> : null}
      {prompt === undefined ? <TemplatesPane /> : null}
    </>
  )
}

function PromptsPane() {
  const { state, items, isPart, error } = prompts.value
  const isLoading = state === 'loading'
  useEffect(() => {
    if (prompts.value.state !== 'loaded') void followPrompts()
  }, [])
  const { prompt } = route.value
  const chosen = items.find(({ name }) => name === prompt)
  if (prompt === undefined && state === 'loaded' && items.length === 0) return null
  return (
    <section class="find" aria-label={t('prompts')} aria-busy={isLoading}>
      {state !== 'failed' ? null : (
        <p class="find-note find-bad">
          {errorSentence(error)} <Button name={t('retry')} onClick={() => void followPrompts()} />
        </p>
      )}
      {prompt === undefined ? (
        <>
          <h2 class="find-head">{t('prompts')}</h2>
          <p class="hint">{isLoading ? t('loading') : t('promptsHint')}</p>
          <ul class="templates">
            {items.map(({ name, title, description }) => (
              <li key={name} class="template">
                <ServerText as="a" href={linkTo({ prompt: name, values: undefined })} text={title ?? name} />
                {title === undefined ? null : <code>{escapeInvisible(name)}</code>}
                {description === undefined ? null : <p>{escapeInvisible(description)}</p>}
              </li>
            ))}
          </ul>
          {isPart ? <p class="hint">{t('promptsPart', { count: items.length })}</p> : null}
        </>
      ) : (
        <>
          <p class="hint">
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

/** The templates of the server, or the form of the template in the permalink. */
function TemplatesPane() {
  const filter = useSignal('')
  const { state, items, error } = templates.value
  const { template } = route.value
  const chosen = items.find(({ uriTemplate }) => uriTemplate === template)
  const needle = foldText(filter.value)
  const fitting = items.filter((item) =>
    foldText(`${item.title ?? ''} ${item.name} ${item.uriTemplate}`).includes(needle),
  )
  const list = (
    <>
      <p class="hint">
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
  )
  return (
    <section class="find" aria-label={t('templates')} aria-busy={state === 'loading'}>
      {state === 'failed' ? (
        <p class="find-note find-bad">
          {errorSentence(error)} <Button name={t('retry')} onClick={() => void loadTemplates()} />
        </p>
      ) : null}
      {template === undefined ? (
        <details class="find-advanced" open={requireConnection().view.prompts === undefined}>
          <summary>
            <h2 class="find-head">{t('advanced')}</h2>
          </summary>
          {list}
        </details>
      ) : (
        <>
          <p class="hint">
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
      <ServerText as="a" href={linkTo({ template: uriTemplate, values: undefined })} text={title ?? name} />
      <code>{escapeInvisible(uriTemplate)}</code>
      {description === undefined ? null : <p>{escapeInvisible(description)}</p>}
    </li>
  )
}

/** The form of a template. The permalink contains the values. */
function TemplateForm({ template }: { readonly template: ResourceTemplate }) {
  const form = createTemplateForm(template.uriTemplate)
  const isCopied = useSignal(false)
  if (form === undefined) return <p class="find-note find-bad">{escapeInvisible(template.uriTemplate)}</p>
  const values = parseFieldValues(route.value.values)
  const missing = missingFields(form, values)
  const uri = uriOfForm(form, values)
  const set = (name: string, value: string) =>
    navigate({ values: formatFieldValues({ ...values, [name]: value }) }, { replace: true })
  const open = () => {
    if (missing.length === 0 && uri !== undefined) navigate({ uri })
  }
  return (
    <form
      class="template-form"
      onSubmit={(event) => {
        event.preventDefault()
        open()
      }}
    >
      <ServerText as="h2" text={template.title ?? template.name} />
      {template.description === undefined ? null : <p>{escapeInvisible(template.description)}</p>}
      {form.fields.map((field) => (
        <Combobox
          key={field.name}
          label={field.name}
          hint={hintOf(field)}
          value={values[field.name] ?? ''}
          isRequired={!field.isOptional}
          complete={(value, signal) => completeField(template.uriTemplate, form, field.name, value, signal)}
          onValue={(value) => set(field.name, value)}
          onEnter={open}
        />
      ))}
      <p class="template-uri">
        <span>{t('opens')}</span>
        <code>{escapeInvisible(uri ?? template.uriTemplate)}</code>
      </p>
      {missing.length === 0 ? null : <p class="hint">{t('incomplete', { names: missing.join(', ') })}</p>}
      <p class="template-acts">
        <Button name={t('open')} type="submit" class="button-main" disabled={missing.length > 0 || uri === undefined} />
        <Button
          name={isCopied.value ? t('copied') : t('copyUri')}
          disabled={missing.length > 0 || uri === undefined}
          onClick={async () => {
            isCopied.value = uri !== undefined && (await copyToClipboard(uri))
          }}
        />
      </p>
    </form>
  )
}

function hintOf({ isOptional, isList }: TemplateField): string | undefined {
  const hints = [...(isOptional ? [t('optional')] : []), ...(isList ? [t('list')] : [])]
  return hints.length === 0 ? undefined : `(${hints.join('; ')})`
}

function completeField(uriTemplate: string, form: TemplateFormModel, name: string, value: string, signal: AbortSignal) {
  const { view } = requireConnection()
  // The existing values may have changed since the form was drawn.
  const values = otherValues(form, parseFieldValues(route.value.values), name)
  return view.complete({ uriTemplate, argument: { name, value }, arguments: values }, { signal })
}
