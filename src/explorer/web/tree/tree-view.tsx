import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type FilesBelow, isBelow, isFolder } from '../../../browse/tree.ts'
import { splitFilterWords } from '../../../core/kit/matching.ts'
import { askToAddMany, maxBasketItems, shareInBasket, togglePicked } from '../basket/picked.ts'
import {
  browseModel,
  closedInFilter,
  isFiltered,
  listState,
  openAncestors,
  resourceToReveal,
  rowFilters,
  selectedRows,
  treeRows,
} from '../listing/browse.ts'
import type { TreeRow } from '../listing/rows.ts'
import { focusSearch } from '../shell/keys.ts'
import { isSearchMount } from '../state/offered.ts'
import { navigate, route } from '../state/route.ts'
import {
  createRangePicker,
  createTypeAhead,
  indexOfActive,
  isTyped,
  keyEffect,
  parentIndex,
  rowAction,
  rowElementId,
} from './keys.ts'
import { TreeRowView } from './tree-row.tsx'
import { type ScrollAnchor, useChangeMarks, useNeighbours, useRows } from './use-rows.ts'
import { t } from './words.ts'

/** The key of the active row. It survives while the tree is hidden. */
const active = signal<string | undefined>(undefined)
/** The scroll position. It survives while the tree is hidden. */
const memory = { anchor: [] as ScrollAnchor, top: 0 }

/** Number of rows before the end of a page at which the next page is loaded. */
const ahead = 200

