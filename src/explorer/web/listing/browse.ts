import { computed, effect, type Signal, signal, untracked } from '@preact/signals'
import { isBelow } from '../../../browse/tree.ts'
import { decodeIfValid } from '../../../core/uri.ts'
import { announce } from '../state/announce.ts'
import { markChanged, markSeen, onListChange } from '../state/live.ts'
import {
  cacheResources,
  findMountKind,
  isSearchMount,
  loadTemplates,
  noteMounts,
  sortMounts,
  templates,
  titleOfMount,
} from '../state/offered.ts'
import { navigate, route } from '../state/route.ts'
import { connection, liveness } from '../state/session.ts'
import { createResourceList, type ResourceList, sortedIndexes } from './columns.ts'
import { createForest, type Forest } from './forest.ts'
import type { TreeRow } from './rows.ts'
import { facets, isNarrowed, noFacets, type RowFilters, type SelectedRows, select, treeOfMatches } from './select.ts'
import { t } from './words.ts'

/** The tree, and the list of all resources, which is loaded at its first use. `undefined`: there is no connection yet. */
export const browseModel = signal<{ readonly forest: Forest; readonly listed: ResourceList } | undefined>(undefined)

const treeTick = signal(0)
const listTick = signal(0)

/** Increments a counter. It uses `peek`, because an effect that reads a signal and writes it would run again. */
function bump(tick: Signal<number>): void {
  tick.value = tick.peek() + 1
}

/** The directories that the user has closed in the filtered tree. */
export const closedInFilter = signal<ReadonlySet<string>>(new Set())

/** The filters of the rows as JSON. The text stays equal when the user navigates with the same filters. */
const selectionKey = computed(() => {
  const own = route.value.view === 'list' ? ['in'] : []
  return JSON.stringify(route.value, ['filter', ...facets, ...own])
})

/** Text filter and facets of the rows from the permalink; for the list also its folder. */
export const rowFilters = computed((): RowFilters => JSON.parse(selectionKey.value) as RowFilters)

export const isFiltered = computed(() => isNarrowed(rowFilters.value))

/** Whether the list is needed: it is shown, or filters the tree. */
const isListWanted = computed(() => {
  const { view = 'tree' } = route.value
  return view === 'list' || (view === 'tree' && isFiltered.value)
})

/** Whether entries may have been added or removed since the list was loaded. */
let isListStale = false

const sort = computed(() => (route.value.view === 'list' ? route.value.sort : undefined))

const order = computed(() => {
  listTick.value
  const columns = browseModel.value?.listed.columns
  return columns === undefined ? new Uint32Array() : sortedIndexes(columns, sort.value)
})

const nothing: SelectedRows = {
  rows: new Uint32Array(),
  counts: { mount: new Map(), mime: new Map(), audience: new Map(), minPriority: new Map(), since: new Map() },
}

/** The matching rows of the list, and the number of rows for each value of a facet. */
export const selectedRows = computed((): SelectedRows => {
  listTick.value
  const columns = browseModel.value?.listed.columns
  return columns === undefined ? nothing : select(columns, order.value, rowFilters.value, Date.now())
})

/** The columns of the list in which no matching row has a value. */
export const emptyColumns = computed(() => {
  const resources = browseModel.value?.listed.columns.resources ?? []
  const { rows } = selectedRows.value
  return (['size', 'modified', 'priority'] as const).filter(
    (name) => !rows.some((row) => resources[row]?.[name] !== undefined),
  )
})

/** The loading state of the list, its error, the mounts that did not answer, and the number of loaded resources. */
export const listState = computed(() => {
  listTick.value
  const { state = 'idle', error, unavailable = [], columns } = browseModel.value?.listed ?? {}
  return { state, error, unavailable, count: columns?.resources.length ?? 0 } as const
})

export const treeRows = computed((): readonly TreeRow[] => {
  treeTick.value
  const now = browseModel.value
  if (now === undefined) return []
  if (!isFiltered.value) return now.forest.rows
  return treeOfMatches(now.listed.columns, selectedRows.value.rows, closedInFilter.value)
})

export const treeState = computed(() => {
  treeTick.value
  const { state = 'loading', error } = browseModel.value?.forest ?? {}
  return { state, error } as const
})

export function startBrowse(): void {
  effect(() => {
    const now = connection.value
    if (now === undefined) return
    const forest = createForest(now.view, {
      onChange: () => bump(treeTick),
      onPage: cacheResources,
      isExpandable: ({ uri }) => !isSearchMount(uri),
      arrange: (mounts) => {
        noteMounts(mounts)
        return sortMounts(mounts)
      },
      mayBeSingle: ({ uri }) => findMountKind(uri)?.isSingle !== false,
      isOpenAtFirst: ({ uri }) => findMountKind(uri)?.isFirst === true,
    })
    const listed = createResourceList(now.view, {
      onChange: createThrottle(() => bump(listTick)),
      onPage: cacheResources,
      yieldToPage,
    })
    browseModel.value = { forest, listed }
    untracked(() => {
      void forest.start()
      void loadTemplates().then(() => forest.reconsider())
    })
    const end = onListChange(createRefresh(forest, listed))
    return () => {
      end()
      listed.stop()
    }
  })
  // An opened resource counts as seen.
  effect(() => {
    const { uri } = route.value
    if (uri !== undefined) untracked(() => markSeen(uri))
  })
  // The list is loaded if it is shown, or if it filters the tree.
  effect(() => {
    const now = browseModel.value
    if (!isListWanted.value) return
    untracked(() => {
      now?.listed.load()
      if (isListStale) void now?.listed.reload()
      isListStale = false
    })
  })
}

