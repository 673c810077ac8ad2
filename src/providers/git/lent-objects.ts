import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import { delimiter, join } from 'node:path'
import { unavailable } from '../../core/errors.ts'
import { createSlices, type Slices } from '../../core/kit/breath.ts'
import { entriesOf, type Folder, type HeldFile, holdIn, LinkError, lookIn, openIn } from './folder.ts'
import { fault, linkedObjects } from './locate.ts'

/** The directories of loose objects: `00` to `ff`. */
const fans = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
/** Maximum size of a loose object that is copied, in bytes. A larger one is held open, as packs are. */
const maxCopiedBytes = 256 * 1024
/** Maximum number of loose objects: `git gc` packs them at 6,700. */
const maxLoose = 200_000
/** Maximum number of files held open: two of each pack, and large loose objects. */
const maxHeld = 4096
/** Age below which a directory may change again without a new modification time, in milliseconds. */
const unsettledMs = 50
/** Block size of a file system: the minimum that a small file takes, in bytes. */
const blockBytes = 4096
/** Maximum total size of the copies of loose objects, in bytes. */
const maxCopiesBytes = 1024 * 1024 * 1024

/** Known state of one directory of a store, which mirrors an object directory of the repository. */
interface DirectoryState {
  stamp: string
  /** The files of the directory by name, each with its held descriptor, or the size of its copy. */
  readonly files: Map<string, { readonly held?: HeldFile; readonly bytes: number }>
}

/** A directory of a store to synchronize. */
interface DirectoryCopy {
  readonly name: string
  /** Path of the directory below the store. */
  readonly key: string
  readonly wants: (names: readonly string[]) => readonly string[]
  readonly takes: 'copies' | 'holds'
}

interface Store {
  readonly path: string
  readonly directories: Map<string, DirectoryState>
}

/** Copies or links files of a repository into the provider's own folder, up to limits on both. */
function createLoans(folder: string) {
  /** Deleted files that running processes may still open. */
  const retired: HeldFile[] = []
  let copied = { count: 0, bytes: 0, held: 0 }

  /** Removes a file. If it is held open, `takeRetired` returns it later. */
  const drop = (path: string, known: DirectoryState, name: string): void => {
    const file = known.files.get(name)
    known.files.delete(name)
    fs.rmSync(join(path, name), { force: true })
    if (file?.held === undefined) {
      copied = { ...copied, count: copied.count - 1, bytes: copied.bytes - (file?.bytes ?? 0) }
      return
    }
    copied = { ...copied, held: copied.held - 1 }
    retired.push(file.held)
  }

  /** Links to a file that stays open. Above the limit, closes the file and throws `unavailable`. */
  const hold = (path: string, known: DirectoryState, name: string, held: HeldFile): void => {
    if (copied.held >= maxHeld) {
      held.close()
      throw fault(`has more than ${maxHeld} packs and large objects. Run git gc there.`)
    }
    copied = { ...copied, held: copied.held + 1 }
    known.files.set(name, { held, bytes: 0 })
    fs.symlinkSync(held.shared, join(path, name))
  }

  /** Copies a file atomically: the unfinished copy has another name. */
  const copy = (path: string, known: DirectoryState, name: string, held: HeldFile): void => {
    const bytes = Math.ceil(Number(held.stats.size) / blockBytes) * blockBytes
    if (copied.count >= maxLoose || copied.bytes + bytes > maxCopiesBytes)
      throw fault(
        `has more than ${maxLoose} objects that are not packed, or ${maxCopiesBytes} bytes. Run git gc there.`,
      )
    const temporary = join(folder, 'object.tmp')
    fs.writeFileSync(temporary, held.read())
    fs.renameSync(temporary, join(path, name))
    copied = { ...copied, count: copied.count + 1, bytes: copied.bytes + bytes }
    known.files.set(name, { bytes })
  }

  return {
    drop,
    hold,
    copy,
    /** Returns the held files that were dropped since the last call: the caller closes them. */
    takeRetired: (): readonly HeldFile[] => retired.splice(0),
    /** Sets all counts to zero. */
    reset: () => {
      copied = { count: 0, bytes: 0, held: 0 }
    },
  }
}

/**
 * The objects of a repository as git sees them, in the provider's own object directories. Packs and large objects are links to descriptors
 * that this process holds open, and small objects are copies. So git opens no path of the repository, and a symbolic link planted there has no
 * effect.
 */
