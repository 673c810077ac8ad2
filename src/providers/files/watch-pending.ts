import type { Change } from '../../core/provider.ts'

/** What has changed and was not told yet. */
export interface Pending {
  /** `aliases`: see `Change`. */
  add(path: string, listed: boolean, aliases?: readonly string[]): void
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
  let paths = new Map<string, { readonly listed: boolean; readonly aliases: readonly string[] }>()
  let all = false
  let ended: { readonly error?: unknown } | undefined
  let wake = () => {}

  const everything = () => {
    all = true
    paths.clear()
    wake()
  }

  const take = (): readonly Change[] => {
    const batch = all
      ? [{}]
      : Array.from(paths, ([path, { listed, aliases }]) => ({
          path,
          ...(listed ? { listed } : {}),
          ...(aliases.length > 0 ? { aliases } : {}),
        }))
    paths = new Map()
    all = false
    return batch
  }

  return {
    add: (path, listed, aliases = []) => {
      if (all) return
      const known = paths.get(path)
      // What was told of the path alone stays so.
      const isAlone = aliases.length === 0 || known?.aliases.length === 0
      const joined = isAlone ? [] : [...new Set([...(known?.aliases ?? []), ...aliases])]
      paths.set(path, { listed: listed || known?.listed === true, aliases: joined })
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
