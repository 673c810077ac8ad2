import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Button } from '../shell/fields.tsx'
import { copyToClipboard, errorSentence } from '../state/announce.ts'
import { download } from '../state/browser.ts'
import { fragmentOf, permalinkUrl } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'
import { type AssembledContext, assemble, type BasketFormat } from './ask.ts'
import { basket } from './picked.ts'
import { basketPlan, basketSettings, formatPicks } from './store.ts'
import { t } from './words.ts'

const endings: Readonly<Record<BasketFormat, string>> = { xml: 'xml', markdown: 'md', json: 'json' }

/** The export: the assembled text, the manifest to make the text again, and a link to the basket. */
export function BasketExport() {
  const isBusy = useSignal(false)
  const message = useSignal('')
  const preview = useSignal<AssembledContext | undefined>(undefined)
  const { format } = basketSettings.value
  const cannot = isBusy.value || basketPlan.value.over > 0 || !basketPlan.value.isWhole

  const use = async (act: (assembled: AssembledContext) => string | Promise<string>) => {
    isBusy.value = true
    message.value = t('working')
    try {
      message.value = await act(await assemble(requireConnection(), basketPlan.value, basketSettings.value))
    } catch (error) {
      message.value = errorSentence(error)
    } finally {
      isBusy.value = false
    }
  }
  const share = async () => {
    const picks = formatPicks(basket.value)
    if (picks === undefined) {
      message.value = t('shareTooLong')
      return
    }
    const link = permalinkUrl(fragmentOf({ basket: '1', picks }))
    message.value = (await copyToClipboard(link)) ? t('linkCopied') : t('copyFailed')
  }
  /** Returns a button that assembles the text, and passes it to `act`. */
  const out = (
    label: string,
    act: (assembled: AssembledContext) => string | Promise<string>,
    more: { readonly class?: string; readonly title?: string } = {},
  ) => <Button name={label} disabled={cannot} onClick={() => use(act)} {...more} />
  return (
    <div class="basket-export">
      <div class="basket-outs">
        {out(
          t('copy'),
          async ({ text, tokens }) =>
            (await copyToClipboard(text)) ? t('copied', { count: tokens }) : t('copyFailed'),
          { class: 'button-main' },
        )}
        {out(t('preview'), (assembled) => {
          preview.value = assembled
          return ''
        })}
        {out(t('download'), ({ text, tokens }) => {
          download(`context.${endings[format]}`, text)
          return t('tokens', { count: tokens })
        })}
      </div>
      <p class="hint" role="status">
        {message.value}
      </p>
      <details class="basket-more">
        <summary>{t('moreWays')}</summary>
        <div class="basket-outs">
          {out(
            t('manifest'),
            ({ manifest, tokens }) => {
              download('context.manifest.json', `${JSON.stringify(manifest, undefined, 2)}\n`)
              return t('tokens', { count: tokens })
            },
            { title: t('manifestHint') },
          )}
          <Button name={t('share')} onClick={share} />
        </div>
      </details>
      {preview.value === undefined ? null : (
        <PromptPreview
          {...preview.value}
          onClose={() => {
            preview.value = undefined
          }}
        />
      )}
    </div>
  )
}

/** Maximum number of characters that are drawn. */
const longest = 200_000

/** The beginning of the prompt that is copied or downloaded, at most {@link longest} characters. */
function PromptPreview({ text, tokens, onClose }: AssembledContext & { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="prompt-preview" aria-labelledby="prompt-title" onClose={onClose}>
      <header>
        <h2 id="prompt-title">{t('prompt')}</h2>
        <span class="quiet">{t('tokens', { count: tokens })}</span>
        <Button name={t('closePreview')} onClick={() => dialog.current?.close()} />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable text must be reachable by keys */}
      <pre tabIndex={0} lang={langOf(text)}>
        {escapeInvisible(text.slice(0, longest))}
      </pre>
      {text.length > longest ? <p class="basket-note">{t('previewCut')}</p> : null}
    </dialog>
  )
}