export function createLentObjects(folder: string) {
  let stores = new Map<string, Store>()
  let made = 0
  const loans = createLoans(folder)

  /** Synchronizes the files of a directory that `wants` returns, in its order. Drops deleted or replaced files. */
  const syncDirectory = async (
    from: Folder,
    store: Store,
    { name, key, wants, takes }: DirectoryCopy,
    slices: Slices,
  ) => {
    const stats = await lookIn(from, name)
    if (stats?.isSymbolicLink() === true) throw new LinkError(name)
    const known = store.directories.get(key) ?? { stamp: '', files: new Map() }
    if (stats !== undefined && known.stamp === stampOf(stats)) return
    const path = join(store.path, key)
    const directory = stats?.isDirectory() === true ? await openIn(from, name) : undefined
    try {
      const entries = directory === undefined ? [] : await entriesOf(directory)
      if (entries.some((entry) => entry.isSymbolicLink())) throw new LinkError(name)
      const wanted = wants(entries.filter((entry) => entry.isFile()).map((entry) => entry.name))
      const here = new Set(wanted)
      if (directory !== undefined && known.files.size === 0) makeDirectory(path)
      store.directories.set(key, known)
      known.stamp = ''
      for (const file of wanted) {
        const old = known.files.get(file)
        if (slices.due()) await slices.rest()
        if (directory === undefined || (old !== undefined && takes === 'copies')) continue
        const held = await holdIn(directory, file)
        if (held === undefined || held.identity === old?.held?.identity) {
          held?.close()
          if (held === undefined) here.delete(file)
          continue
        }
        if (old !== undefined) loans.drop(path, known, file)
        if (takes === 'holds' || held.stats.size > maxCopiedBytes) loans.hold(path, known, file, held)
        else
          try {
            loans.copy(path, known, file, held)
          } finally {
            held.close()
          }
      }
      for (const file of [...known.files.keys()]) if (!here.has(file)) loans.drop(path, known, file)
      const isSettled = stats !== undefined && Date.now() - Number(stats.ctimeMs) > unsettledMs
      known.stamp = isSettled ? stampOf(stats) : ''
    } finally {
      directory?.close()
    }
  }

  const syncStore = async (from: Folder, store: Store): Promise<void> => {
    const slices = createSlices()
    const sync = (folder: Folder, wanted: DirectoryCopy) => syncDirectory(folder, store, wanted, slices)
    // Loose objects first: one that is packed meanwhile is in a pack by the time when packs are read.
    for (const fan of fans) await sync(from, { name: fan, key: fan, wants: looseIn, takes: 'copies' })
    await sync(from, { name: 'pack', key: 'pack', wants: packsIn, takes: 'holds' })
    await sync(from, { name: 'info', key: 'info', wants: graphsIn, takes: 'holds' })
    const info = await openIn(from, 'info')
    if (info === undefined) return
    try {
      await sync(info, { name: 'commit-graphs', key: 'info/commit-graphs', wants: graphsIn, takes: 'holds' })
    } finally {
      info.close()
    }
  }

  return {
    /**
     * Adds new files to the object directories, and removes deleted ones.
     *
     * @returns A function that releases the descriptors of deleted files, if any: call it once no process started earlier may still open them.
     * @throws ResourceError `unavailable` for symbolic links, and for more objects than the limit of copies.
     */
    sync: async (folders: readonly Folder[]): Promise<(() => void) | undefined> => {
      const next = new Map<string, Store>()
      try {
        for (const from of folders) {
          const store = stores.get(from.identity) ?? {
            path: join(folder, `objects-${made++}`),
            directories: new Map(),
          }
          next.set(from.identity, store)
          stores.set(from.identity, store)
          if (store.directories.size === 0) for (const name of ['pack', 'info']) makeDirectory(join(store.path, name))
          await syncStore(from, store)
        }
      } catch (error) {
        // A symbolic link among the objects becomes an error that tells the operator what to do.
        throw error instanceof LinkError ? linkedObjects() : error
      }
      const left = [...stores].filter(([identity]) => !next.has(identity)).map(([, store]) => store)
      stores = next
      const gone = loans.takeRetired()
      if (gone.length === 0 && left.length === 0) return undefined
      return () => {
        for (const file of gone) file.close()
        closeAll(left)
        for (const { path } of left) fs.rmSync(path, { recursive: true, force: true })
      }
    },
    /** The directories, in the format of `GIT_ALTERNATE_OBJECT_DIRECTORIES`. */
    directories: (): string =>
      [...stores.values()].map(({ path }) => (path.includes(delimiter) ? JSON.stringify(path) : path)).join(delimiter),
    /** Whether the directories still exist. The system may have cleared its temporary folder. */
    isWhole: (): boolean => [...stores.values()].every(({ path }) => fs.existsSync(join(path, 'pack'))),
    /** Forgets everything: the next `sync` starts from scratch. */
    reset: (): void => {
      closeAll(stores.values())
      for (const file of loans.takeRetired()) file.close()
      for (const { path } of stores.values()) fs.rmSync(path, { recursive: true, force: true })
      stores = new Map()
      loans.reset()
    },
  }
}

function closeAll(stores: Iterable<Store>): void {
  const held = [...stores].flatMap(({ directories }) =>
    [...directories.values()].flatMap(({ files }) => [...files.values()].flatMap((file) => file.held ?? [])),
  )
  for (const file of held) file.close()
}

function makeDirectory(path: string): void {
  try {
    fs.mkdirSync(path, { recursive: true })
  } catch {
    throw unavailable('The temporary folder of the git provider is gone.')
  }
}

function stampOf({ dev, ino, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${mtimeNs}:${ctimeNs}`
}

/** Returns packs with their indexes. An index follows its pack, because git ignores an index without a pack. */
function packsIn(names: readonly string[]): readonly string[] {
  const all = new Set(names)
  return names.flatMap((name) => {
    const pack = `${name.slice(0, -'.idx'.length)}.pack`
    return name.endsWith('.idx') && all.has(pack) ? [pack, name] : []
  })
}

function looseIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => /^(?:[0-9a-f]{38}|[0-9a-f]{62})$/.test(name))
}

/** Returns the files of the commit graph, which spare git from reading each commit: gitformat-commit-graph(5). */
function graphsIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => /^(?:commit-graph|commit-graph-chain|graph-[0-9a-f]+\.graph)$/.test(name))
}
