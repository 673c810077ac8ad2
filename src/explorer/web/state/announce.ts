import { signal } from '@preact/signals'
import { isResourceError } from '../../../core/errors.ts'
import { createWords } from '../words/texts.ts'

export const announcement = signal('')

/** Minimum time between two announcements, in milliseconds: if several arrive together, a screen reader reads only the last. */
const minIntervalMs = 1000

let last = Number.NEGATIVE_INFINITY
let timer: ReturnType<typeof setTimeout> | undefined

/**
 * Announces a sentence to users who cannot see a change. A sentence less than {@link minIntervalMs} after the last announcement waits; of
 * several waiting ones, the last is announced.
 */
export function announce(sentence: string): void {
  clearTimeout(timer)
  timer = setTimeout(
    () => {
      last = performance.now()
      // A screen reader repeats the same sentence only if its text differs.
      announcement.value = announcement.value === sentence ? `${sentence}\u00a0` : sentence
    },
    Math.max(0, last + minIntervalMs - performance.now()),
  )
}

export async function copyToClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

export async function copyAndAnnounce(text: string): Promise<void> {
  announce(t((await copyToClipboard(text)) ? 'copied' : 'notCopied'))
}

/** Copies by a selection, which works without a secure context, unlike the clipboard API. */
function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.setAttribute('readonly', '')
  field.className = 'copy-field'
  const before = document.activeElement
  document.body.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (before instanceof HTMLElement) before.focus()
  return isCopied
}

const t = createWords({
  'not-found': [
    'This resource does not exist, or you are not allowed to see it.',
    'このリソースは存在しないか、閲覧する権限がありません。',
  ],
  unavailable: ['The source does not answer now.', '応答がありません。'],
  internal: ['The server reported an internal error.', 'サーバーで内部エラーが発生しました。'],
  copied: ['Copied.', 'コピーしました。'],
  notCopied: [
    'The browser does not let the page copy. Allow this page to use the clipboard.',
    'ブラウザーがコピーを許可していません。このページにクリップボードの使用を許可してください。',
  ],
  unknown: [
    'An unknown error occurred. Reload the page.',
    '不明なエラーが発生しました。ページを再読み込みしてください。',
  ],
})

/** Returns the reason of a failure in a sentence for the user: for invalid requests and too large contents, the message of the server. */
export function errorSentence(error: unknown): string {
  if (!isResourceError(error)) return error instanceof Error && error.message !== '' ? error.message : t('unknown')
  if (error.kind === 'invalid' || error.kind === 'too-large') return error.message
  return t(error.kind)
}
