import { useEffect, useRef } from 'preact/hooks'
import { langOf } from '../state/lang.ts'
import { shown } from '../state/shown.ts'
import type { Assembled } from './ask.ts'
import { t } from './words.ts'

/** The most characters that are drawn. All of it is copied or downloaded. */
const longest = 200_000

interface PromptPreviewProps {
  readonly assembled: Assembled
  readonly onClose: () => void
}

/** The prompt as it is copied or downloaded. */
export function PromptPreview({ assembled: { text, tokens }, onClose }: PromptPreviewProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="prompt-preview" aria-labelledby="prompt-title" onClose={onClose}>
      <header>
        <h2 id="prompt-title">{t('prompt')}</h2>
        <span class="quiet">{t('tokens', { count: tokens })}</span>
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          {t('closePreview')}
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keys */}
      <pre tabIndex={0} lang={langOf(text)}>
        {shown(text.slice(0, longest))}
      </pre>
      {text.length > longest ? <p class="basket-note">{t('previewCut')}</p> : null}
    </dialog>
  )
}
