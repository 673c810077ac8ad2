import type { Change } from '../../core/provider.ts'

/** What has changed and was not told yet. */
export interface Pending {
  add(path: string, listed: boolean): void
  /** Whatever there is may have changed: covers all that was added. */
  everything(): void
  /** Ends the batches: quietly, or with an error. */
  end(error?: unknown): void
  /** What was added, joined, whenever it is asked for the next. Changes wait here while nobody asks. */
  batches(): AsyncGenerator<readonly Change[]>
}

/** So many paths are kept apart. With more, everything counts as changed: to compare it costs less than to go on. */
const maxPaths = 10_000

export function createPending(): Pending {
  /** Whether a path came or went, by path. */
  let paths = new Map<string, boolean>()
  let all = false
  let ended: { readonly error?: unknown } | undefined
  let wake = () => {}

  const everything = () => {
    all = true
    paths.clear()
    wake()
  }

  const take = (): readonly Change[] => {
    const batch = all ? [{}] : Array.from(paths, ([path, listed]) => (listed ? { path, listed } : { path }))
    paths = new Map()
    all = false
    return batch
  }

  return {
    add: (path, listed) => {
      if (all) return
      paths.set(path, listed || paths.get(path) === true)
      if (paths.size > maxPaths) everything()
      else wake()
    },
    everything,
    end: (error) => {
      ended ??= error === undefined ? {} : { error }
      wake()
    },
    batches: async function* () {
      for (;;) {
        if (ended === undefined && !all && paths.size === 0)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        if (ended?.error !== undefined) throw ended.error
        if (ended !== undefined) return
        // What is found in one go is told in one.
        await new Promise((resolve) => setImmediate(resolve))
        yield take()
      }
    },
  }
}
