import { isResourceError } from '../../../core/errors.ts'
import { createWords } from '../words/language.ts'

const t = createWords(
  {
    'not-found': 'There is nothing here, or it may not be seen.',
    unavailable: 'The source does not answer just now.',
    internal: 'The server has failed at this.',
    unknown: 'Something went wrong.',
  },
  {
    'not-found': 'ここには何もないか、見る権限がありません。',
    unavailable: 'いまは応答がありません。',
    internal: 'サーバーでエラーが起きました。',
    unknown: '問題が起きました。',
  },
)

/** The reason of a failure, in a sentence for the reader. For invalid requests the message of the server is the most precise. */
export function reasonOf(error: unknown): string {
  if (!isResourceError(error)) return error instanceof Error && error.message !== '' ? error.message : t('unknown')
  if (error.kind === 'invalid' || error.kind === 'too-large') return error.message
  return t(error.kind)
}