/** The tree (WAI-ARIA Authoring Practices, tree view). */
export function TreeView() {
  const rows = treeRows.value
  const { filter } = rowFilters.value
  const words = splitFilterWords(filter)
  const keyOf = (index: number) => rows[index]?.key ?? ''
  const activeIndex = indexOfActive(active.value, rows.length, keyOf, lastIndex)
  const { scroller, window, page, onScroll, show } = useRows({
    count: rows.length,
    keyOf,
    identity: rows,
    active: isHeldBy(rows, activeIndex, memory.anchor[0]?.key) ? activeIndex : -1,
    asked: isFiltered.value ? JSON.stringify(rowFilters.value) : '',
    memory,
  })
  const typeAhead = useRef(createTypeAhead()).current
  const range = useRef(createRangePicker()).current
  const visibleRows = rows.slice(window.first, window.end)
  useChangeMarks(visibleRows.flatMap(({ kind, isDirectory, key }) => (kind === 'node' && !isDirectory ? [key] : [])))
  useFollowing(rows, show)
  useNeighbours(rows, activeIndex, (index) => rowResourceUri(rows[index]), rows.length)

  const ends = rows.slice(window.visible, window.visible + page + ahead)
  useEffect(() => {
    for (const row of ends) if (row.kind === 'more') browseModel.value?.forest.more(row.resource.uri)
  })

  const pickable = (index: number) => resourceAt(rows, index)
  const activate = (index: number) => {
    const row = rows[index]
    if (row === undefined) return
    active.value = row.key
    lastIndex.current = index
    show(index)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return
    const row = rows[activeIndex]
    if (row === undefined) return
    if (isTyped(event)) {
      const index = typeAhead(event.key, rows, activeIndex, event.timeStamp)
      event.preventDefault()
      event.stopPropagation()
      if (index !== undefined) activate(index)
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const step = keyEffect(event.key, rows, activeIndex, page)
    if (step === undefined) return
    event.preventDefault()
    if ('to' in step) {
      if (event.shiftKey) range.extend(pickable, activeIndex, step.to)
      else range.end()
      activate(step.to)
    } else if (step.act === 'open') setOpen(row, true)
    else if (step.act === 'close') setOpen(row, false)
    else if (step.act === 'openSiblings') openSiblings(rows, activeIndex)
    else if (step.act === 'preview') preview(row)
    else if (row.kind === 'node') pickRow(row)
  }

  const viewOf = (row: TreeRow, index: number, isAway = false) => (
    <TreeRowView
      key={row.key}
      row={row}
      id={rowElementId('tree', row.key)}
      isActive={index === activeIndex}
      isAway={isAway}
      words={words}
      onPress={(event) => {
        const part = rowAction(event)
        if (part === 'pick') return pickRow(row)
        if (part === 'twist') setOpen(row, !row.isOpen)
        else if (event.shiftKey) range.extend(pickable, activeIndex, index)
        else if (event.ctrlKey || event.metaKey) pickRow(row)
        else {
          const isShown = route.value.uri === row.key
          if (row.isDirectory && (!row.isOpen || isShown)) setOpen(row, !row.isOpen)
          preview(row)
        }
        activate(index)
      }}
    />
  )
  const activeRow = rows[activeIndex]
  const isAway = activeIndex !== -1 && (activeIndex < window.first || activeIndex >= window.end)
  return (
    <div
      class="rows"
      id="tree"
      ref={scroller}
      role="tree"
      tabIndex={0}
      aria-label={t('tree')}
      aria-multiselectable="true"
      aria-busy={visibleRows.some(({ kind }) => kind === 'loading')}
      {...(activeRow === undefined ? {} : { 'aria-activedescendant': rowElementId('tree', activeRow.key) })}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      <div role="none" class="rows-space" style={{ height: `${window.height}px` }}>
        <div role="none" class="rows-drawn" style={{ transform: `translateY(${window.top}px)` }}>
          {visibleRows.map((row, at) => viewOf(row, window.first + at))}
        </div>
        {isAway && activeRow !== undefined ? viewOf(activeRow, activeIndex, true) : null}
      </div>
    </div>
  )
}

function resourceAt(rows: readonly TreeRow[], index: number) {
  const row = rows[index]
  return row?.kind === 'node' && !(row.level === 1 && isSearchMount(row.key)) ? row.resource : undefined
}

function setOpen(row: TreeRow, isOpen: boolean): void {
  if (isFiltered.value) {
    const closed = new Set(closedInFilter.value)
    if (isOpen) closed.delete(row.key)
    else closed.add(row.key)
    closedInFilter.value = closed
  } else if (isOpen) browseModel.value?.forest.open(row.key)
  else browseModel.value?.forest.close(row.key)
}

/** Shows the resource of a row, goes to the search, or loads the next page or a failed one. */
function preview(row: TreeRow): void {
  if (row.kind === 'failed' || row.kind === 'more') browseModel.value?.forest.more(row.resource.uri)
  else if (row.kind === 'node' && row.level === 1 && isSearchMount(row.key)) {
    navigate({ view: 'search' })
    focusSearch()
  } else if (row.kind === 'node') {
    opened.current = row.resource.uri
    navigate({ uri: row.resource.uri })
  }
}

const maxOpened = 100

function openSiblings(rows: readonly TreeRow[], index: number): void {
  const parent = parentIndex(rows, index)
  const level = rows[index]?.level
  let opened = 0
  for (let at = parent + 1; at < rows.length && (rows[at]?.level ?? 0) > (rows[parent]?.level ?? 0); at++) {
    const row = rows[at]
    if (row === undefined || row.level !== level || !row.isDirectory || row.isOpen) continue
    if (++opened > maxOpened) break
    setOpen(row, true)
  }
}

/** Adds the resource of a row to the basket, or removes it. Of a folder in the filtered tree, adds only the matches. */
function pickRow({ resource, level, key }: TreeRow): void {
  if (level === 1 && isSearchMount(key)) return
  if (!isFiltered.value || !isFolder(resource) || shareInBasket(resource.uri).isWhole) togglePicked(resource)
  else askToAddMany({ name: resource.title ?? resource.name, folder: resource.uri }, () => matchingFiles(resource.uri))
}

/**
 * Whether the active row keeps its position on the screen. It does not if a page will be inserted above it, because each page would
 * push the visible rows out of sight.
 */
function isHeldBy(rows: readonly TreeRow[], active: number, first: string | undefined): boolean {
  for (let at = active - 1; at >= Math.max(0, active - 100); at--) {
    const row = rows[at]
    if (row?.kind === 'more' || row?.kind === 'loading') return false
    if (row?.key === first) return true
  }
  return true
}

function rowResourceUri(row: TreeRow | undefined): string | undefined {
  return row?.kind === 'node' && !row.isDirectory ? row.key : undefined
}

const opened: { current: string | undefined } = { current: undefined }

/** Last index of the active row: if the row disappears, the one at its index becomes active. */
const lastIndex = { current: 0 }

/** Goes to the row of the permalink, and to rows that should be revealed. */
function useFollowing(rows: readonly TreeRow[], show: (index: number, isCentred?: boolean) => void) {
  const { uri } = route.value
  const isReady = browseModel.value?.forest.state === 'loaded'
  const target = resourceToReveal.value
  const lastTarget = useRef<unknown>(undefined)
  useEffect(() => {
    if (uri === undefined || !isReady || uri === opened.current) return
    opened.current = undefined
    if (active.value !== uri) void openAncestors(uri)
  }, [uri, isReady])
  useEffect(() => {
    if (target === undefined || lastTarget.current === target) return
    const index = rows.findIndex(({ key }) => key === target.uri)
    if (index === -1) return
    lastTarget.current = target
    active.value = target.uri
    show(index, true)
  })
}

/** Returns the resources that match the filter, at most one more than the basket holds. `folder`: only those below it. */
export function matchingFiles(folder?: string): FilesBelow {
  const resources = browseModel.value?.listed.columns.resources ?? []
  const files = []
  let isPart = listState.value.state === 'loading'
  for (const row of selectedRows.value.rows) {
    const resource = resources[row]
    if (resource === undefined || (folder !== undefined && !isBelow(resource.uri, folder))) continue
    if (files.length > maxBasketItems) {
      isPart = true
      break
    }
    files.push(resource)
  }
  return { files, counts: new Map(), isPart }
}
