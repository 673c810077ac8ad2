import { iconOf, Shape } from '../shell/icons.tsx'
import { isPicked } from '../state/basket.ts'
import { changed } from '../state/live.ts'
import { place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { shown } from '../state/shown.ts'
import { readableUri } from './columns.ts'
import { Name } from './name.tsx'
import type { TreeRow } from './rows.ts'
import { t } from './words.ts'

interface TreeRowProps {
  readonly row: TreeRow
  readonly id: string
  readonly isActive: boolean
  /** It is drawn only because the reader stands on it. */
  readonly isAway: boolean
  readonly words: readonly string[]
  onPress(event: MouseEvent): void
}

/** What a level is set in by, in pixels. Behind the twelfth, levels are told apart by their number alone. */
const indent = (level: number) => `${6 + 14 * (Math.min(level, 12) - 1)}px`

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
  const picked = isPicked(resource.uri)
  const isShown = place.value.uri !== undefined && place.value.uri === resource.uri
  return (
    <div
      {...common}
      role="treeitem"
      class={`${common.class}${isShown ? ' row-shown' : ''}${picked ? ' row-picked' : ''}`}
      title={shown(uri)}
      aria-posinset={position}
      aria-setsize={siblings.count}
      aria-selected={picked}
      aria-current={isShown ? 'true' : undefined}
      {...(row.isDirectory ? { 'aria-expanded': row.isOpen } : {})}
    >
      <NodeParts {...props} picked={picked} />
    </div>
  )
}

function NodeParts({ row, words, picked }: TreeRowProps & { readonly picked: boolean }) {
  const { resource, isDirectory, isOpen, level } = row
  const label = resource.title ?? resource.name
  return (
    <>
      {isDirectory ? (
        <span class="row-twist" data-do="twist">
          <Shape name={isOpen ? 'down' : 'right'} />
        </span>
      ) : (
        <span class="row-twist" />
      )}
      <Shape name={level === 1 ? 'mount' : isDirectory ? 'folder' : iconOf(resource.mimeType)} />
      <Name text={label} words={words} />
      {level === 1 && resource.title === undefined ? (
        <span class="row-address">{shown(addressOf(resource.uri))}</span>
      ) : null}
      {changed.value.has(resource.uri) ? <ChangedDot /> : null}
      <span class={picked ? 'pick pick-on' : 'pick'} title={picked ? t('unpick') : t('pick')} data-do="pick">
        <Shape name={picked ? 'tick' : 'basket'} />
      </span>
    </>
  )
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
        <span class="row-why" title={reasonOf(row.error)}>
          <Shape name="warn" /> {reasonOf(row.error)} <u>{t('retry')}</u>
        </span>
      )
    case 'empty':
      return <span class="row-why">{t('empty')}</span>
    default:
      return <span class="row-why">{row.kind === 'more' ? t('more') : t('loading')}</span>
  }
}

/** Where a mount is, without its last segment: that is its name. */
function addressOf(uri: string): string {
  return readableUri(uri)
    .replace(/\/$/, '')
    .replace(/[^/]*$/, '')
}
