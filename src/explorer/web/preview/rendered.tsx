import type { ResourceContent } from '../../../core/view.ts'
import { Binary } from './binary.tsx'
import { Directory } from './directory.tsx'
import { lazily } from './lazily.tsx'
import { maxNodes, tagsIn } from './model/bounds.ts'
import type { Shape, shapeOf } from './model/kind.ts'
import type { Part } from './model/lines.ts'
import { t } from './words.ts'

const Markdown = lazily(async () => (await import('./markdown.tsx')).Markdown)
const Json = lazily(async () => (await import('./json.tsx')).Json)
const JsonLines = lazily(async () => (await import('./json-lines.tsx')).JsonLines)
const Csv = lazily(async () => (await import('./csv.tsx')).Csv)
const Page = lazily(async () => (await import('./page.tsx')).Page)
const Picture = lazily(async () => (await import('./picture.tsx')).Picture)
const Media = lazily(async () => (await import('./media.tsx')).Media)
const LargeMedia = lazily(async () => (await import('./media.tsx')).LargeMedia)
const Log = lazily(async () => (await import('./log.tsx')).Log)
const Pdf = lazily(async () => (await import('./pdf.tsx')).Pdf)

const texts = new Set<Shape['kind']>(['markdown', 'json', 'lines', 'table', 'page', 'drawing', 'log'])

/** Whether a text has another view than its source. */
export function rendersText({ kind }: Shape): boolean {
  return texts.has(kind)
}

interface Props {
  readonly uri: string
  readonly shape: ReturnType<typeof shapeOf>
  readonly content: ResourceContent
  readonly text: string | undefined
  readonly bytes: Uint8Array | undefined
  readonly part: Part | undefined
}

/** A content in the view that fits its type. */
export function Rendered({ uri, shape, content, text = '', bytes, part }: Props) {
  const { kind, mediaType } = shape
  if (kind === 'empty') return <p class="preview-note">{t('empty')}</p>
  if (kind === 'directory') return <Directory uri={content.uri} />
  if (kind === 'markdown') return <Markdown text={text} uri={uri} />
  if (kind === 'json') return <Json text={text} uri={uri} format={shape.format} />
  if (kind === 'lines') return <JsonLines text={text} />
  if (kind === 'table') return <Csv text={text} mimeType={content.mimeType} />
  if (kind === 'log') return <Log text={text} uri={uri} />
  if (kind === 'page') return <Page text={text} uri={uri} />
  // A drawing is laid out as a whole, which blocks the page.
  if (kind === 'drawing' && tagsIn(text) > maxNodes) return <p class="preview-banner">{t('tooComplex')}</p>
  if (kind === 'drawing') return <Picture content={text || (bytes ?? '')} mediaType="image/svg+xml" uri={uri} />
  if (bytes === undefined) return <p class="preview-note">{t('empty')}</p>
  const isBeginning = part?.next !== undefined
  if (isBeginning && (kind === 'audio' || kind === 'video'))
    return <LargeMedia kind={kind} uri={uri} bytes={bytes} size={part?.size} mediaType={mediaType ?? ''} />
  if (isBeginning) return <Binary bytes={bytes} size={part?.size} />
  if (kind === 'image') return <Picture content={bytes} mediaType={mediaType ?? ''} uri={uri} />
  if (kind === 'audio' || kind === 'video') return <Media kind={kind} bytes={bytes} mediaType={mediaType ?? ''} />
  if (kind === 'pdf') return <Pdf bytes={bytes} uri={uri} meta={content.meta} />
  return <Binary bytes={bytes} size={undefined} />
}
