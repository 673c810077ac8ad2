import { signal } from '@preact/signals'
import { splitFilterWords } from '../../../core/kit/matching.ts'
import type { Resource } from '../../../core/view.ts'
import { isPicked, toggleFile } from '../basket/picked.ts'
import { browseModel, reveal, rowFilters, selectedRows } from '../listing/browse.ts'
import { type Columns, distinctTitle, readableUri } from '../listing/columns.ts'
import { FileIcon } from '../preview/file-icon.tsx'
import { typeName } from '../preview/model/kind.ts'
import { ServerText } from '../shell/fields.tsx'
import { Icon } from '../shell/icons.tsx'
import { indexAfterKey } from '../shell/keys.ts'
import { changedUris } from '../state/live.ts'
import { titleOfMount } from '../state/offered.ts'
import { navigate, route } from '../state/route.ts'
import { escapeInvisible, formatNumber, formatShortTime, formatSize, formatTime } from '../words/texts.ts'
import { typeWord } from '../words/types.ts'
import { createRangePicker, indexOfActive, rowAction, rowElementId } from './keys.ts'
import { ChangedDot, PathText, ResourceName, type TreeRowProps } from './tree-row.tsx'
import { type ScrollAnchor, useChangeMarks, useNeighbours, useRows } from './use-rows.ts'
import { t } from './words.ts'

const active = signal<string | undefined>(undefined)
const lastIndex = { current: 0 }
const memory = { anchor: [] as ScrollAnchor, top: 0 }
const range = createRangePicker()

export function ListView() {
  const { rows } = selectedRows.value
  const resources = browseModel.value?.listed.columns.resources ?? []
  const at = (index: number) => resources[rows[index] ?? -1]
  const keyOf = (index: number) => at(index)?.uri ?? ''
  const activeIndex = indexOfActive(active.value ?? route.value.uri, rows.length, keyOf, lastIndex)
  const pathOf = (index: number) => directoryLabel(browseModel.value?.listed.columns, rows[index] ?? -1, route.value.in)
  const words = splitFilterWords(rowFilters.value.filter)
  const { scroller, window, page, onScroll, show } = useRows({
    count: rows.length,
    keyOf,
    identity: rows,
    active: activeIndex,
    asked: JSON.stringify([rowFilters.value, route.value.sort]),
    memory,
  })
  const indexes = Array.from({ length: Math.max(0, window.end - window.first) }, (_, index) => window.first + index)
  useChangeMarks(indexes.map(keyOf))
  useNeighbours(rows, activeIndex, keyOf, rows.length)

  const activate = (index: number) => {
    active.value = keyOf(index)
    lastIndex.current = index
    show(index)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return
    const resource = at(activeIndex)
    const isCommand = event.ctrlKey || event.metaKey || event.altKey
    const to = isCommand ? undefined : indexAfterKey(event.key, activeIndex, rows.length, Math.max(1, page - 1))
    if (to !== undefined && rows.length > 0) {
      event.preventDefault()
      if (event.shiftKey) range.extend(at, activeIndex, to)
      else range.end()
      activate(to)
    } else if (resource !== undefined && event.key === 'Enter') {
      event.preventDefault()
      if (event.ctrlKey || event.metaKey) reveal(resource.uri)
      else navigate({ uri: resource.uri })
    } else if (resource !== undefined && event.key === ' ') {
      event.preventDefault()
      toggleFile(resource)
    }
  }

  const rowAt = (index: number, isAway = false) => {
    const resource = at(index)
    if (resource === undefined) return null
    return (
      <ListRow
        key={resource.uri}
        resource={resource}
        path={pathOf(index)}
        id={rowElementId('list', resource.uri)}
        index={index}
        isActive={index === activeIndex}
        isAway={isAway}
        words={words}
        onPress={(event) => {
          const part = rowAction(event)
          if (part === 'pick') return toggleFile(resource)
          if (part === 'reveal') return reveal(resource.uri)
          if (event.shiftKey) range.extend(at, activeIndex, index)
          else if (event.ctrlKey || event.metaKey) toggleFile(resource)
          else navigate({ uri: resource.uri })
          activate(index)
        }}
      />
    )
  }
  const isAway = activeIndex !== -1 && (activeIndex < window.first || activeIndex >= window.end)
  return (
    <div
      class="rows rows-list"
      id="list"
      ref={scroller}
      role="grid"
      tabIndex={0}
      aria-label={t('list')}
      aria-rowcount={rows.length}
      aria-multiselectable="true"
      {...(activeIndex === -1 ? {} : { 'aria-activedescendant': rowElementId('list', keyOf(activeIndex)) })}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" class="rows-space" style={{ height: `${window.height}px` }}>
        <div role="none" class="rows-drawn" style={{ transform: `translateY(${window.top}px)` }}>
          {indexes.map((index) => rowAt(index))}
        </div>
        {isAway ? rowAt(activeIndex, true) : null}
      </div>
    </div>
  )
}

