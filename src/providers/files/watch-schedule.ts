import { createEvent } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Change } from '../../core/provider.ts'

export type Schedule<T extends object> = ReturnType<typeof createSchedule<T>>

const quiet = 20
const latest = 100

/** Debounced schedule of items to examine. Times are those of `performance.now()`. */
export function createSchedule<T extends object>() {
  const items = new Map<T, { readonly first: number; due: number }>()
  const spared = new WeakMap<T, number>()
  let wakeAt = 0
  const event = createEvent()

  const put = (item: T, due: number) => {
    const known = items.get(item)
    if (known === undefined) items.set(item, { first: performance.now(), due })
    else known.due = due
    if (due < wakeAt) event.set()
  }

  return {
    /** Records an event: the item is due after 20 ms without events, at most 100 ms after the first one. */
    touch: (item: T): void => {
      const now = performance.now()
      const first = items.get(item)?.first ?? now
      put(item, Math.max(Math.min(now + quiet, first + latest), spared.get(item) ?? 0))
    },
    /** Makes the item due after `ms` milliseconds. */
    later: (item: T, ms: number) => put(item, performance.now() + ms),
    /** Prevents events from making the item due within the next `ms` milliseconds. */
    spare: (item: T, ms: number) => void spared.set(item, performance.now() + ms),
    has: (item: T) => items.has(item),
    drop: (item: T) => void items.delete(item),
    /** Takes the due items, in the order of their first events. */
    take: (): readonly T[] => {
      const now = performance.now()
      const due = [...items].filter((entry) => entry[1].due <= now).map(([item]) => item)
      for (const item of due) items.delete(item)
      return due
    },
    /** Waits until an item is due, or until a time as `performance.now()` returns it. */
    idle: async (until: number): Promise<void> => {
      wakeAt = until
      for (const { due } of items.values()) wakeAt = Math.min(wakeAt, due)
      const ms = wakeAt - performance.now()
      if (ms > 0) {
        const timer = setTimeout(event.set, ms)
        timer.unref()
        await event.wait()
        clearTimeout(timer)
      }
      wakeAt = 0
    },
    /** Ends a running call of `idle`. */
    wake: event.set,
  }
}

export type Rounds = ReturnType<typeof createRounds>

interface RoundsOptions<T> {
  readonly directories: ReadonlySet<T>
  readonly look: (directory: T) => Promise<void>
  readonly begun: () => void
  /** Time from the end of one round to the beginning of the next, in milliseconds. */
  readonly intervalMs: number
  /** Length of the pause after a time slice, as a multiple of the slice. The first round, which is urgent, has no pauses. */
  readonly rest: number
}

/** Length of a time slice, in milliseconds. */
const sliceMs = 10

/** Rounds that scan every directory, with or without events. */
export function createRounds<T>({ directories, look, begun, intervalMs, rest }: RoundsOptions<T>) {
  let round: Iterator<T> | undefined
  let due = 0
  let first = true

  return {
    /** Time at which the next round begins or continues, as `performance.now()` returns it. */
    get due() {
      return due
    },
    /** Continues a round for one time slice, or begins one. */
    go: async (): Promise<void> => {
      if (round === undefined) {
        begun()
        round = [...directories].values()
      }
      const start = performance.now()
      let ended = false
      while (!ended && performance.now() - start < sliceMs) {
        const next = round.next()
        if (next.done === true) ended = true
        else await look(next.value)
      }
      const now = performance.now()
      if (ended) {
        round = undefined
        due = now + intervalMs
        first = false
      } else due = now + (first ? 0 : (now - start) * rest)
    },
    /** Begins a new round at once. */
    reset: (): void => {
      round = undefined
      due = 0
      first = true
    },
  }
}

export type Pending = ReturnType<typeof createPending>

/** Maximum number of changed paths in a batch. Above it, the batch becomes "everything may have changed", which is cheaper to handle. */
const maxPaths = 10_000

/** Queue of changes that were not sent yet. */
export function createPending() {
  let changes = new Map<string, Change>()
  let all = false
  let ended: { readonly error?: unknown } | undefined
  const event = createEvent()

  const take = (): readonly Change[] => {
    const batch = all ? [{}] : [...changes.values()]
    changes = new Map()
    all = false
    return batch
  }

  return {
    /** Merges a change with those added before. One without a path, "everything may have changed", replaces them. */
    add: ({ path, listed, of, aliases = [] }: Change): void => {
      event.set()
      if (path !== undefined && !all) {
        const key = of === undefined ? path : `\0${of} ${path}`
        const known = changes.get(key)
        // If one of the merged changes has no aliases, the result has none.
        const isAlone = aliases.length === 0 || (known !== undefined && known.aliases === undefined)
        changes.set(key, {
          path,
          ...defined({ of }),
          ...((listed === true || known?.listed === true) && { listed: true }),
          ...(!isAlone && { aliases: [...new Set([...(known?.aliases ?? []), ...aliases])] }),
        })
      }
      all ||= path === undefined || changes.size > maxPaths
      if (all) changes.clear()
    },
    /** Ends the batches: normally, or with an error. */
    end: (error?: unknown): void => {
      ended ??= error === undefined ? {} : { error }
      event.set()
    },
    /** Yields all changes since the last batch, merged, whenever the consumer requests the next batch. */
    batches: async function* (): AsyncGenerator<readonly Change[]> {
      for (;;) {
        while (ended === undefined && !all && changes.size === 0) await event.wait()
        if (ended?.error !== undefined) throw ended.error
        if (ended !== undefined) return
        // Changes found in one turn of the event loop are sent together.
        await new Promise((resolve) => setImmediate(resolve))
        yield take()
      }
    },
  }
}
