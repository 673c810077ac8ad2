import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import type { ResourceContent } from '../../../core/view.ts'
import { Button } from '../shell/fields.tsx'
import { lazyComponent } from '../shell/panes.tsx'
import { copyAndAnnounce } from '../state/announce.ts'
import { linkTo, navigate, route } from '../state/route.ts'
import { escapeInvisible } from '../words/texts.ts'
import { Choice, Toggle } from './controls.tsx'
import { Directory } from './directory.tsx'
import { canFindInWhole, countLines, isFindBarOpen, useFindKey } from './find.tsx'
import { type PreviewReader, type PreviewState, uriWithoutPart } from './load.ts'
import { countTags, maxNodes } from './model/bounds.ts'
import { documentFormOf, isPdf, mediaTypeOf, type PreviewShape, shapeOf } from './model/kind.ts'
import { type PreviewPart, splitLines } from './model/lines.ts'
import { lineRangeIn, parameterOf, withPart } from './model/reference.ts'
import { BinaryPreview } from './notes.tsx'
import { TextView } from './text.tsx'
import { t } from './words.ts'

/** Whether long lines are wrapped, in all texts. */
const wraps = signal(true)

interface Props {
  readonly reader: PreviewReader
  readonly reading: Extract<PreviewState, { state: 'ready' }>
}

/** One content of a read. If there are several contents, the user chooses one. */
export function Contents({ reader, reading }: Props) {
  const [choice, setChosen] = useState(0)
  const { contents } = reading
  const content = contents[Math.min(choice, contents.length - 1)]
  if (content === undefined) return <p class="preview-note">{t('empty')}</p>
  const parts =
    contents.length === 1 ? null : (
      <label>
        {t('parts')}{' '}
        <select class="field" value={choice} onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}>
          {contents.map((one, index) => (
            <option key={index} value={index}>
              {index + 1}/{contents.length} {escapeInvisible(one.name ?? lastSegment(one.uri))}
            </option>
          ))}
        </select>
      </label>
    )
  return <One key={choice} reader={reader} reading={reading} content={content} parts={parts} />
}

interface OneProps extends Props {
  readonly content: ResourceContent
  readonly parts: ComponentChildren
}

function One({ reader, reading, content, parts }: OneProps) {
  const { text, bytes } = useMemo(() => decodeContent(content), [content])
  const shape = shapeOf({ uri: content.uri, mimeType: content.mimeType, text, bytes })
  const range = lineRangeIn(reader.uri)
  const tailFirst = useTailFirst(reader.uri, text)
  const isDocument = documentFormOf(reader.uri, reader.resource.value?.mimeType) !== undefined
  // If the server has no text of a document, the original is the only form.
  const hasForms = isDocument && reader.noText.value === undefined && range === undefined && !reader.uri.includes('?')
  const isSource = (route.value.source === '1' && !isDocument) || range !== undefined
  const isText = text !== undefined && shape.kind !== 'empty'
  const isTailed = parameterOf(reader.uri, 'tail') !== undefined
  // Any other part begins at the first line of the text, because further parts are appended to it.
  const isPart = range !== undefined || isTailed
  // The beginning of a JSON document is not valid JSON.
  const isCut = shape.kind === 'json' && reading.part?.next !== undefined
  const isLaidOut = range === undefined && laidOut.has(shape.kind) && !isCut
  // Find cannot search a page in its frame, or a drawing, so it searches their sources.
  const isFoundInSource = isFindBarOpen.value && (shape.kind === 'page' || shape.kind === 'drawing')
  const showsText = isText && (isSource || !isLaidOut || isFoundInSource)
  useFindKey(isText)
  return (
    <>
      {isText || hasForms || parts !== null ? (
        <div class="preview-bar" role="toolbar" aria-label={t('view')}>
          {parts}
          {isLaidOut && !isDocument ? <SourceChoice forms={[t('rendered'), t('source')]} isSource={isSource} /> : null}
          {hasForms ? <DocumentChoice reader={reader} /> : null}
          <span class="spring" />
          {showsText && tailFirst === 'counting' ? <span class="quiet">{t('countingLines')}</span> : null}
          {showsText && isTailed ? <Toggle name={t('follow')} state={follows} /> : null}
          {showsText && hasEnd(reader, reading) ? (
            <a class="button" href={linkTo({ uri: withPart(reader.uri, `tail=${tailLines}`) })}>
              {t('toEnd')}
            </a>
          ) : null}
          {isText ? <Toggle name={t('find')} state={isFindBarOpen} /> : null}
          {showsText ? <Toggle name={t('wrap')} state={wraps} /> : null}
          {isText ? <Button name={t('copyText')} onClick={() => void copyAndAnnounce(text)} /> : null}
        </div>
      ) : null}
      <div class={`preview-content column ${reader.standing.value.isGone === true ? 'grey' : ''}`}>
        {showsText ? (
          <TextView
            text={text}
            uri={reader.uri}
            part={reading.part}
            language={shape.language}
            first={typeof tailFirst === 'number' ? tailFirst : isPart ? firstLineNumber(reading.part) : 1}
            isUnnumbered={isTailed && canFindInWhole() && typeof tailFirst === 'string'}
            marked={range}
            wrap={wraps.value}
            isEnd={isTailed && follows.value}
            changedAt={reader.standing.value.changedAt}
          />
        ) : (
          <Rendered shape={shape} content={content} text={text} bytes={bytes} uri={reader.uri} part={reading.part} />
        )}
      </div>
    </>
  )
}

