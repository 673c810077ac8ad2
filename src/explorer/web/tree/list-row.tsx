import type { Resource } from '../../../core/view.ts'
import { typeName } from '../preview/model/type-name.ts'
import { iconOf, Shape } from '../shell/icons.tsx'
import { isPicked } from '../state/basket.ts'
import { langOf } from '../state/lang.ts'
import { changed } from '../state/live.ts'
import { place } from '../state/place.ts'
import { shown } from '../state/shown.ts'
import { formatAge, formatNumber, formatSize, formatTime } from '../words/language.ts'
import { readableUri } from './columns.ts'
import { Name, PathText } from './name.tsx'
import { asideOf, ChangedDot } from './tree-row.tsx'
import { t } from './words.ts'

interface ListRowProps {
  readonly resource: Resource
  /** The directory that it lies in, as it is shown. */
  readonly path: string
  readonly id: string
  readonly index: number
  readonly isActive: boolean
  readonly isAway: boolean
  readonly words: readonly string[]
  onPress(event: MouseEvent): void
}

export function ListRow({ resource, path, id, index, isActive, isAway, words, onPress }: ListRowProps) {
  const { uri, name, mimeType, size, modified, priority } = resource
  const aside = asideOf(resource)
  const picked = isPicked(uri)
  const isShown = place.value.uri === uri
  const states = [
    isActive ? 'row-active' : '',
    isAway ? 'row-away' : '',
    isShown ? 'row-shown' : '',
    picked ? 'row-picked' : '',
  ]
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter does it.
    <div
      id={id}
      role="row"
      class={`row list-cells ${states.join(' ')}`}
      title={shown(readableUri(uri))}
      aria-rowindex={index + 1}
      aria-selected={picked}
      aria-current={isShown ? 'true' : undefined}
      onClick={onPress}
    >
      <Shape name={iconOf(mimeType)} />
      <div role="gridcell" class="list-cell cell-name">
        <Name text={name} words={words} />
        {aside === undefined ? null : (
          <span class="row-aside" lang={langOf(aside)}>
            <bdi>{shown(aside)}</bdi>
          </span>
        )}
        {changed.value.has(uri) ? <ChangedDot /> : null}
      </div>
      <div role="gridcell" class="list-cell cell-path">
        <PathText text={path} words={words} />
      </div>
      <div role="gridcell" class="list-cell cell-type">
        {shown(typeName(mimeType))}
      </div>
      <div role="gridcell" class="list-cell cell-size">
        {size === undefined ? '' : formatSize(size)}
      </div>
      <div
        role="gridcell"
        class="list-cell cell-modified"
        title={modified === undefined ? undefined : formatTime(modified)}
      >
        {modified === undefined ? '' : formatAge(modified, Date.now())}
      </div>
      <div role="gridcell" class="list-cell cell-priority">
        {priority === undefined ? '' : formatNumber(priority)}
      </div>
      <div role="gridcell" class="list-cell cell-do">
        <span class={picked ? 'pick pick-on' : 'pick'} data-do="pick" title={picked ? t('unpick') : t('pick')}>
          <Shape name={picked ? 'tick' : 'basket'} />
        </span>
        <span class="pick" data-do="reveal" title={t('showInTree')}>
          <Shape name="tree" />
        </span>
      </div>
    </div>
  )
}
