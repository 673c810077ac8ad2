import { useEffect, useState } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import { isObject } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import { Button } from '../shell/fields.tsx'
import { copyAndAnnounce, errorSentence } from '../state/announce.ts'
import { offeredSearches } from '../state/offered.ts'
import { linkTo, permalinkUrl, route } from '../state/route.ts'
import { escapeInvisible, formatSize, language } from '../words/texts.ts'
import { VirtualRows } from './controls.tsx'
import { formatAgo } from './details.tsx'
import { EarlierNote } from './difference.tsx'
import { type PreviewReader, uriWithoutPart } from './load.ts'
import { documentFormOf } from './model/kind.ts'
import type { PreviewPart } from './model/lines.ts'
import { lineRangeIn, parameterOf, parentOf, withPart } from './model/reference.ts'
import { t } from './words.ts'

/** Notes about the shown content: it has changed, is gone, or is incomplete. */
export function Notes({ reader }: { readonly reader: PreviewReader }) {
  const { uri, reading, standing, more } = reader
  const { changedAt, isGone, isFailing } = standing.value
  const { value } = reading
  const part = value.state === 'ready' ? value.part : undefined
  const range = lineRangeIn(uri)
  const isTail = value.state === 'ready' && parameterOf(uri, 'tail') !== undefined
  const meta = value.state === 'ready' ? value.contents[0]?.meta : undefined
  const isCut = part === undefined && meta?.[metaKeys.truncated] === true
  return (
    <>
      {isReading(meta) && range === undefined ? <p class="preview-banner">{t('readingOf')}</p> : null}
      {reader.noText.value === undefined ? null : (
        <p class="preview-banner warn">{t('noReading', { reason: escapeInvisible(reader.noText.value) })}</p>
      )}
      {isGone === true ? <p class="preview-banner bad">{t('gone')}</p> : null}
      {isFailing === true ? <p class="preview-banner warn">{t('failing')}</p> : null}
      {changedAt === undefined ? <EarlierNote state={reader.earlier} /> : <ChangedNote at={changedAt} />}
      {value.state !== 'ready' || range === undefined ? null : (
        <p class="preview-banner">
          {range.last === undefined
            ? t('shownFrom', { first: range.first })
            : t('shownLines', { first: range.first, last: range.last })}{' '}
          <a href={linkTo({ uri: withPart(uri, undefined) })}>{t('openWhole')}</a>
        </p>
      )}
      {isTail ? (
        <p class="preview-banner">
          {t('tailShown')} <a href={linkTo({ uri: withPart(uri, undefined) })}>{t('openWhole')}</a>
        </p>
      ) : null}
      {value.state === 'ready' && route.value.line !== undefined ? (
        <p class="preview-banner">
          {t('lineMarked', { line: route.value.line })}{' '}
          <Button name={t('copyLink')} class="small" onClick={() => void copyAndAnnounce(permalinkUrl(linkTo({})))} />
        </p>
      ) : null}
      {part === undefined || range !== undefined || isTail || isWhole(part) ? null : (
        <p class="preview-banner">
          {partText(part)}{' '}
          {part.next === undefined ? null : (
            <Button
              name={t(more.value === 'busy' ? 'showingMore' : more.value === 'failed' ? 'moreFailed' : 'showMore')}
              disabled={more.value === 'busy'}
              onClick={() => void reader.readMore()}
            />
          )}
        </p>
      )}
      {isCut ? <p class="preview-banner">{cutText(meta?.[metaKeys.size])}</p> : null}
    </>
  )
}

function isReading(meta: Readonly<Record<string, unknown>> | undefined): boolean {
  const readings = meta?.[metaKeys.reading]
  return isObject(readings) && typeof readings.of === 'string' && documentFormOf('', readings.of) !== undefined
}

function isWhole({ first, unit, next }: PreviewPart): boolean {
  return next === undefined && first <= (unit === 'lines' ? 1 : 0)
}

function partText({ unit, last, lines, size }: PreviewPart): string {
  if (unit === 'lines')
    return lines === undefined ? t('partLines', { first: 1, last }) : t('partLinesOf', { first: 1, last, lines })
  const sizeText = formatSize(last + 1)
  return size === undefined
    ? t('partBytes', { size: sizeText })
    : t('partBytesOf', { size: sizeText, whole: formatSize(size) })
}

function cutText(size: unknown): string {
  return typeof size === 'number' ? t('truncatedOf', { size: formatSize(size) }) : t('truncated')
}

function ChangedNote({ at }: { readonly at: number }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 5000)
    return () => clearInterval(timer)
  }, [at])
  const isNew = now - at < 3000
  const ago = formatAgo(language.value, at, now)
  return <p class="preview-banner good">{isNew ? t('changedNow') : t('changed', { ago })}</p>
}

interface FailureProps {
  readonly uri: string
  readonly error: unknown
  readonly retry: () => void
}

/** The reason why nothing can be shown, and the possible actions. */
export function Failure({ uri, error, retry }: FailureProps) {
  const kind = isResourceError(error) ? error.kind : undefined
  const parent = parentOf(uriWithoutPart(uri))
  const name = escapeInvisible(lastSegment(uriWithoutPart(uri)))
  const title =
    kind === 'not-found'
      ? t('notFoundTitle')
      : kind === 'unavailable'
        ? t('unavailableTitle')
        : kind === 'too-large'
          ? t('tooLargeTitle')
          : t('failedTitle')
  const help =
    kind === 'not-found' ? t('notFoundHelp') : kind === 'unavailable' ? t('unavailableHelp') : errorSentence(error)
  return (
    <div class="preview-failure" role="alert">
      <h3>{title}</h3>
      <p>{help}</p>
      <p class="preview-buttons">
        <Button name={t('retry')} onClick={retry} />
        {parent === undefined ? null : (
          <a class="button" href={linkTo({ uri: parent, source: undefined })}>
            {t('openFolder')}
          </a>
        )}
        {kind === 'not-found' && offeredSearches.value.length > 0 ? (
          <a class="button" href={linkTo({ view: 'search', q: name, uri: undefined, source: undefined })}>
            {t('searchFor', { name })}
          </a>
        ) : null}
      </p>
    </div>
  )
}

/** A hex dump of bytes of an unknown type. `size` is the number of bytes of the whole content, if `bytes` is only its beginning. */
export function BinaryPreview({ bytes, size }: { readonly bytes: Uint8Array; readonly size: number | undefined }) {
  const rows = Math.ceil(bytes.length / bytesInRow)
  return (
    <div class="column">
      <p class="preview-note">{t('binary', { size: formatSize(size ?? bytes.length) })}</p>
      <VirtualRows
        class="hex"
        count={rows}
        tabIndex={0}
        role="region"
        aria-label={t('binary', { size: formatSize(size ?? bytes.length) })}
        row={(index) => {
          const { offset, bytes: digits, text } = hexRow(bytes, index)
          return (
            <div key={index} class="hex-row">
              <span class="quiet">{offset}</span>
              {'  '}
              {digits}
              {'  '}
              {text}
            </div>
          )
        }}
      />
    </div>
  )
}

const bytesInRow = 16

export function hexRow(bytes: Uint8Array, row: number) {
  const start = row * bytesInRow
  const part = bytes.subarray(start, start + bytesInRow)
  const pairs = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'))
  return {
    offset: start.toString(16).padStart(8, '0'),
    bytes: [pairs.slice(0, 8).join(' '), pairs.slice(8).join(' ')].join('  ').padEnd(48),
    text: String.fromCharCode(...part.map((byte) => (byte >= 0x20 && byte < 0x7f ? byte : 0x2e))),
  }
}