/**
 * Returns the number of the first shown line of the end of a text (`tail`). The server counts the lines of the whole text. `counting`: the
 * count is not known yet. `unknown`: the server cannot count the lines, or the URI has no `tail`.
 */
function useTailFirst(uri: string, text: string | undefined): number | 'counting' | 'unknown' {
  const [counts, setCounted] = useState<{ readonly text: string; readonly first: number | 'unknown' }>()
  const isTail = parameterOf(uri, 'tail') !== undefined && text !== undefined && canFindInWhole()
  useEffect(() => {
    if (!isTail) return
    const controller = new AbortController()
    const shownLines = splitLines(text.replace(/\n$/, '')).length
    // A growing text changes often, so the count waits until the text rests.
    const timer = setTimeout(() => {
      countLines(uriWithoutPart(uri), controller.signal).then(
        (count) => setCounted({ text, first: count === undefined ? 'unknown' : Math.max(1, count - shownLines + 1) }),
        () => controller.signal.aborted || setCounted({ text, first: 'unknown' }),
      )
    }, 300)
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [isTail, uri, text])
  if (!isTail) return 'unknown'
  return counts?.text === text ? counts.first : 'counting'
}

/** Returns the number of the first line of a part in lines; 1 for a part in bytes, and for the whole content. */
function firstLineNumber(part: PreviewPart | undefined): number {
  return part?.unit === 'lines' ? part.first : 1
}

/** Number of lines that "Show the end" loads. */
const tailLines = 500

/** Whether the preview follows the end of a growing text. */
const follows = signal(true)

/** Whether to offer the end of a text: it is long, or a log. */
function hasEnd({ uri }: PreviewReader, { part }: Props['reading']): boolean {
  if (/[?]/.test(uri)) return false
  return part?.next !== undefined || /\.(?:log|out|err)$/i.test(uri)
}

function SourceChoice({ forms: [form, source], isSource }: SourceChoiceProps) {
  const options = [['', form] as const, ['1', source] as const]
  return (
    <Choice
      label={t('view')}
      options={options}
      value={isSource ? '1' : ''}
      onChoose={(choice) => navigate({ source: choice })}
    />
  )
}

interface SourceChoiceProps {
  readonly forms: readonly [form: string, source: string]
  readonly isSource: boolean
}

function DocumentChoice({ reader: { uri, resource } }: { readonly reader: PreviewReader }) {
  const original = t(isPdf(uri, resource.value?.mimeType) ? 'asPages' : 'asBytes')
  return <SourceChoice forms={[t('asTextView'), original]} isSource={route.value.source === '1'} />
}

function decodeContent(content: ResourceContent): { readonly text?: string; readonly bytes?: Uint8Array } {
  if ('text' in content) return { text: content.text }
  if (!('bytes' in content)) return {}
  const type = mediaTypeOf(content.mimeType) ?? ''
  if (!/^text\/|[/+](json|xml)$/.test(type)) return { bytes: content.bytes }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(content.bytes) }
  } catch {
    return { bytes: content.bytes }
  }
}

