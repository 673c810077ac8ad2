import { isResourceError } from '../../../core/errors.ts'
import type { Page, Resource, View } from '../../../core/view.ts'
import { type Columns, createColumns } from './columns.ts'

/** All resources of a view that have been loaded so far. */
export interface Listed {
  /** The listed resources. A new object for each list; it grows during the first load. */
  readonly columns: Columns
  /** A number that changes whenever the list does. */
  readonly version: number
  readonly state: 'idle' | 'loading' | 'loaded' | 'failed'
  readonly error: unknown
  /** The addresses of mounts that did not answer. */
  readonly unavailable: readonly string[]
  /** Loads the list, if it is not loaded or has failed: it continues where it stopped. */
  load(): void
  /** Loads the list again. The former one is shown until the new one is complete. Resolves at the end. */
  reload(): Promise<void>
  stop(): void
}

export interface ListedOptions {
  onChange(): void
  onPage?(resources: readonly Resource[]): void
  /** Lets the page draw and handle input between two pieces of work. */
  breathe?(): Promise<void>
}

/** Number of resources added at once. */
const piece = 1000

export function createListed(view: View, options: ListedOptions): Listed {
  const { onChange, onPage = () => {}, breathe = async () => {} } = options
  let columns = createColumns([])
  let version = 0
  let state: Listed['state'] = 'idle'
  let error: unknown
  let unavailable: readonly string[] = []
  let running: AbortController | undefined
  /** Cursor at which the first load continues after a failure. */
  let cursor: string | undefined
  let isWhole = false

  const tell = () => {
    version++
    onChange()
  }

  const startOver = () => {
    cursor = undefined
    if (!isWhole) columns = createColumns([])
  }

  const run = async (isAnew: boolean) => {
    running?.abort()
    const controller = new AbortController()
    running = controller
    const { signal } = controller
    state = 'loading'
    error = undefined
    onChange()
    try {
      const mounts = isAnew || columns.mounts.length === 0 ? await view.mounts({ signal }) : columns.mounts
      // A complete list is shown until the next one is complete; an incomplete one grows visibly.
      const isHeldBack = isAnew && isWhole
      const growing = isAnew || columns.mounts.length === 0 ? createColumns(mounts) : columns
      if (!isHeldBack) columns = growing
      let at = isAnew ? undefined : cursor
      const missing = new Set(isAnew ? [] : unavailable)
      do {
        const page: Page<Resource> = await view.list(at === undefined ? {} : { cursor: at }, { signal })
        for (let from = 0; from < page.items.length; from += piece) {
          growing.add(page.items.slice(from, from + piece))
          await breathe()
          signal.throwIfAborted()
        }
        onPage(page.items)
        for (const address of page.unavailable ?? []) missing.add(address)
        at = page.nextCursor
        if (isHeldBack) continue
        cursor = at
        unavailable = [...missing]
        tell()
      } while (at !== undefined)
      columns = growing
      unavailable = [...missing]
      cursor = undefined
      isWhole = true
      state = 'loaded'
    } catch (thrown) {
      if (signal.aborted) return
      error = thrown
      // If the server is reachable, the cursor may be invalid.
      if (!isResourceError(thrown, 'unavailable')) startOver()
      // If loading fails, a complete list stays.
      state = isWhole ? 'loaded' : 'failed'
    }
    if (running === controller) running = undefined
    tell()
  }

  return {
    get columns() {
      return columns
    },
    get version() {
      return version
    },
    get state() {
      return state
    },
    get error() {
      return error
    },
    get unavailable() {
      return unavailable
    },
    load: () => {
      if (state === 'idle' || state === 'failed') void run(false)
    },
    reload: async () => {
      if (state !== 'idle') await run(true)
    },
    stop: () => {
      if (running === undefined) return
      running.abort()
      running = undefined
      // A page may have been added only in part.
      startOver()
      state = isWhole ? 'loaded' : 'idle'
    },
  }
}
