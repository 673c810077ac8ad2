import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { defined } from '../../../core/kit/object.ts'
import type { FilledPrompt } from '../../../core/provider.ts'
import type { ListedPrompt, PromptContent, Resource } from '../../../core/view.ts'
import { addToBasket } from '../basket/picked.ts'
import { Button, ServerText } from '../shell/fields.tsx'
import { lazyComponent } from '../shell/panes.tsx'
import { copyToClipboard, errorSentence } from '../state/announce.ts'
import { linkTo, navigate, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'
import { Combobox, formatFieldValues, parseFieldValues } from './combobox.tsx'
import { t } from './words.ts'

const PromptMedia = lazyComponent(async () => (await import('../preview/media.tsx')).PromptMedia)

/** Maximum number of characters of a message that are drawn. The whole message is copied. */
const maxShown = 100_000

/** The form of a prompt, and its messages from the server. The permalink contains the values. */
export function PromptForm({ prompt }: { readonly prompt: ListedPrompt }) {
  const filled = useSignal<FilledPrompt<PromptContent> | undefined>(undefined)
  const error = useSignal('')
  const isRunning = useSignal(false)
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const fields = prompt.arguments ?? []
  const values = parseFieldValues(route.value.values)
  const missing = fields.filter(({ name, required }) => required === true && (values[name] ?? '') === '')
  const valuesExcept = (except?: string) =>
    new Map(
      fields.flatMap(({ name }) => {
        const value = parseFieldValues(route.value.values)[name] ?? ''
        return name === except || value === '' ? [] : [[name, value] as const]
      }),
    )
  const run = async () => {
    const { prompts } = requireConnection().view
    if (missing.length > 0 || prompts === undefined) return
    running.current?.abort()
    const controller = new AbortController()
    running.current = controller
    isRunning.value = true
    error.value = ''
    try {
      filled.value = await prompts.get({ name: prompt.name, arguments: valuesExcept() }, { signal: controller.signal })
    } catch (cause) {
      if (!controller.signal.aborted) {
        filled.value = undefined
        error.value = errorSentence(cause)
      }
    } finally {
      if (running.current === controller) isRunning.value = false
    }
  }
  return (
    <form
      class="template-form"
      onSubmit={(event) => {
        event.preventDefault()
        void run()
      }}
    >
      <ServerText as="h2" text={prompt.title ?? prompt.name} />
      {prompt.description === undefined ? null : <p>{escapeInvisible(prompt.description)}</p>}
      {fields.map(({ name, title, description, required }) => (
        <Combobox
          key={name}
          label={title ?? name}
          hint={[required === true ? '' : `(${t('optional')})`, description ?? ''].join(' ').trim() || undefined}
          value={values[name] ?? ''}
          isRequired={required === true}
          complete={async (value, signal) =>
            (await requireConnection().view.prompts?.complete(
              { name: prompt.name, argument: { name, value }, arguments: valuesExcept(name) },
              { signal },
            )) ?? { values: [] }
          }
          onValue={(value) =>
            navigate(
              { values: formatFieldValues({ ...parseFieldValues(route.value.values), [name]: value }) },
              { replace: true },
            )
          }
          onEnter={() => void run()}
        />
      ))}
      {missing.length === 0 ? null : (
        <p class="hint">{t('incomplete', { names: missing.map(({ name }) => name).join(', ') })}</p>
      )}
      <p class="template-acts">
        <Button
          name={t(isRunning.value ? 'running' : 'runPrompt')}
          type="submit"
          class="button-main"
          disabled={missing.length > 0}
        />
      </p>
      {error.value === '' ? null : (
        <p class="find-note find-bad" role="alert">
          {error.value}
        </p>
      )}
      {filled.value === undefined ? null : <Messages filled={filled.value} />}
    </form>
  )
}

function Messages({ filled: { messages } }: { readonly filled: FilledPrompt<PromptContent> }) {
  const isCopied = useSignal(false)
  const resources = messages.flatMap(({ content }) => promptResource(content) ?? [])
  if (messages.length === 0) return <p class="find-note">{t('noMessages')}</p>
  return (
    <>
      <p class="template-acts">
        <Button
          name={isCopied.value ? t('copied') : t('copyMessages')}
          onClick={async () => {
            const texts = messages.map(({ content }) => contentText(content))
            isCopied.value = await copyToClipboard(texts.filter((text) => text !== '').join('\n\n'))
          }}
        />
        {resources.length === 0 ? null : (
          <Button
            name={t('pickResources', { count: resources.length })}
            onClick={() => addToBasket(resources.map((resource) => ({ resource, level: 'auto' })))}
          />
        )}
      </p>
      <ol class="prompt-messages">
        {messages.map(({ role, content }, index) => (
          <li key={index} class="prompt-message">
            <h3>{t(role === 'assistant' ? 'roleAssistant' : 'roleUser')}</h3>
            <MessageContent content={content} />
          </li>
        ))}
      </ol>
    </>
  )
}

function MessageContent({ content }: { readonly content: PromptContent }) {
  const resource = promptResource(content)
  const media = mediaOf(content)
  const text = 'link' in content || media !== undefined ? '' : contentText(content)
  return (
    <>
      {resource === undefined ? null : (
        <p>
          <a href={linkTo({ uri: resource.uri, source: undefined })}>{escapeInvisible(resource.uri)}</a>
        </p>
      )}
      {text === '' ? null : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable text must be reachable by keys
        <pre tabIndex={0} lang={langOf(text.slice(0, 20_000))}>
          {escapeInvisible(text.slice(0, maxShown))}
        </pre>
      )}
      {media === undefined ? null : <PromptMedia {...media} />}
    </>
  )
}

function promptResource(content: PromptContent): Resource | undefined {
  if ('link' in content) return content.link
  if (!('resource' in content)) return undefined
  const { uri, mimeType } = content.resource
  return { uri, name: uri.split('/').at(-1) ?? uri, ...defined({ mimeType }) }
}

/** The bytes of a message with an image, a sound, or another binary resource. */
function mediaOf(content: PromptContent): { readonly bytes: Uint8Array; readonly mimeType: string } | undefined {
  if ('bytes' in content) return content
  if (!('resource' in content) || !('bytes' in content.resource)) return undefined
  const { bytes, mimeType = 'application/octet-stream' } = content.resource
  return { bytes, mimeType }
}

/** Returns the text of a content or of its resource, else the URI of the resource. Empty for images and sounds. */
function contentText(content: PromptContent): string {
  if ('text' in content) return content.text
  if ('link' in content) return content.link.uri
  if ('resource' in content) return 'text' in content.resource ? content.resource.text : content.resource.uri
  return ''
}
