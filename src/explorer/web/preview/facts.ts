import { lastSegment } from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import type { ResourceContent } from '../../../core/view.ts'
import { announce, reasonOf } from '../state/announce.ts'
import { linkIn } from '../state/content-link.ts'
import { download, downloadFrom } from '../state/download.ts'
import { connected } from '../state/session.ts'
import type { Reader } from './load.ts'
import { documentFormOf } from './model/kind.ts'
import { withPart } from './model/reference.ts'

/** Saves the shown content as a file; if only a part is shown, the whole. */
export async function saveContent({ uri, reading }: Reader): Promise<void> {
  const { value } = reading
  if (value.state !== 'ready') return
  try {
    // If the text of a document is shown, the document itself is saved.
    const isPart = value.part !== undefined || documentFormOf(uri, value.contents[0]?.mimeType) !== undefined
    const contents = isPart ? (await connected().view.read(withPart(uri, undefined))).contents : value.contents
    for (const content of contents) download(lastSegment(content.uri), bodyOf(content))
  } catch (error) {
    // A content that is too large for an answer has its own link.
    const link = isResourceError(error, 'too-large') ? linkIn(error.cause) : undefined
    if (link === undefined) announce(reasonOf(error))
    else downloadFrom(lastSegment(uri), link)
  }
}

function bodyOf(content: ResourceContent): string | Uint8Array {
  if ('text' in content) return content.text
  return 'bytes' in content ? content.bytes : ''
}

/** A relative time, such as "3 days ago", in the language of the page. */
export function formatAgo(language: string, time: number, now: number): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  const seconds = (time - now) / 1000
  const steps = [
    ['second', 60],
    ['minute', 60],
    ['hour', 24],
    ['day', 30.44],
    ['month', 12],
  ] as const
  let value = seconds
  for (const [unit, most] of steps) {
    if (Math.abs(value) < most) return format.format(Math.round(value), unit)
    value /= most
  }
  return format.format(Math.round(value), 'year')
}