/** Lets the page draw between two pieces of work. A timer also runs in a hidden tab, unlike an animation frame. */
function yieldToPage(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}

/** Returns `tell` with a throttle, so that drawing takes at most a fifth of the time. */
function createThrottle(tell: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let free = 0
  return () => {
    if (timer !== undefined) return
    timer = setTimeout(
      () => {
        timer = undefined
        const before = performance.now()
        tell()
        // Computed values are evaluated when they are drawn, so the time of drawing is measured too.
        requestAnimationFrame(() => {
          free = performance.now() + 4 * (performance.now() - before)
        })
      },
      Math.max(0, free - performance.now()),
    )
  }
}

/** Returns a throttled function that updates the tree and the list. */
function createRefresh(forest: Forest, listed: ResourceList): (change: { readonly missed: boolean }) => void {
  let isPlanned = false
  let isRunning = false
  let isAskedAgain = false
  let pauseMs = 300
  const run = async () => {
    isPlanned = false
    isRunning = true
    const before = performance.now()
    const changedUris = await forest.refresh()
    markChanged(changedUris.filter((uri) => uri !== route.value.uri))
    if (changedUris.length > 0) announce(t('listChanged', { count: changedUris.length }))
    // A hidden list is loaded again when it is next shown.
    if (listed.state !== 'idle' && isListWanted.peek()) await listed.reload()
    else isListStale = listed.state !== 'idle'
    pauseMs = Math.min(60_000, Math.max(1000, 5 * (performance.now() - before)))
    isRunning = false
    if (isAskedAgain) ask()
    isAskedAgain = false
  }
  const ask = () => {
    if (isRunning) isAskedAgain = true
    else if (!isPlanned) setTimeout(() => void run(), pauseMs)
    isPlanned = !isRunning
  }
  return ask
}

/** The resource that the tree scrolls to, once its row exists. */
export const resourceToReveal = signal<{ readonly uri: string } | undefined>(undefined)

/** Whether the tree is still opening directories to reveal a resource. */
export const isRevealing = signal(false)

let running: AbortController | undefined

/** Shows a resource in the tree: opens the directories above it, and goes to its row. */
export function reveal(uri: string): void {
  navigate({ view: 'tree', uri, filter: undefined, ...noFacets })
  void openAncestors(uri)
}

/** Opens the directories above a resource, and lets the tree scroll to it. Resolves to `false` if it is not found, or a newer call replaced this one. */
export async function openAncestors(uri: string): Promise<boolean> {
  running?.abort()
  const controller = new AbortController()
  running = controller
  isRevealing.value = true
  try {
    const { forest } = browseModel.value ?? {}
    if (forest === undefined) return false
    if (forest.state === 'loading') await forest.start()
    const row = await forest.reveal(uri, controller.signal)
    if (row !== undefined) resourceToReveal.value = { uri: row }
    return row !== undefined
  } catch {
    // A newer request replaced this one.
    return false
  } finally {
    if (running === controller) isRevealing.value = false
  }
}

/** Returns the path of a resource: the mount, the folders and the resource itself, each with its decoded name and its URI. */
export function breadcrumbsOf(uri: string): readonly { readonly label: string; readonly uri: string }[] {
  // Reading this signal subscribes the component to the mounts, which are loaded with the tree.
  treeState.value
  const bare = uri.replace(/[?#].*$/s, '')
  const mounts = browseModel.value?.forest.mounts ?? []
  const mount = mounts
    .filter((one) => one.uri === bare || one.uri === `${bare}/` || isBelow(bare, one.uri))
    .sort((a, b) => b.uri.length - a.uri.length)[0]
  // Without a known mount, the path begins with the scheme and the authority.
  const root = mount?.uri ?? /^[^:]*:(?:\/\/[^/]*)?\/?/.exec(bare)?.[0] ?? ''
  const crumbs = [{ label: mount === undefined ? root : titleOfMount(mount), uri: root }]
  let at = root === '' || /[/:]$/.test(root) ? root : `${root}/`
  for (const segment of bare.slice(at.length).split('/')) {
    if (segment === '') continue
    at += segment
    const isLast = at.length >= bare.replace(/\/$/, '').length
    crumbs.push({ label: decodeIfValid(segment), uri: isLast ? uri : `${at}/` })
    at += '/'
  }
  return crumbs
}

/** Number of times that a lost connection was restored. A pane that shows a failure retries when this number grows. */
export const reconnections = signal(0)

export function retryWhenReconnected(): void {
  let wasLost = false
  effect(() => {
    if (liveness.value === 'lost') wasLost = true
    if (liveness.value !== 'live' || !wasLost) return
    wasLost = false
    untracked(() => {
      reconnections.value++
      if (templates.value.state === 'failed') void loadTemplates()
      browseModel.value?.forest.retry()
      if (browseModel.value?.listed.state === 'failed') browseModel.value.listed.load()
    })
  })
}
