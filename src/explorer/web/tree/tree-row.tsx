import { isFolder } from '../../../browse/tree.ts'
import { foldText } from '../../../core/kit/matching.ts'
import { joinRanges } from '../../../core/kit/sorted.ts'
import { splitAtMarks } from '../../../core/search-answer.ts'
import { isPicked, shareInBasket } from '../basket/picked.ts'
import { distinctTitle, readableUri } from '../listing/columns.ts'
import type { TreeRow } from '../listing/rows.ts'
import { FileIcon } from '../preview/file-icon.tsx'
import { MarkedText, ServerText } from '../shell/fields.tsx'
import { Icon } from '../shell/icons.tsx'
import { errorSentence } from '../state/announce.ts'
import { changedUris } from '../state/live.ts'
import { iconOfMount, isSearchMount, subtitleOfMount, titleOfMount } from '../state/offered.ts'
import { route } from '../state/route.ts'
import { escapeInvisible, formatNumber, langOf } from '../words/texts.ts'
import { t } from './words.ts'

export interface TreeRowProps {
  readonly row: TreeRow
  readonly id: string
  readonly isActive: boolean
  /** Whether the row is outside of the visible rows, and drawn only because it is active. */
  readonly isAway: boolean
  readonly words: readonly string[]
  onPress(event: MouseEvent): void
}

/** CSS indentation of a level. Levels beyond the twelfth have the same indentation as the twelfth. */
const indent = (level: number) => `${8 + 16 * (Math.min(level, 12) - 1)}px`

export function TreeRowView(props: TreeRowProps) {
  const { row, id, isActive, isAway, onPress } = props
  const common = {
    id,
    'aria-level': row.level,
    class: `row${isActive ? ' row-active' : ''}${isAway ? ' row-away' : ''}`,
    style: { paddingInlineStart: indent(row.level) },
    onClick: onPress,
  } as const
  if (row.kind !== 'node')
    return (
      <div {...common} role="treeitem" class={`${common.class} row-note row-${row.kind}`} aria-selected={false}>
        <span class="row-twist" />
        <Note row={row} />
      </div>
    )
  const { resource, siblings, position } = row
  const uri = readableUri(resource.uri)
  const mark = isFolder(resource) ? shareInBasket(resource.uri) : undefined
  const picked = mark?.isWhole ?? isPicked(resource.uri)
  const isShown = route.value.uri !== undefined && route.value.uri === resource.uri
  return (
    <div
      {...common}
      role="treeitem"
      class={`${common.class}${isShown ? ' row-shown' : ''}${picked ? ' row-picked' : ''}`}
      title={escapeInvisible(uri)}
      aria-posinset={position}
      aria-setsize={siblings.count}
      aria-selected={picked}
      aria-current={isShown ? 'true' : undefined}
      {...(row.isDirectory ? { 'aria-expanded': row.isOpen } : {})}
    >
      <NodeParts {...props} picked={picked} count={mark?.count ?? 0} />
    </div>
  )
}

interface NodePartsProps extends TreeRowProps {
  readonly picked: boolean
  readonly count: number
}

function NodeParts({ row, words, picked, count }: NodePartsProps) {
  const { resource, isDirectory, isOpen, level } = row
  const isMount = level === 1
  const label = isMount ? titleOfMount(resource) : resource.name
  const aside = isMount ? subtitleOfMount(resource) : distinctTitle(resource)
  return (
    <>
      {isDirectory ? (
        <span class="row-twist" data-do="twist">
          <Icon name={isOpen ? 'down' : 'right'} />
        </span>
      ) : (
        <span class="row-twist" />
      )}
      <RowIcon {...row} />
      <ResourceName text={label} words={words} />
      <ServerText class="row-aside" text={aside} />
      {changedUris.value.has(resource.uri) ? <ChangedDot /> : null}
      {isMount && isSearchMount(resource.uri) ? null : (
        <span
          class={picked || count > 0 ? 'pick pick-on' : 'pick'}
          title={pickTitle(isFolder(resource), picked, count)}
          data-do="pick"
        >
          {count > 0 ? <span class="pick-count">{formatNumber(count)}</span> : null}
          <Icon name={picked ? 'tick' : count > 0 ? 'dash' : 'basket'} />
          {count > 0 ? <span class="unseen">{t('pickedBelow', { count })}</span> : null}
        </span>
      )}
    </>
  )
}

