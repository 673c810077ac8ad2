import { setImmediate as breathe } from 'node:timers/promises'
import type { MountReader } from '../core/mount-reader.ts'
import type { Entry } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { nameOnly, nameVersion } from './feed-document.ts'
import type { SearchDocument } from './search-index.ts'

export interface NamingOptions {
  readonly mount: MountReader
  readonly scrubber?: Scrubber
  /** Keeps documents in the index. */
  readonly keep: (documents: readonly SearchDocument[]) => Promise<unknown>
}

/** Indexes names: documents are found by path and title before their texts are read, which takes longer. */
export interface Naming {
  /** Indexes the names of entries. */
  put(entries: readonly Entry[], signal: AbortSignal): Promise<void>
  /** Indexes the names of all new entries of a directory behind a path. They are then known by their names. */
  putBehind(directory: string, path: string, known: Map<string, string>, signal: AbortSignal): Promise<void>
}

/** Number of names indexed at once. */
const nameBatchSize = 500

export function createNaming({ keep, ...options }: NamingOptions): Naming {
  const { mount } = options
  return {
    put: async (entries, signal) => {
      for (let at = 0; at < entries.length; at += nameBatchSize) {
        signal.throwIfAborted()
        await keep(entries.slice(at, at + nameBatchSize).map((entry) => nameOnly(entry, options)))
        await breathe()
      }
    },
    putBehind: async (directory, path, known, signal) => {
      let fresh: Entry[] = []
      const putFresh = async () => {
        await keep(fresh.map((entry) => nameOnly(entry, options)))
        for (const entry of fresh) known.set(mount.uriOf(entry.path), nameVersion)
        fresh = []
        await breathe()
      }
      for await (const entry of mount.list({ prefix: directory, after: path }, signal)) {
        signal.throwIfAborted()
        if (!known.has(mount.uriOf(entry.path))) fresh.push(entry)
        if (fresh.length >= nameBatchSize) await putFresh()
      }
      await putFresh()
    },
  }
}
