import { useComputed } from '@preact/signals'
import type { Resource } from '../../../core/view.ts'
import { announce } from '../state/announce.ts'
import { isPicked, toggle } from '../state/basket.ts'
import { copy } from '../state/copy.ts'
import { langOf } from '../state/lang.ts'
import { linkTo } from '../state/place.ts'
import { shown } from '../state/shown.ts'
import { formatSize } from '../words/language.ts'
import { isDetailed } from './details.tsx'
import { nameOf, saveContent } from './facts.ts'
import { bare, type Reader } from './load.ts'
import { mediaTypeOf } from './model/kind.ts'
import { t } from './words.ts'

/** The name of what is shown, and what can be done with it. */
export function Head({ reader }: { readonly reader: Reader }) {
  const { uri, reading, resource } = reader
  const own = resource.value
  const name = own?.title ?? nameOf(uri)
  const isReady = useComputed(() => reading.value.state === 'ready').value
  const isFolder = reading.value.state === 'directory'
  const picked: Resource = own ?? { uri: bare(uri), name: nameOf(uri) }
  const type = typeOf(reader)
  return (
    <header class="preview-head">
      <div class="preview-name">
        <h2 lang={langOf(name)}>
          <bdi>{shown(name)}</bdi>
        </h2>
        <p class="preview-uri" title={shown(uri)}>
          <bdi>{shown(uri)}</bdi>
        </p>
      </div>
      {type === undefined ? null : (
        <span class="chip" title={shown(type)}>
          {shown(mediaTypeOf(type) ?? type)}
        </span>
      )}
      {own?.size === undefined ? null : <span class="chip plain">{formatSize(own.size)}</span>}
      <div class="preview-actions" role="toolbar" aria-label={t('view')}>
        <button type="button" class="button" aria-pressed={isDetailed.value} onClick={toggleDetails}>
          {t('details')}
        </button>
        <button type="button" class="button" onClick={() => void copyText(uri)}>
          {t('copyUri')}
        </button>
        {isFolder ? null : (
          <button type="button" class="button" aria-pressed={isPicked(picked.uri)} onClick={() => toggle(picked)}>
            {isPicked(picked.uri) ? t('basketRemove') : t('basketAdd')}
          </button>
        )}
        {isReady ? (
          <button type="button" class="button" onClick={() => void saveContent(reader)}>
            {t('download')}
          </button>
        ) : null}
        <a class="button" href={linkTo({ view: 'tree', uri: bare(uri), source: undefined })}>
          {t('showInTree')}
        </a>
      </div>
    </header>
  )
}

function toggleDetails(): void {
  isDetailed.value = !isDetailed.value
}

/** The type as the content says it, else as the list does. */
function typeOf({ reading, resource }: Reader): string | undefined {
  const { value } = reading
  const content = value.state === 'ready' ? value.contents[0] : undefined
  return content?.mimeType ?? resource.value?.mimeType
}

export async function copyText(text: string): Promise<void> {
  announce(t((await copy(text)) ? 'copied' : 'notCopied'))
}
