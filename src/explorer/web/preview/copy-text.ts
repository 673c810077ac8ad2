import { announce, copy } from '../state/announce.ts'
import { t } from './words.ts'

export async function copyText(text: string): Promise<void> {
  announce(t((await copy(text)) ? 'copied' : 'notCopied'))
}
