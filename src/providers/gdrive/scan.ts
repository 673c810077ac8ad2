import { ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Corpus, DriveClient } from './client.ts'
import {
  createReaderLookup,
  type DriveFile,
  folderType,
  isDriveId,
  parseDriveFile,
  type RawFile,
  type ReadPermissions,
  requestedFields,
  shortcutType,
} from './model.ts'
import type { ServedPart, ShortcutPolicy } from './options.ts'

/** Number of folders listed with one request, and number of parallel requests. */
const [perQuery, parallel] = [40, 4]
/** Maximum number of shortcut targets that are looked up. */
const maxTargets = 5000

export type DriveFiles = Map<string, DriveFile>
export type DriveScanner = ReturnType<typeof createDriveScanner>

interface Folder {
  readonly id: string
  readonly corpus: Corpus
}

/** @param withReaders Whether to find out who may read each file. */
export function createDriveScanner(
  client: DriveClient,
  shortcuts: ShortcutPolicy,
  withReaders: boolean,
  maxFiles: number,
  log: Log,
) {
  const fields = requestedFields(withReaders)
  const readersOf = createReaderLookup()

  const lookUp =
    (signal: AbortSignal): ReadPermissions =>
    (id) =>
      client.permissions(id, 'id,type,emailAddress,domain,allowFileDiscovery,deleted,expirationTime,view', signal)

  const convert = async (raws: readonly RawFile[], signal: AbortSignal): Promise<readonly DriveFile[]> => {
    const readers = withReaders ? await readersOf(raws, lookUp(signal)) : []
    return raws.flatMap((raw, index) => parseDriveFile(raw, readers[index]) ?? [])
  }

  const add = (files: DriveFiles, file: DriveFile): void => {
    files.set(file.id, file)
    if (files.size > maxFiles)
      throw unavailable(
        `There are more than ${maxFiles} files. Mount a folder of them, or raise "maxFiles" (each takes about 800 bytes).`,
      )
  }

  /** Returns the files that match a query; stops after the page that exceeds `maxFiles`. */
  const find = async (q: string, corpus: Corpus, signal: AbortSignal): Promise<readonly DriveFile[]> => {
    const files: DriveFile[] = []
    for (let token: string | undefined; ; ) {
      const { items, next } = await client.files(q, corpus, fields.listed, token, signal)
      files.push(...(await convert(items, signal)))
      if (files.length > maxFiles || next === undefined) return files
      token = next
    }
  }

  const below = async (files: DriveFiles, folders: readonly Folder[], signal: AbortSignal): Promise<void> => {
    const ids = new Set(folders.map(({ id }) => id))
    for (let level = folders; level.length > 0; ) {
      const next: Folder[] = []
      await inParallel(queriesFor(level), async ({ q, corpus }) => {
        for (const file of await find(q, corpus, signal)) {
          add(files, file)
          if (file.type !== folderType || ids.has(file.id)) continue
          ids.add(file.id)
          next.push({ id: file.id, corpus })
        }
      })
      level = next
    }
  }

  /**
   * With the policy `anywhere`, adds missing targets of shortcuts to `files`, and the contents of target folders. At most {@link
   * maxTargets} targets are looked up.
   */
  const targets = async (files: DriveFiles, signal: AbortSignal): Promise<void> => {
    if (shortcuts !== 'anywhere') return
    const ids = new Set<string>()
    for (;;) {
      const missing = new Set<string>()
      for (const { type, target, trashed } of files.values())
        if (type === shortcutType && !trashed && target !== undefined && !files.has(target) && !ids.has(target))
          missing.add(target)
      const remaining = maxTargets - ids.size
      if (missing.size > 0 && remaining === 0)
        log('warn', 'too many shortcuts to files outside; further ones are not followed', { limit: maxTargets })
      if (missing.size === 0 || remaining === 0) return
      const folders: Folder[] = []
      await inParallel([...missing].slice(0, remaining), async (id) => {
        ids.add(id)
        // A target is skipped if it is missing, or if the credentials cannot see it.
        const raw = await client.file(id, fields.told, signal).catch(deadEnd)
        const [file] = raw === undefined ? [] : await convert([raw], signal)
        if (file === undefined || file.trashed) return
        add(files, { ...file, top: false })
        const corpus = typeof raw?.driveId === 'string' ? { driveId: raw.driveId } : {}
        if (file.type === folderType) folders.push({ id, corpus })
      })
      await below(files, folders, signal)
    }
  }

  return {
    fields,
    convert,
    below,
    targets,
    all: async ({ anchors, shared }: DriveRoots, signal: AbortSignal): Promise<DriveFiles> => {
      const files: DriveFiles = new Map()
      const folders: Folder[] = anchors.map(({ id, corpus }) => ({ id, corpus }))
      if (shared)
        for (const file of await find('sharedWithMe = true and trashed = false', {}, signal)) {
          add(files, file)
          if (file.type === folderType) folders.push({ id: file.id, corpus: {} })
        }
      await below(files, folders, signal)
      await targets(files, signal)
      return files
    },
  }
}

