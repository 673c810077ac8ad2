import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { ResourceContent } from '../../../core/view.ts'
import { go, place } from '../state/place.ts'
import { shown } from '../state/shown.ts'
import { Choice } from './choice.tsx'
import { nameOf } from './facts.ts'
import { copyText } from './head.tsx'
import type { Reader, Reading } from './load.ts'
import { mediaTypeOf, type Shape, shapeOf } from './model/kind.ts'
import { linesIn } from './model/reference.ts'
import { Rendered, rendersText } from './rendered.tsx'
import { TextView } from './text.tsx'
import { t } from './words.ts'

/** Whether long lines are broken, in all texts. */
const wraps = signal(true)

interface Props {
  readonly reader: Reader
  readonly reading: Extract<Reading, { state: 'ready' }>
}

/** The contents of a read: one, or one of several that the reader chooses. */
export function Contents({ reader, reading }: Props) {
  const [chosen, setChosen] = useState(0)
  const { contents } = reading
  const content = contents[Math.min(chosen, contents.length - 1)]
  if (content === undefined) return <p class="preview-note">{t('empty')}</p>
  const parts =
    contents.length === 1 ? null : (
      <label>
        {t('parts')}{' '}
        <select class="field" value={chosen} onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}>
          {contents.map((one, index) => (
            <option key={index} value={index}>
              {index + 1}/{contents.length} {shown(one.name ?? nameOf(one.uri))}
            </option>
          ))}
        </select>
      </label>
    )
  return <One key={chosen} reader={reader} reading={reading} content={content} parts={parts} />
}

interface OneProps extends Props {
  readonly content: ResourceContent
  readonly parts: ComponentChildren
}

function One({ reader, reading, content, parts }: OneProps) {
  const { text, bytes } = useMemo(() => bodyOf(content), [content])
  const shape = shapeOf({ uri: content.uri, mimeType: content.mimeType, text, bytes })
  const found = linesIn(reader.uri)
  const isSource = place.value.source === '1' || found !== undefined
  const isText = text !== undefined && shape.kind !== 'empty'
  // The beginning of a JSON document is none.
  const isCut = shape.kind === 'json' && reading.part?.next !== undefined
  const hasBoth = found === undefined && rendersText(shape) && !isCut
  const showsText = isText && (isSource || !hasBoth)
  return (
    <>
      {isText || parts !== null ? (
        <div class="preview-bar" role="toolbar" aria-label={t('view')}>
          {parts}
          {hasBoth ? <SourceSwitch isSource={isSource} /> : null}
          <span class="spring" />
          {showsText ? <WrapSwitch /> : null}
          {isText ? (
            <button type="button" class="button" onClick={() => void copyText(text)}>
              {t('copyText')}
            </button>
          ) : null}
        </div>
      ) : null}
      <div class={`preview-content ${reader.standing.value.isGone === true ? 'grey' : ''}`}>
        {showsText ? (
          <Source
            text={text}
            shape={shape}
            reading={reading}
            marked={found}
            changedAt={reader.standing.value.changedAt}
          />
        ) : (
          <Rendered shape={shape} content={content} text={text} bytes={bytes} uri={reader.uri} part={reading.part} />
        )}
      </div>
    </>
  )
}

interface SourceProps {
  readonly text: string
  readonly shape: Shape
  readonly reading: Props['reading']
  readonly marked: ReturnType<typeof linesIn>
  readonly changedAt: number | undefined
}

function Source({ text, shape, reading: { part }, marked, changedAt }: SourceProps) {
  // Of several parts that were read one after the other, the first begins the text.
  const first = marked !== undefined && part?.unit === 'lines' ? part.first : 1
  return (
    <TextView
      text={text}
      language={shape.language}
      first={first}
      marked={marked}
      wrap={wraps.value}
      changedAt={changedAt}
    />
  )
}

function SourceSwitch({ isSource }: { readonly isSource: boolean }) {
  return (
    <Choice
      label={t('view')}
      options={[
        ['', t('rendered')],
        ['1', t('source')],
      ]}
      value={isSource ? '1' : ''}
      onChoose={(source) => go({ source })}
    />
  )
}

function WrapSwitch() {
  const toggle = () => {
    wraps.value = !wraps.value
  }
  return (
    <button type="button" class="button" aria-pressed={wraps.value} onClick={toggle}>
      {t('wrap')}
    </button>
  )
}

/** Text or bytes. What is declared as text and came as bytes is text where it is UTF-8. */
function bodyOf(content: ResourceContent): { readonly text?: string; readonly bytes?: Uint8Array } {
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