/** A mount of a single resource looks like that resource. */
function RowIcon({ resource: { uri, mimeType }, isDirectory, level }: NodePartsProps['row']) {
  if (level === 1 && (isDirectory || isSearchMount(uri))) return <Icon name={iconOfMount(uri)} />
  return isDirectory ? <Icon name="folder" /> : <FileIcon uri={uri} mimeType={mimeType} />
}

function pickTitle(isExpandable: boolean, picked: boolean, count: number): string {
  if (!isExpandable) return t(picked ? 'unpick' : 'pick')
  if (picked) return t('unpickFolder')
  return count > 0 ? t('pickedBelow', { count }) : t('pickFolder')
}

export function ChangedDot() {
  return (
    <span class="dot" title={t('changed')}>
      <span class="unseen">{t('changed')}</span>
    </span>
  )
}

function Note({ row }: { readonly row: TreeRow }) {
  switch (row.kind) {
    case 'failed':
      return (
        <span class="row-why" title={errorSentence(row.error)}>
          <Icon name="warn" /> {errorSentence(row.error)} <u>{t('retry')}</u>
        </span>
      )
    case 'empty':
      return <span class="row-why">{t('empty')}</span>
    default:
      return <span class="row-why">{row.kind === 'more' ? t('more') : t('loading')}</span>
  }
}

/** Number of characters at the end of a name longer than `long` that are always visible: long names often share their beginning. */
const tail = 10
const long = 24

interface NameProps {
  readonly text: string
  /** The words of the filter, folded, for marking. */
  readonly words: readonly string[]
  readonly class?: string
}

/** A name from a server: invisible characters are shown, its direction is isolated, and its end stays visible if space is short. */
export function ResourceName({ text, words, class: name = '' }: NameProps) {
  const end = text.length > long ? tailStart(text) : text.length
  const pieces = splitAtMarks({ text, marks: findWordRanges(text, words) })
  let at = 0
  const placed = pieces.map((piece) => {
    const start = at
    at += piece.text.length
    return { ...piece, start }
  })
  const part = (from: number, to: number) =>
    placed.flatMap(({ text, marked, start }) => {
      const visible = onOneLine(escapeInvisible(text.slice(Math.max(0, from - start), Math.max(0, to - start))))
      if (visible === '') return []
      return [marked ? <mark key={start}>{visible}</mark> : visible]
    })
  const lang = langOf(text)
  return (
    <bdi class={`name ${name}`} {...(lang === undefined ? {} : { lang })}>
      <span class="name-head">{part(0, end)}</span>
      {end < text.length ? <span class="name-tail">{part(end, text.length)}</span> : null}
    </bdi>
  )
}

const onOneLine = (text: string) => text.replace(/[\t\n\r]+/g, ' ')

function tailStart(text: string): number {
  const end = text.length - tail
  const code = text.charCodeAt(end)
  return code >= 0xdc00 && code <= 0xdfff ? end + 1 : end
}

/** A path with its words marked. If there is not enough room, its end is visible. */
export function PathText({ text, words }: NameProps) {
  return (
    <span class="path">
      <bdi dir="ltr">
        <MarkedText pieces={splitAtMarks({ text, marks: findWordRanges(text, words) })} />
      </bdi>
    </span>
  )
}

/** A letter with its combining marks, also those of half-width kana: together they fold to one letter. */
const letters = /.[\p{M}\uff9e\uff9f]*/gsu

/**
 * Returns the ranges of the words of a filter in a text: half-open, in UTF-16 units, in order, not overlapping. It matches as the filter
 * does, regardless of width and composition of letters.
 *
 * @param words The words, folded by `foldText`.
 */
export function findWordRanges(
  text: string,
  words: readonly string[],
): readonly (readonly [start: number, end: number])[] {
  if (words.length === 0) return []
  const starts: number[] = []
  const ends: number[] = []
  let folded = ''
  for (const { 0: letter, index } of text.matchAll(letters)) {
    const part = foldText(letter)
    folded += part
    for (let unit = 0; unit < part.length; unit++) {
      starts.push(index)
      ends.push(index + letter.length)
    }
  }
  const ranges: (readonly [number, number])[] = []
  for (const word of words)
    for (let at = folded.indexOf(word); at !== -1; at = folded.indexOf(word, at + word.length))
      ranges.push([starts[at] ?? 0, ends[at + word.length - 1] ?? text.length])
  return joinRanges(ranges)
}
