/** What is to be looked at, and when. Times are those of `performance.now()`. */
export interface Schedule<T> {
  /** Something happened to it: it is due once it was quiet for 20 ms, at the latest 100 ms after the first time. */
  touch(item: T): void
  /** It is due in so many milliseconds. */
  later(item: T, ms: number): void
  /** It is not due before so many milliseconds have gone, whatever happens to it. */
  spare(item: T, ms: number): void
  has(item: T): boolean
  drop(item: T): void
  /** Takes what is due, in the order in which it was touched first. */
  take(): readonly T[]
  /** Waits until something is due, at the latest until a time. */
  idle(until: number): Promise<void>
  /** Ends the waiting. */
  wake(): void
}

const quiet = 20
const latest = 100

export function createSchedule<T extends object>(): Schedule<T> {
  const items = new Map<T, { readonly first: number; due: number }>()
  const spared = new WeakMap<T, number>()
  let wakeAt = 0
  let wake = () => {}

  const put = (item: T, due: number) => {
    const known = items.get(item)
    if (known === undefined) items.set(item, { first: performance.now(), due })
    else known.due = due
    if (due < wakeAt) wake()
  }

  return {
    touch: (item) => {
      const now = performance.now()
      const first = items.get(item)?.first ?? now
      put(item, Math.max(Math.min(now + quiet, first + latest), spared.get(item) ?? 0))
    },
    later: (item, ms) => put(item, performance.now() + ms),
    spare: (item, ms) => spared.set(item, performance.now() + ms),
    has: (item) => items.has(item),
    drop: (item) => items.delete(item),
    take: () => {
      const now = performance.now()
      const due = [...items].filter((entry) => entry[1].due <= now).map(([item]) => item)
      for (const item of due) items.delete(item)
      return due
    },
    idle: async (until) => {
      wakeAt = until
      for (const { due } of items.values()) wakeAt = Math.min(wakeAt, due)
      const ms = wakeAt - performance.now()
      if (ms > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          timer.unref()
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      wakeAt = 0
    },
    wake: () => wake(),
  }
}
