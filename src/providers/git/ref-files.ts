import { createHash } from 'node:crypto'
import { unavailable } from '../../core/errors.ts'
import type { PathTest } from '../../core/glob.ts'
import { createSlices, type Slices, sortInSlices } from '../../core/kit/breath.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths } from '../../core/path.ts'
import { linked } from './anchors.ts'
import { entriesOf, type Folder, holdIn, LinkError, lookIn, openIn, withFolder } from './folder.ts'
import {
  compareRefs,
  createRefListWriter,
  type IndexRange,
  indexOfRef,
  isAtNothing,
  isRefName,
  isServable,
  maxNameBytes,
  maxRefs,
  oidAt,
  type RefList,
  rangeBelow,
  readPackedRefs,
  tooManyRefs,
} from './ref-list.ts'

/** Maximum size of a ref file, in bytes: it holds an id, or a name of at most 4096 bytes. */
const maxRefBytes = 4200n
/** Maximum depth of names below `refs/`. */
const maxDepth = 64
/** Maximum length of a chain of symbolic refs (`SYMREF_MAXDEPTH` of git). */
const maxSymbolic = 5
/** Age below which a file may change again without a new modification time, in milliseconds. */
const unsettledMs = 50

/** The value of a ref: an id, or the name of another ref. */
type RefValue = { readonly oid: string } | { readonly name: string }

interface Packed {
  readonly stamp: string
  readonly refs: RefList
}

/** A ref that has its own file. */
interface LooseRef {
  /** Name of the ref with a final `/`, by which the refs are sorted. */
  readonly key: string
  readonly value: RefValue
}

/**
 * Creates a reader of the refs of a git directory (gitrepository-layout(5)). It replaces git, which would follow symbolic links among them.
 *
 * The reader returns the refs at and below the given names, such as `refs/heads`, and the same list object as long as nothing has changed. It
 * throws `unavailable` for a symbolic link in place of `refs`, `refs/heads`, `refs/tags` or `packed-refs`, and for too many refs. Other symbolic
 * links are left out.
 */
