import type { Entry } from '../core/provider.ts'
import type { SearchDocument } from './search-index.ts'

/** Writes documents while the next ones are read. */
interface Writer {
  /** Waits while earlier documents are written, if there are enough for the next write. */
  add(documents: readonly SearchDocument[]): Promise<void>
  /** Resolves when everything is written. Rejects with the failure of a write. */
  flush(): Promise<void>
  /** Resolves when no write is under way; waiting documents stay unwritten. It does not reject. */
  settled(): Promise<void>
}

/**
 * When waiting documents are written. A write of many small ones costs less, but searches wait for it. The time is since the last
 * write began, so that a document of a slow source is soon found.
 */
const together = { documents: 64, units: 128 * 1024, ms: 200 }

export function createWriter(write: (documents: readonly SearchDocument[]) => Promise<void>): Writer {
  let waiting: SearchDocument[] = []
  let units = 0
  let since = performance.now()
  let writing: Promise<void> | undefined
  const begin = async () => {
    await writing
    writing = undefined
    if (waiting.length === 0) return
    writing = write(waiting)
    // It is thrown by the next call.
    writing.catch(() => {})
    waiting = []
    units = 0
    since = performance.now()
  }
  return {
    add: async (documents) => {
      for (const document of documents) {
        waiting.push(document)
        units += document.text.length
      }
      const isDue = performance.now() - since >= together.ms
      if (isDue || waiting.length >= together.documents || units >= together.units) await begin()
    },
    flush: async () => {
      await begin()
      await writing
      writing = undefined
    },
    settled: async () => {
      await writing?.catch(() => {})
    },
  }
}

/** Entries by the time of their last change, the latest first; entries without a time come last, in their order. */
export function newestFirst(entries: readonly Entry[]): readonly Entry[] {
  return [...entries].sort((a, b) => (b.modified ?? 0) - (a.modified ?? 0))
}
