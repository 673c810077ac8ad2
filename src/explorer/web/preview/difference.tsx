import { Button } from '../shell/fields.tsx'
import { escapeInvisible, language } from '../words/texts.ts'
import { formatAgo } from './details.tsx'
import type { EarlierState } from './earlier.ts'
import { t } from './words.ts'

export function EarlierNote({ state }: { readonly state: EarlierState }) {
  const { value } = state
  if (value === undefined) return null
  const ago = formatAgo(language.value, value.at, Date.now())
  if (value.diff === undefined)
    return <p class="preview-banner">{t(value.isKept ? 'changedShort' : 'changedUnknown', { ago })}</p>
  return (
    <p class="preview-banner">
      {t('changedSince', { ago })}{' '}
      <Button
        name={value.isShown ? t('showContent') : t('showChanges')}
        class="small"
        onClick={() => {
          state.value = { ...value, isShown: !value.isShown }
        }}
      />
    </p>
  )
}

export function Difference({ diff }: { readonly diff: string }) {
  const lines = diff.replace(/\n$/, '').split('\n')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys
    <pre class="changes" tabIndex={0} role="region" aria-label={t('showChanges')}>
      {lines.map((line, index) => (
        <span key={index} class={kinds[line.charAt(0)]}>
          {`${escapeInvisible(line)}\n`}
        </span>
      ))}
    </pre>
  )
}

const kinds: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'place' }
