import { createHash } from 'node:crypto'
import type { Log } from '../core/log.ts'
import type { Measurements } from '../core/measurements.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { SharedChanges } from '../core/shared-changes.ts'
import { parseAddress } from '../core/uri.ts'
import type { Store, StoreOptions } from '../store/index.ts'
import type { SpilledOptions } from '../wrap/spilled.ts'

/** Settings for opening mounts. */
export interface MountSettings {
  readonly log: Log
  /** Removes known secrets, for providers that redact. */
  readonly scrubber?: Scrubber
  /** Key for the version hashes of redacted contents. Replicas share it. Default: a separate key for each mount. */
  readonly key?: Uint8Array
  /** Loads that key when it is needed. */
  readonly versionKey?: () => Promise<Uint8Array | undefined>
  /** Store of results and measurements. */
  readonly store?: LazyStore
  /** The changes that this process shares with the other replicas. */
  readonly replicas?: SharedChanges
  /** Storage of long results of tools. */
  readonly spill?: SpilledOptions
  /** Measurements of this process. */
  readonly measurements?: Measurements
  /** The other mounts, once all of them are open. */
  readonly searchable?: Searchable
  /** Number of the mount, from 1: its name where its address must not be shown. */
  readonly place?: number
}

/** The mounts that a search reads. They are opened together with it, and exist once the catalog does. */
export interface Searchable {
  reader(address: string): MountReader | undefined
  /** Returns the options with which a mount is opened, if they depend on its source. */
  refined(address: string): Promise<object | undefined>
  /** The addresses of the mounts that `"over": "*"` searches. */
  readonly addresses: readonly string[]
}

/** A store that is opened once, when it is first needed. */
export interface LazyStore {
  open(): Promise<Store>
  /** Closes it, if it was opened. */
  close(): Promise<void>
}

export function lazyStore(options: StoreOptions, log: Log): LazyStore {
  let opened: Promise<Store> | undefined
  return {
    open: () => {
      opened ??= import('../store/index.ts').then(({ openStore }) => openStore({ ...options, log }))
      return opened
    },
    close: async () => {
      const open = await opened?.catch(() => undefined)
      await open?.close()
    },
  }
}

/** Returns a short text for the address of a mount, as a part of the name of a collection in the store. */
export function collectionName(address: string): string {
  const { text } = parseAddress(address)
  return Buffer.byteLength(text) <= 150 ? text : createHash('sha256').update(text).digest('hex')
}
