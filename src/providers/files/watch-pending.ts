import type { Change } from '../../core/provider.ts'

/** Queue of changes that were not sent yet. */
export interface Pending {
  /** `aliases`: see `Change`. */
  add(path: string, listed: boolean, aliases?: readonly string[]): void
  /** Everything may have changed: replaces all changes added before. */
  everything(): void
  /** Ends the batches: normally, or with an error. */
  end(error?: unknown): void
  /** Yields the merged changes whenever the consumer asks for the next. Changes wait here meanwhile. */
  batches(): AsyncGenerator<readonly Change[]>
}

/** Maximum number of changed paths kept one by one. Above it, the batch counts as "everything changed", which is cheaper to compare. */
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
      // A change of the path without aliases stays without aliases.
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
        // Changes found in one turn of the event loop are sent together.
        await new Promise((resolve) => setImmediate(resolve))
        yield take()
      }
    },
  }
}
