import { ResourceError } from '../../core/errors.ts'
import type { Corpus, DriveClient } from './client.ts'
import { folderType, isId } from './model.ts'
import type { What } from './options.ts'

/** Where a tree begins: a folder, and the path of what is in it: empty, or ending in `/`. */
export interface Anchor {
  readonly id: string
  readonly path: string
  readonly name?: string
  readonly corpus: Corpus
}

export interface Scope {
  readonly anchors: readonly Anchor[]
  /** Whether what was shared stands at the top. */
  readonly shared: boolean
  /** Whose changes have to be followed. */
  readonly corpora: readonly Corpus[]
}

/** Finds where what is served begins. Throws `unavailable` where it is not there. */
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
      // Drives that come and go are told of to whom they are shared with.
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

/** With more shared drives than this, they have to be chosen. */
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
