import { isFolder } from '../../../browse/folders.ts'
import type { Resource } from '../../../core/view.ts'
import { type IconName, iconOf, Shape } from '../shell/icons.tsx'
import { isPicked, markOf } from '../state/basket.ts'
import { asideOfMount, iconOfMount, isSearchMount, titleOfMount } from '../state/kinds.ts'
import { changed } from '../state/live.ts'
import { place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { langOf, shown } from '../state/shown.ts'
import { formatNumber } from '../words/language.ts'
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

/** Indentation of a level. Levels beyond the twelfth differ only by their number. */
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
  const mark = isFolder(resource) ? markOf(resource.uri) : undefined
  const picked = mark?.isWhole ?? isPicked(resource.uri)
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
      <NodeParts {...props} picked={picked} count={mark?.count ?? 0} />
    </div>
  )
}

interface NodePartsProps extends TreeRowProps {
  readonly picked: boolean
  /** How many resources below it are picked. */
  readonly count: number
}

function NodeParts({ row, words, picked, count }: NodePartsProps) {
  const { resource, isDirectory, isOpen, level } = row
  const isMount = level === 1
  const label = isMount ? titleOfMount(resource) : resource.name
  const aside = isMount ? asideOfMount(resource) : asideOf(resource)
  return (
    <>
      {isDirectory ? (
        <span class="row-twist" data-do="twist">
          <Shape name={isOpen ? 'down' : 'right'} />
        </span>
      ) : (
        <span class="row-twist" />
      )}
      <Shape name={iconOfRow(row)} />
      <Name text={label} words={words} />
      {aside === undefined ? null : (
        <span class="row-aside" lang={langOf(aside)}>
          <bdi>{shown(aside)}</bdi>
        </span>
      )}
      {changed.value.has(resource.uri) ? <ChangedDot /> : null}
      {isMount && isSearchMount(resource.uri) ? null : (
        <span
          class={picked || count > 0 ? 'pick pick-on' : 'pick'}
          title={pickTitle(isFolder(resource), picked, count)}
          data-do="pick"
        >
          {count > 0 ? <span class="pick-count">{formatNumber(count)}</span> : null}
          <Shape name={picked ? 'tick' : count > 0 ? 'dash' : 'basket'} />
          {count > 0 ? <span class="unseen">{t('pickedBelow', { count })}</span> : null}
        </span>
      )}
    </>
  )
}

/** A mount that is one resource looks like one. */
function iconOfRow({ resource: { uri, mimeType }, isDirectory, level }: NodePartsProps['row']): IconName {
  if (level === 1 && (isDirectory || isSearchMount(uri))) return iconOfMount(uri)
  return isDirectory ? 'folder' : iconOf(mimeType)
}

function pickTitle(isDrawer: boolean, picked: boolean, count: number): string {
  if (!isDrawer) return t(picked ? 'unpick' : 'pick')
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

/** The title of a resource behind its name. `undefined`: it has none, or the name says it. */
export function asideOf({ name, title }: Resource): string | undefined {
  return title === undefined || title === name ? undefined : title
}
