import { isResourceError } from '../../../core/errors.ts'
import type { Page, Resource, View } from '../../../core/view.ts'
import { type Columns, createColumns } from './columns.ts'

/** All resources of a view, as far as they have been loaded. */
export interface Listed {
  /** What there is to show. Another object whenever it is another list; it grows while it is loaded the first time. */
  readonly columns: Columns
  /** Another number whenever there is something new in it. */
  readonly version: number
  readonly state: 'idle' | 'loading' | 'loaded' | 'failed'
  readonly error: unknown
  /** The addresses of mounts that did not answer. */
  readonly unavailable: readonly string[]
  /** Loads it, where nobody has yet, or where that failed: it goes on where it stopped. */
  load(): void
  /** Loads it anew. What is there is shown until all of it is. Resolves when that is over. */
  reload(): Promise<void>
  stop(): void
}

export interface ListedOptions {
  onChange(): void
  onPage?(resources: readonly Resource[]): void
  /** Lets the page draw and hear the reader between two pieces of work. */
  breathe?(): Promise<void>
}

/** So many resources are taken in at once. */
const piece = 1000

export function createListed(view: View, options: ListedOptions): Listed {
  const { onChange, onPage = () => {}, breathe = async () => {} } = options
  let columns = createColumns([])
  let version = 0
  let state: Listed['state'] = 'idle'
  let error: unknown
  let unavailable: readonly string[] = []
  let running: AbortController | undefined
  /** Where the first load goes on after a failure. */
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
      // What is whole is shown until the next is whole; what is not grows before the eyes of the reader.
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
      // Where it is not that the server is away, the place to go on from may be what is wrong.
      if (!isResourceError(thrown, 'unavailable')) startOver()
      // A list that is whole is worth more than an error in its place.
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
      // A page may have been taken in by half.
      startOver()
      state = isWhole ? 'loaded' : 'idle'
    },
  }
}