export function createRefReader(idLength: number, serves: PathTest, heard?: (entries: number) => void) {
  const idBytes = idLength / 2
  const none = createRefListWriter(idBytes, { refs: 0, bytes: 0 }).finish()
  let packed: Packed = { stamp: '', refs: none }
  let last: { readonly key: string; readonly packed: Packed; readonly refs: RefList } | undefined
  const isId = (text: string) => text.length === idLength && /^[0-9a-f]+$/.test(text) && !/^0+$/.test(text)

  const readPacked = async (commonDir: Folder, slices: Slices): Promise<Packed> => {
    const stats = await lookIn(commonDir, 'packed-refs')
    if (stats === undefined) return packed.stamp === 'none' ? packed : { stamp: 'none', refs: none }
    if (!stats.isFile()) throw linked('packed-refs')
    const held = await holdIn(commonDir, 'packed-refs')
    if (held === undefined) throw linked('packed-refs')
    try {
      const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = held.stats
      const stamp = `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
      if (packed.stamp === stamp) return packed
      const refs = await readPackedRefs(held, { idLength, isId, serves }, slices)
      return { stamp: Date.now() - Number(ctimeMs) > unsettledMs ? stamp : `${stamp}:unsettled`, refs }
    } finally {
      held.close()
    }
  }

  /** Adds the refs of the files below a directory. */
  const readLoose = async (
    folder: Folder,
    prefix: string,
    wants: (name: string) => boolean,
    found: LooseRef[],
    slices: Slices,
    depth = 0,
  ): Promise<void> => {
    for (const entry of await entriesOf(folder)) {
      const name = `${prefix}/${entry.name}`
      if (slices.due()) await slices.rest()
      if (entry.isSymbolicLink() && required.has(name)) throw linked(name)
      if (!wants(name)) continue
      try {
        if (entry.isDirectory() && depth < maxDepth) {
          const inner = await openIn(folder, entry.name)
          if (inner === undefined) continue
          try {
            await readLoose(inner, name, wants, found, slices, depth + 1)
          } finally {
            inner.close()
          }
        } else if (entry.isFile()) {
          const value = await readRef(folder, entry.name, isId)
          if (value !== undefined) found.push({ key: `${name}/`, value })
          if (found.length > maxRefs) throw tooManyRefs()
        }
      } catch (error) {
        if (!(error instanceof LinkError)) throw error
        if (required.has(name)) throw linked(name)
      }
    }
  }

  /** Resolves loose refs, in their order; one that leads nowhere gets an id of zeros, and hides a packed one. */
  const resolve = async (loose: readonly LooseRef[], folder: Folder, slices: Slices): Promise<RefList> => {
    const lookUp = async (name: string): Promise<RefValue | undefined> =>
      looseValue(loose, `${name}/`) ?? (await readNamed(folder, name, isId)) ?? packedValue(packed, name)
    const bytes = loose.reduce((sum, { key }) => sum + 3 * key.length, 0)
    const writer = createRefListWriter(idBytes, { refs: loose.length, bytes })
    for (const { key, value } of loose) {
      let at: RefValue | undefined = value
      for (let step = 0; step < maxSymbolic && at !== undefined && 'name' in at; step++) at = await lookUp(at.name)
      const name = key.slice(0, -1)
      const oid = at !== undefined && 'oid' in at && isServable(name) ? at.oid : '0'.repeat(idLength)
      if (Buffer.byteLength(name) <= maxNameBytes) writer.add(name, oid, serves(name))
      if (slices.due()) await slices.rest()
    }
    return writer.finish()
  }

  return async (commonDir: Folder, patterns: readonly string[]): Promise<RefList> => {
    const slices = createSlices(heard)
    const isWanted = (name: string) => patterns.some((one) => name === one || name.startsWith(`${one}/`))
    const leads = (name: string) => isWanted(name) || patterns.some((one) => one.startsWith(`${name}/`))
    const found: LooseRef[] = []
    const folder = await openIn(commonDir, 'refs').catch((error: unknown) => {
      throw error instanceof LinkError ? linked('refs') : error
    })
    if (folder === undefined) throw unavailable('The repository is gone: it has no refs.')
    try {
      await readLoose(folder, 'refs', leads, found, slices)
      const loose = await sortInSlices(found, (a, b) => comparePaths(a.key, b.key), slices)
      // Packed refs after loose ones: git writes a ref to the packed file before it deletes its own file.
      packed = await readPacked(commonDir, slices)
      const key = await keyOf(patterns, loose, slices)
      if (last?.packed === packed && last.key === key) return last.refs
      const refs = await merge(packed.refs, await resolve(loose, folder, slices), patterns, slices)
      last = { key, packed, refs }
      return refs
    } finally {
      folder.close()
    }
  }
}

/** Merges both lists, restricted to the patterns. A loose ref hides a packed one. */
async function merge(packed: RefList, loose: RefList, patterns: readonly string[], slices: Slices): Promise<RefList> {
  const room = { refs: packed.length + loose.length, bytes: packed.names.length + loose.names.length }
  const writer = createRefListWriter(packed.idBytes, room)
  const [fromPacked, fromLoose] = [rangesOf(packed, patterns), rangesOf(loose, patterns)]
  let [i, j] = [fromPacked.next(), fromLoose.next()]
  for (let count = 0; i !== undefined || j !== undefined; count++) {
    if (count > maxRefs) throw tooManyRefs()
    const order = i === undefined ? 1 : j === undefined ? -1 : compareRefs(packed, i, loose, j)
    if (order < 0 && i !== undefined) writer.copy(packed, i)
    else if (j !== undefined && !isAtNothing(loose, j)) writer.copy(loose, j)
    if (order <= 0) i = fromPacked.next()
    if (order >= 0) j = fromLoose.next()
    if (slices.due()) await slices.rest()
  }
  return writer.finish()
}

/** Iterates over the indices of the refs that match the patterns, in order. */
function rangesOf(list: RefList, patterns: readonly string[]): { next(): number | undefined } {
  const ranges: IndexRange[] = patterns
    .map((pattern) => rangeBelow(list, `${pattern}/`))
    .sort((a, b) => a.start - b.start || a.end - b.end)
  let at = 0
  let range = 0
  return {
    next: () => {
      for (let one = ranges[range]; one !== undefined; one = ranges[++range]) {
        at = Math.max(at, one.start)
        if (at < one.end) return at++
      }
      return undefined
    },
  }
}

/** Returns a hash of the loose refs and the patterns. */
async function keyOf(patterns: readonly string[], loose: readonly LooseRef[], slices: Slices): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(patterns))
  for (const { key, value } of loose) {
    hash.update(JSON.stringify([key, value]))
    if (slices.due()) await slices.rest()
  }
  return hash.digest('base64url')
}

/** Directories in whose place a symbolic link is an error; other links are left out. */
const required = new Set(['refs/heads', 'refs/tags'])

/** Binary search among loose refs. */
function looseValue(loose: readonly LooseRef[], key: string): RefValue | undefined {
  const at = firstIndex(0, loose.length, (index) => comparePaths(loose[index]?.key ?? '', key) >= 0)
  return loose[at]?.key === key ? loose[at]?.value : undefined
}

function packedValue({ refs }: Packed, name: string): RefValue | undefined {
  const index = indexOfRef(refs, name)
  return index === -1 ? undefined : { oid: oidAt(refs, index) }
}

/** Reads the value of any ref, by its full name. */
async function readNamed(refs: Folder, name: string, isId: (text: string) => boolean): Promise<RefValue | undefined> {
  const [first, ...segments] = name.split('/')
  const last = segments.pop()
  if (first !== 'refs' || last === undefined || !isRefName(name) || segments.length > maxDepth) return undefined
  return withFolder(refs, segments, (folder) => readRef(folder, last, isId)).catch((error: unknown) => {
    if (error instanceof LinkError) return undefined
    throw error
  })
}

async function readRef(folder: Folder, name: string, isId: (text: string) => boolean): Promise<RefValue | undefined> {
  const held = await holdIn(folder, name)
  if (held === undefined) return undefined
  try {
    if (held.stats.size > maxRefBytes) return undefined
    const text = held.read().toString('utf8')
    const symbolic = /^ref:\s*(\S(?:.*\S)?)\s*$/s.exec(text)?.[1]
    if (symbolic !== undefined) return { name: symbolic }
    const oid = /^[0-9a-f]+(?=\s|$)/.exec(text)?.[0] ?? ''
    return isId(oid) ? { oid } : undefined
  } finally {
    held.close()
  }
}