function deadEnd(error: unknown): undefined {
  if (error instanceof ResourceError && error.kind === 'not-found') return undefined
  throw error
}

function queriesFor(folders: readonly Folder[]) {
  const drives = new Set(folders.map(({ corpus }) => corpus.driveId))
  return [...drives].flatMap((driveId) => {
    const group = folders.filter(({ corpus }) => corpus.driveId === driveId)
    const corpus: Corpus = defined({ driveId })
    const queries: { readonly q: string; readonly corpus: Corpus }[] = []
    for (let at = 0; at < group.length; at += perQuery) {
      const parents = group.slice(at, at + perQuery).map(({ id }) => `${quoteValue(id)} in parents`)
      queries.push({ q: `(${parents.join(' or ')}) and trashed = false`, corpus })
    }
    return queries
  })
}

export function quoteValue(value: string): string {
  return `'${value.replace(/[\\']/g, '\\$&')}'`
}

/** Processes all items with bounded parallelism. After an error no further item is started. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  try {
    await Promise.all(Array.from({ length: parallel }, worker))
  } finally {
    left.length = 0
  }
}

interface Anchor {
  readonly id: string
  /** Path prefix of the contents: empty, or ending in `/`. */
  readonly path: string
  readonly name?: string
  readonly corpus: Corpus
}

export interface DriveRoots {
  readonly anchors: readonly Anchor[]
  readonly shared: boolean
  readonly corpora: readonly Corpus[]
}

/** Finds the roots of the served part. Throws `unavailable` when one is missing. */
export async function findDriveRoots(client: DriveClient, what: ServedPart, signal: AbortSignal): Promise<DriveRoots> {
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
        throw unavailable(
          'The id in "folder" does not belong to a folder, or the folder is in the bin. Correct the id, or restore the folder.',
        )
      const corpus: Corpus = typeof driveId === 'string' ? { driveId } : {}
      return { anchors: [{ id: known(id), path: '', corpus }], shared: false, corpora: [corpus] }
    }
    case 'drives': {
      const drives = what.ids === undefined ? await allDrives(client, signal) : await drivesOf(client, what.ids, signal)
      const anchors = drives.map(({ id, name }) => ({ id, path: `${id}/`, name, corpus: { driveId: id } }))
      // The user's own corpus reports shared drives that are added or removed.
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

const maxDrives = 1000

async function allDrives(client: DriveClient, signal: AbortSignal): Promise<readonly FoundDrive[]> {
  const drives: FoundDrive[] = []
  for (let token: string | undefined; ; ) {
    const { items, next } = await client.drives(token, signal)
    for (const { id, name } of items) drives.push({ id: known(id), name: name ?? '' })
    if (next === undefined) return drives
    if (drives.length >= maxDrives)
      throw unavailable(`There are more than ${maxDrives} shared drives. Name some of them in "drives".`)
    token = next
  }
}

function drivesOf(client: DriveClient, ids: readonly string[], signal: AbortSignal): Promise<readonly FoundDrive[]> {
  return Promise.all(
    ids.map(async (driveId) => {
      const { id, name } = await client.drive(driveId, signal)
      return { id: known(id), name: name ?? '' }
    }),
  )
}

function known(id: string | null | undefined): string {
  if (typeof id === 'string' && isDriveId(id)) return id
  throw unavailable('Google answered with a file or a drive without a valid id. Try again later.')
}
