import type { CursorSeal } from './cursor.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Paging } from './paging.ts'

/** State that the parts of a catalog share. `mounts` is sorted by address. */
export interface CatalogState {
  readonly mounts: readonly Mounted[]
  readonly seal: CursorSeal
  readonly paging: Paging
  readonly log: Log
}
