import { ResourceError } from '../../core/errors.ts'
import type { Corpus, DriveClient } from './client.ts'
import { folderType, isId } from './model.ts'
import type { What } from './options.ts'

/** Root of a tree: a folder, and the path prefix of its contents: empty, or ending in `/`. */
interface Anchor {
  readonly id: string
  readonly path: string
  readonly name?: string
  readonly corpus: Corpus
}

export interface Scope {
  readonly anchors: readonly Anchor[]
  /** Whether shared files are at the top level. */
  readonly shared: boolean
  /** The corpora whose changes are followed. */
  readonly corpora: readonly Corpus[]
}

/** Finds the roots of the served part. Throws `unavailable` when one is missing. */
export async function findScope(client: DriveClient, what: What, signal: AbortSignal): Promise<Scope> {
  switch (what.kind) {
    case 'my-drive': {
      const { id } = await client.file('root', 'id', signal, 'drive')
      return { anchors: [{ id: known(id), path: '', corpus: {} }], shared: false, corpora: [{}] }
    }
    case 'folder': {
      const { id, mimeType, trashed, driveId } = await client.file(
        what.id,
        'id,mimeType,trashed,driveId',
        signal,
        'drive',
      )
      if (mimeType !== folderType || trashed === true)
        throw new ResourceError('unavailable', 'What "folder" names is no folder, or in the bin. Correct it.')
      const corpus: Corpus = typeof driveId === 'string' ? { driveId } : {}
      return { anchors: [{ id: known(id), path: '', corpus }], shared: false, corpora: [corpus] }
    }
    case 'drives': {
      const found = what.ids === undefined ? await allDrives(client, signal) : await drivesOf(client, what.ids, signal)
      const anchors = found.map(({ id, name }) => ({ id, path: `${id}/`, name, corpus: { driveId: id } }))
      // The user's own corpus reports shared drives that come and go.
      return { anchors, shared: false, corpora: [{}, ...anchors.map(({ corpus }) => corpus)] }
    }
    case 'shared':
      return { anchors: [], shared: true, corpora: [{}] }
  }
}

interface FoundDrive {
  readonly id: string
  readonly name: string
}

/** Maximum number of shared drives; above it, the operator must choose some. */
const maxDrives = 1000

async function allDrives(client: DriveClient, signal: AbortSignal): Promise<readonly FoundDrive[]> {
  const found: FoundDrive[] = []
  for (let token: string | undefined; ; ) {
    const { items, next } = await client.drives(token, signal)
    for (const { id, name } of items) found.push({ id: known(id), name: name ?? '' })
    if (next === undefined) return found
    if (found.length >= maxDrives)
      throw new ResourceError('unavailable', `There are more than ${maxDrives} shared drives. Name some in "drives".`)
    token = next
  }
}

function drivesOf(client: DriveClient, ids: readonly string[], signal: AbortSignal): Promise<readonly FoundDrive[]> {
  return Promise.all(
    ids.map(async (wanted) => {
      const { id, name } = await client.drive(wanted, signal)
      return { id: known(id), name: name ?? '' }
    }),
  )
}

function known(id: string | null | undefined): string {
  if (typeof id === 'string' && isId(id)) return id
  throw new ResourceError('unavailable', 'Google answered something that has no id.')
}
