import {
  idleNote,
  type SearchStatus,
  type SearchStatusMount,
  searchStatusMimeType,
  searchStatusPath,
} from '../../core/found.ts'
import { defined } from '../../core/kit/defined.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import type { FeedStatus, MountProgress } from '../../search/feed-status.ts'

/** How far an index is, for one who may not see everything: numbers only of the mounts that it sees as a whole. */
export function statusFor(
  principal: Principal,
  mounts: ReadonlyMap<string, MountReader>,
  status: FeedStatus | undefined,
): SearchStatus {
  const progress = new Map(status?.mounts.map((mount) => [mount.address, mount]))
  return {
    indexing: status === undefined ? 'stopped' : 'running',
    mounts: [...mounts.values()].flatMap((mount) => {
      const reach = mount.reach(principal)
      return reach === 'none' ? [] : [mountStatus(mount, progress.get(mount.address), reach === 'all')]
    }),
  }
}

function mountStatus(
  { address, title }: MountReader,
  known: MountProgress | undefined,
  whole: boolean,
): SearchStatusMount {
  const named = { address, ...defined({ title }) }
  if (known === undefined) return { ...named, state: 'waiting' }
  const { state, since, looked, of, indexed, changes, degraded, partial, firstPages } = known
  return {
    ...named,
    state,
    ...(whole
      ? {
          since: new Date(since).toISOString(),
          looked,
          ...defined({ of }),
          indexed,
          ...defined({ partial, firstPages }),
        }
      : {}),
    changes,
    ...defined({ degraded }),
  }
}

/** Why there may be more to find, as far as it is of the mounts that somebody sees. */
export function notesOf({ indexing, mounts }: SearchStatus, asked: readonly string[] | undefined): readonly string[] {
  const notes = mounts.flatMap((mount) => {
    const { address, state } = mount
    if (asked !== undefined && !asked.includes(address)) return []
    if (state === 'unavailable') return [`${address} does not answer just now: what is found there may be old.`]
    const cut = limitsOf(mount)
    return state === 'current' ? cut : [...cut, `${address} is still being indexed: there may be more to find.`]
  })
  if (indexing === 'running') return notes
  const cut = mounts.flatMap((mount) => (asked?.includes(mount.address) === false ? [] : limitsOf(mount)))
  return mounts.length === 0 ? [] : [...cut, idleNote]
}

/** Sentences about tables that are searched in part. */
function limitsOf({ address, partial, firstPages }: SearchStatusMount): readonly string[] {
  const tables = (count: number) => (count === 1 ? 'one table' : `${count.toLocaleString('en')} tables`)
  const notes: string[] = []
  if (partial !== undefined) {
    const { entries, limit } = partial
    notes.push(`Of ${tables(entries)} of ${address}, only the first ${limit.toLocaleString('en')} rows are searched.`)
  }
  if (firstPages !== undefined)
    notes.push(`Of ${tables(firstPages)} of ${address} without a key, only the first page of rows is searched.`)
  return notes
}

export const statusEntry = {
  path: searchStatusPath,
  title: 'Status of the search',
  description: 'What is searched, and how far the index is.',
  mimeType: searchStatusMimeType,
}
