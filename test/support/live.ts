import type { Change, Provider } from '../../src/core/provider.ts'
import { type Memory, type MemoryEntry, memory } from './memory.ts'

export interface Live extends Memory {
  /** Changes or removes an entry, and reports the change. */
  set(path: string, entry: MemoryEntry | undefined): void
  tell(change: Change): void
  /** Ends the running watches, as when a source goes down. */
  drop(): void
  /** Number of running watches. */
  readonly watching: number
  /** Delays or fails the start of `watch`. */
  arming: (() => Promise<void>) | undefined
}

/** A memory provider that reports changes. */
export function live(entries: Readonly<Record<string, MemoryEntry | string>>): Live {
  const inner = memory(entries)
  const watches = new Set<{ push: (change: Change) => void; end: () => void }>()
  const watch: Provider['watch'] = async (signal) => {
    await result.arming?.()
    const queue: Change[] = []
    let wake = () => {}
    let ended = false
    const self = {
      push: (change: Change) => {
        queue.push(change)
        wake()
      },
      end: () => {
        ended = true
        wake()
      },
    }
    watches.add(self)
    signal.addEventListener('abort', self.end)
    return (async function* () {
      try {
        while (!ended || queue.length > 0) {
          const change = queue.shift()
          if (change !== undefined) yield change
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        watches.delete(self)
      }
    })()
  }
  const result: Live = {
    ...inner,
    arming: undefined,
    watch,
    set: (path, entry) => {
      const listed = entry === undefined || !inner.entries.has(path)
      if (entry === undefined) inner.entries.delete(path)
      else inner.entries.set(path, entry)
      result.tell({ path, listed })
    },
    tell: (change) => {
      for (const one of watches) one.push(change)
    },
    drop: () => {
      for (const one of watches) one.end()
    },
    get watching() {
      return watches.size
    },
  }
  return result
}

export async function until(condition: () => boolean, ms = 5000): Promise<void> {
  const end = Date.now() + ms
  while (!condition()) {
    if (Date.now() > end) throw new Error('it did not happen in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
