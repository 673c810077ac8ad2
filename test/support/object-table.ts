import { createHash, randomBytes } from 'node:crypto'
import { comparePaths } from '../../src/core/path.ts'

/** An object in a stand-in store. */
export interface StoredObject {
  readonly bytes: Buffer
  readonly etag: string
  readonly generation: number
  readonly versionId: string
  readonly modified: number
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  readonly storageClass: string | undefined
  readonly metadata: Readonly<Record<string, string>>
}

export type PutOptions = Partial<Omit<StoredObject, 'bytes' | 'generation' | 'versionId'>>

/** Objects by key, in byte order of their keys, with all their versions. */
export function createObjectTable() {
  const objects = new Map<string, StoredObject>()
  const versions = new Map<string, StoredObject>()
  let order: string[] | undefined
  let generation = 1_700_000_000_000_000

  const keys = () => {
    order ??= [...objects.keys()].sort(comparePaths)
    return order
  }

  return {
    keys,
    get: (key: string) => objects.get(key),
    version: (key: string, versionId: string) => versions.get(`${versionId}/${key}`),
    put: (key: string, body: string | Uint8Array, options: PutOptions = {}): StoredObject => {
      const bytes = Buffer.from(body)
      const object: StoredObject = {
        etag: createHash('md5').update(bytes).digest('hex'),
        modified: Date.now(),
        contentType: undefined,
        contentEncoding: undefined,
        storageClass: undefined,
        metadata: {},
        ...options,
        bytes,
        generation: generation++,
        versionId: randomBytes(16).toString('base64url'),
      }
      if (!objects.has(key)) order = undefined
      objects.set(key, object)
      versions.set(`${object.versionId}/${key}`, object)
      return object
    },
    delete: (key: string) => {
      if (objects.delete(key)) order = undefined
    },
    /** Returns the index of the first key after a key, or at it if `inclusive`. */
    seek: (key: string, inclusive: boolean): number => {
      const all = keys()
      let [low, high] = [0, all.length]
      while (low < high) {
        const middle = (low + high) >> 1
        const compared = comparePaths(all[middle] ?? '', key)
        if (compared < 0 || (compared === 0 && !inclusive)) low = middle + 1
        else high = middle
      }
      return low
    },
  }
}

export type ObjectTable = ReturnType<typeof createObjectTable>

/** Returns one page of a listing: keys and, with a delimiter, common prefixes. */
export function pageOf(
  table: ObjectTable,
  query: { readonly prefix: string; readonly from: number; readonly delimiter: string; readonly limit: number },
): { readonly keys: readonly string[]; readonly prefixes: readonly string[]; readonly next: number | undefined } {
  const { prefix, delimiter, limit } = query
  const all = table.keys()
  const keys: string[] = []
  const prefixes: string[] = []
  let at = Math.max(query.from, table.seek(prefix, true))
  for (; at < all.length; ) {
    const key = all[at] ?? ''
    if (!key.startsWith(prefix)) break
    if (keys.length + prefixes.length >= limit) return { keys, prefixes, next: at }
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    if (end === -1) {
      keys.push(key)
      at++
    } else {
      const common = key.slice(0, end + delimiter.length)
      prefixes.push(common)
      at = table.seek(`${common}\u{10ffff}\u{10ffff}\u{10ffff}`, false)
    }
  }
  return { keys, prefixes, next: undefined }
}
