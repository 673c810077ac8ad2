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
  /** Values that are known to be secret: providers that redact take them out as well. */
  readonly scrubber?: Scrubber
  /** The key that versions of redacted contents are hashed with; replicas share it. By default one is made for each mount. */
  readonly key?: Uint8Array
  /** Finds that key, once it is needed. */
  readonly versionKey?: () => Promise<Uint8Array | undefined>
  /** Store of results and measurements. */
  readonly store?: LazyStore
  /** The changes that this process and the other replicas tell each other. */
  readonly replicas?: SharedChanges
  /** Long results of tools are kept there. */
  readonly spill?: SpilledOptions
  /** Measurements of this process. */
  readonly measurements?: Measurements
  /** The other mounts, once all of them are open. */
  readonly searchable?: Searchable
  /** The place of the mount among all, from 1: what it is called where its address is not to be told. */
  readonly place?: number
}

/** The mounts that a search reads: they are opened beside it, and there once the catalog is. */
export interface Searchable {
  reader(address: string): MountReader | undefined
  /** The options that a mount is opened with, where that takes a look at its source. */
  refined(address: string): Promise<object | undefined>
  /** The addresses of the mounts that `"over": "*"` searches. */
  readonly addresses: readonly string[]
}

/** A store that is opened when it is first needed, and once. */
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

/** The address of a mount as a part of the name of a collection in the store, which is short. */
export function collectionName(address: string): string {
  const { text } = parseAddress(address)
  return Buffer.byteLength(text) <= 150 ? text : createHash('sha256').update(text).digest('hex')
}