const Markdown = lazyComponent(async () => (await import('./markdown.tsx')).Markdown)
const Json = lazyComponent(async () => (await import('./json.tsx')).Json)
const JsonLines = lazyComponent(async () => (await import('./json.tsx')).JsonLines)
const Csv = lazyComponent(async () => (await import('./tables.tsx')).Csv)
const Page = lazyComponent(async () => (await import('./page.tsx')).HtmlPreview)
const Picture = lazyComponent(async () => (await import('./media.tsx')).Picture)
const Media = lazyComponent(async () => (await import('./media.tsx')).Media)
const LargeMedia = lazyComponent(async () => (await import('./media.tsx')).LargeMedia)
const Log = lazyComponent(async () => (await import('./records.tsx')).GitLog)
const Pdf = lazyComponent(async () => (await import('./pdf.tsx')).Pdf)

/** The kinds of texts that have another view than their source. */
const laidOut = new Set<PreviewShape['kind']>(['markdown', 'json', 'lines', 'table', 'page', 'drawing', 'log'])

interface RenderedProps {
  readonly uri: string
  readonly shape: PreviewShape
  readonly content: ResourceContent
  readonly text: string | undefined
  readonly bytes: Uint8Array | undefined
  readonly part: PreviewPart | undefined
}

function Rendered({ uri, shape, content, text = '', bytes, part }: RenderedProps) {
  const { kind, mediaType } = shape
  if (kind === 'empty') return <p class="preview-note">{t('empty')}</p>
  if (kind === 'directory') return <Directory uri={content.uri} />
  if (kind === 'markdown') return <Markdown text={text} uri={uri} />
  if (kind === 'json') return <Json text={text} uri={uri} format={shape.format} />
  if (kind === 'lines') return <JsonLines text={text} />
  if (kind === 'table') return <Csv text={text} mimeType={content.mimeType} />
  if (kind === 'log') return <Log text={text} uri={uri} />
  if (kind === 'page') return <Page text={text} uri={uri} />
  // The browser lays out an SVG drawing as a whole, which blocks the page.
  if (kind === 'drawing' && countTags(text) > maxNodes) return <p class="preview-banner">{t('tooComplex')}</p>
  if (kind === 'drawing') return <Picture content={text || (bytes ?? '')} mediaType="image/svg+xml" uri={uri} />
  if (bytes === undefined) return <p class="preview-note">{t('empty')}</p>
  const isBeginning = part?.next !== undefined
  if (isBeginning && (kind === 'audio' || kind === 'video'))
    return <LargeMedia kind={kind} uri={uri} bytes={bytes} size={part?.size} mediaType={mediaType ?? ''} />
  if (isBeginning) return <BinaryPreview bytes={bytes} size={part?.size} />
  if (kind === 'image') return <Picture content={bytes} mediaType={mediaType ?? ''} uri={uri} />
  if (kind === 'audio' || kind === 'video') return <Media kind={kind} bytes={bytes} mediaType={mediaType ?? ''} />
  if (kind === 'pdf') return <Pdf bytes={bytes} uri={uri} meta={content.meta} />
  return <BinaryPreview bytes={bytes} size={undefined} />
}
