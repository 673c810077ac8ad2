import type { Slices } from './slices.ts'

/**
 * A list of refs in typed arrays outside the JavaScript heap: a million refs are four buffers instead of millions of objects for the garbage
 * collector. Sorted by the bytes of `name/`, so that the refs below a directory of names are one range.
 */
export interface RefList {
  readonly length: number
  /** The concatenated names, each with a final `/`. */
  readonly names: Buffer
  /** The offset of each name in `names`, and finally the length of `names`. */
  readonly starts: Uint32Array
  /** The ids, `idBytes` bytes each. */
  readonly ids: Buffer
  readonly idBytes: number
  /** For each ref, whether it is served: 1 or 0. */
  readonly served: Uint8Array
}

/** Range of indices from `start` up to but not including `end`. */
export interface Range {
  readonly start: number
  readonly end: number
}

export function nameAt({ names, starts }: RefList, index: number): string {
  return names.toString('utf8', starts[index], (starts[index + 1] ?? 0) - 1)
}

/** Returns the id of a ref in hexadecimal digits. */
export function oidAt({ ids, idBytes }: RefList, index: number): string {
  return ids.toString('hex', index * idBytes, (index + 1) * idBytes)
}

export function refAt(list: RefList, index: number): Ref {
  return { name: nameAt(list, index), oid: oidAt(list, index) }
}

/** Iterates over the refs. */
export async function* refsIn(list: RefList, slices: Slices): AsyncGenerator<Ref> {
  for (let i = 0; i < list.length; i++) {
    yield refAt(list, i)
    if (slices.due()) await slices.rest()
  }
}

/** Returns the index of the ref with a name; -1 when there is none. */
export function indexOfRef(list: RefList, name: string): number {
  const { start, end } = rangeBelow(list, `${name}/`)
  return start < end && (list.starts[start + 1] ?? 0) - (list.starts[start] ?? 0) === Buffer.byteLength(name) + 1
    ? start
    : -1
}

/** Binary search for the refs whose `name/` begins with a prefix, within a range of the list. */
export function rangeBelow(list: RefList, prefix: string, within: Range = { start: 0, end: list.length }): Range {
  const key = Buffer.from(prefix)
  const firstAfter = (order: number, low: number, high: number): number => {
    let [from, to] = [low, high]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (comparePrefix(list, middle, key) < order) from = middle + 1
      else to = middle
    }
    return from
  }
  const start = firstAfter(0, within.start, within.end)
  return { start, end: firstAfter(1, start, within.end) }
}

/** Returns 0 when `name/` begins with the key; negative when it sorts before all names that do, positive when it sorts after them. */
function comparePrefix({ names, starts }: RefList, index: number, key: Buffer): number {
  const start = starts[index] ?? 0
  const end = Math.min(starts[index + 1] ?? 0, start + key.length)
  const order = names.compare(key, 0, end - start, start, end)
  return order === 0 && end - start < key.length ? -1 : order
}

/** Compares the names of two refs by their bytes, each with a final `/`. */
export function compareRefs(a: RefList, i: number, b: RefList, j: number): number {
  return compareBytes(a.names, a.starts[i] ?? 0, a.starts[i + 1] ?? 0, b.names, b.starts[j] ?? 0, b.starts[j + 1] ?? 0)
}

/** A loop: for short names it is faster than `Buffer.compare`, which checks its arguments. */
function compareBytes(a: Buffer, from: number, to: number, b: Buffer, start: number, end: number): number {
  const length = Math.min(to - from, end - start)
  for (let k = 0; k < length; k++) {
    const difference = (a[from + k] as number) - (b[start + k] as number)
    if (difference !== 0) return difference
  }
  return to - from - (end - start)
}

export function isSameId(a: RefList, i: number, b: RefList, j: number): boolean {
  const [m, n] = [i * a.idBytes, j * b.idBytes]
  return a.idBytes === b.idBytes && compareBytes(a.ids, m, m + a.idBytes, b.ids, n, n + b.idBytes) === 0
}

/** Whether a ref has an id of zeros: it leads nowhere. */
export function isAtNothing({ ids, idBytes }: RefList, index: number): boolean {
  for (let k = index * idBytes; k < (index + 1) * idBytes; k++) if (ids[k] !== 0) return false
  return true
}

/** Whether a ref of the list has the object id. Compares the ids in time slices. */
export async function holdsId({ ids, idBytes, length }: RefList, oid: string, slices: Slices): Promise<boolean> {
  const id = Buffer.from(oid, 'hex')
  if (id.length !== idBytes) return false
  for (let i = 0; i < length; i++) {
    let k = 0
    while (k < idBytes && ids[i * idBytes + k] === id[k]) k++
    if (k === idBytes) return true
    if (slices.due()) await slices.rest()
  }
  return false
}

export interface RefListWriter {
  add(name: string, oid: string, served: boolean): void
  /** Adds a ref of another list. */
  copy(list: RefList, index: number): void
  /** Returns the list written so far. The writer must not be used afterwards. */
  finish(): RefList
}

/** @param room Maximum number of refs, and of bytes of their names with a final `/` each. */
export function createRefListWriter(
  idBytes: number,
  room: { readonly refs: number; readonly bytes: number },
): RefListWriter {
  // Pages of memory that are never written are not allocated.
  const names = Buffer.allocUnsafeSlow(room.bytes)
  const starts = new Uint32Array(room.refs + 1)
  const ids = Buffer.allocUnsafeSlow(room.refs * idBytes)
  const served = new Uint8Array(room.refs)
  let [length, at] = [0, 0]
  const next = (isServed: number) => {
    served[length] = isServed
    length++
    starts[length] = at
  }
  return {
    add: (name, oid, isServed) => {
      ids.write(oid, length * idBytes, 'hex')
      at += names.write(name, at, 'utf8')
      names[at++] = 0x2f
      next(isServed ? 1 : 0)
    },
    copy: (list, index) => {
      list.ids.copy(ids, length * idBytes, index * idBytes, (index + 1) * idBytes)
      at += list.names.copy(names, at, list.starts[index], list.starts[index + 1])
      next(list.served[index] ?? 0)
    },
    finish: () => ({
      length,
      names: names.subarray(0, at),
      starts: starts.subarray(0, length + 1),
      ids: ids.subarray(0, length * idBytes),
      idBytes,
      served: served.subarray(0, length),
    }),
  }
}

/** A ref that is served, with the id of its object: a commit, or a tag that leads to one. */
export interface Ref {
  /** Its full name: `refs/heads/main`. */
  readonly name: string
  readonly oid: string
}
