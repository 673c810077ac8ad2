import type { Log } from '../core/log.ts'
import type { Store, StoreOptions } from '../store/index.ts'

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