/** The directory of a resource: relative to the listed directory, or else the title of its mount and the path in it. */
function directoryLabel(columns: Columns | undefined, row: number, directory: string | undefined): string {
  const resource = columns?.resources[row]
  if (resource === undefined) return ''
  const mount = columns?.mounts[columns.mountAt[row] ?? -1]
  const base = directory ?? mount?.uri ?? ''
  const [start, name] = directory === undefined && mount !== undefined ? [base, titleOfMount(mount)] : [base, '']
  const { uri } = resource
  const rest = start !== '' && uri.startsWith(start) ? uri.slice(start.length).replace(/^\//, '') : uri
  const path = readableUri(rest.slice(0, rest.replace(/[?#].*$/s, '').lastIndexOf('/') + 1))
  return name === '' ? path : `${name}/${path}`
}

interface ListRowProps extends Omit<TreeRowProps, 'row'> {
  readonly resource: Resource
  readonly path: string
  readonly index: number
}

function ListRow({ resource, path, id, index, isActive, isAway, words, onPress }: ListRowProps) {
  const { uri, name, mimeType, size, modified, priority } = resource
  const aside = distinctTitle(resource)
  const picked = isPicked(uri)
  const isShown = route.value.uri === uri
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
      title={escapeInvisible(readableUri(uri))}
      aria-rowindex={index + 1}
      aria-selected={picked}
      aria-current={isShown ? 'true' : undefined}
      onClick={onPress}
    >
      <FileIcon uri={uri} mimeType={mimeType} />
      <div role="gridcell" class="list-cell cell-name">
        <ResourceName text={name} words={words} />
        <ServerText class="row-aside" text={aside} />
        {changedUris.value.has(uri) ? <ChangedDot /> : null}
      </div>
      <div role="gridcell" class="list-cell cell-path">
        <PathText text={path} words={words} />
      </div>
      <div role="gridcell" class="list-cell cell-type">
        {escapeInvisible(typeWord(typeName(mimeType, uri)))}
      </div>
      <div role="gridcell" class="list-cell cell-size">
        {size === undefined ? '' : formatSize(size)}
      </div>
      <div
        role="gridcell"
        class="list-cell cell-modified"
        title={modified === undefined ? undefined : formatTime(modified)}
      >
        {modified === undefined ? '' : formatShortTime(modified, Date.now())}
      </div>
      <div role="gridcell" class="list-cell cell-priority">
        {priority === undefined ? '' : formatNumber(priority)}
      </div>
      <div role="gridcell" class="list-cell cell-do">
        <span class={picked ? 'pick pick-on' : 'pick'} data-do="pick" title={picked ? t('unpick') : t('pick')}>
          <Icon name={picked ? 'tick' : 'basket'} />
        </span>
        <span class="pick" data-do="reveal" title={t('showInTree')}>
          <Icon name="tree" />
        </span>
      </div>
    </div>
  )
}
