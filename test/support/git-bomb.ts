import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import type { GitRepository } from './git.ts'

// Builds pack files by hand, see gitformat-pack(5). Ids of objects that are too large to hash are invented.

/** Returns the type and size of an object in the format of a pack. */
function headerOf(type: number, size: number): Buffer {
  const bytes: number[] = []
  let rest = Math.floor(size / 16)
  let byte = type * 16 + (size % 16)
  for (; rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte + 128)
    byte = rest % 128
  }
  return Buffer.from([...bytes, byte])
}

/** Returns the distance to the base of a delta in the format of a pack. */
function offsetOf(distance: number): Buffer {
  const bytes = [distance % 128]
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest--
    bytes.unshift(128 + (rest % 128))
  }
  return Buffer.from(bytes)
}

function sizeOf(size: number): Buffer {
  const bytes: number[] = []
  for (let rest = size; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push(128 + (rest % 128))
  }
}

type Copy = readonly [at: number, length: number]
const maxCopy = 0xffffff

function copyOf([at, length]: Copy): Buffer {
  const little = (value: number, count: number) =>
    Array.from({ length: count }, (_, i) => Math.floor(value / 256 ** i) % 256)
  return Buffer.from([0xff, ...little(at, 4), ...little(length, 3)])
}

/** Returns a delta that copies parts of its base. */
function deltaOf(baseSize: number, copies: readonly Copy[]): Buffer {
  const size = copies.reduce((sum, [, length]) => sum + length, 0)
  return Buffer.concat([sizeOf(baseSize), sizeOf(size), ...copies.map(copyOf)])
}

/** Copies the whole base twice. */
function twice(size: number): readonly Copy[] {
  const once: Copy[] = []
  for (let at = 0; at < size; at += maxCopy) once.push([at, Math.min(maxCopy, size - at)])
  return [...once, ...once]
}

/**
 * Adds a pack to a repository in which a blob of 1,000 bytes is a delta of one of `2 ** doublings` MiB, which is a delta of one
 * of half that size, and so on.
 * @returns The id of the small blob, and the length of the pack.
 */
export function packDeltaBomb(
  repository: GitRepository,
  doublings: number,
): { readonly oid: string; readonly bytes: number } {
  const objects: { readonly oid: string; readonly at: number; readonly data: Buffer }[] = []
  let end = 12
  const put = (oid: string, type: number, content: Buffer, base?: number): number => {
    const at = end
    const distance = base === undefined ? [] : [offsetOf(at - base)]
    const data = Buffer.concat([headerOf(type, content.length), ...distance, deflateSync(content)])
    objects.push({ oid, at, data })
    end += data.length
    return at
  }
  const idOf = (number: number) => number.toString(16).padStart(40, '0')
  let size = 1024 * 1024
  let base = put(idOf(1), 3, Buffer.alloc(size, 'a'))
  for (let i = 0; i < doublings; i++) {
    base = put(idOf(i + 2), 6, deltaOf(size, twice(size)), base)
    size *= 2
  }
  const oid = 'ab'.repeat(20)
  put(oid, 6, deltaOf(size, [[0, 1000]]), base)

  const number = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const body = Buffer.concat([
    Buffer.from('PACK'),
    number(2),
    number(objects.length),
    ...objects.map(({ data }) => data),
  ])
  const hashOf = (bytes: Buffer) => createHash('sha1').update(bytes).digest()
  const sorted = [...objects].sort((a, b) => (a.oid < b.oid ? -1 : 1))
  const fan = Array.from({ length: 256 }, (_, first) =>
    number(sorted.filter((one) => Number.parseInt(one.oid.slice(0, 2), 16) <= first).length),
  )
  const index = Buffer.concat([
    Buffer.from([0xff, 0x74, 0x4f, 0x63]),
    number(2),
    ...fan,
    ...sorted.map((one) => Buffer.from(one.oid, 'hex')),
    // Reading does not verify the checksums in an index of a pack.
    ...sorted.map(() => number(0)),
    ...sorted.map(({ at }) => number(at)),
    hashOf(body),
  ])
  const path = join(repository.gitDir, 'objects/pack', `pack-${hashOf(body).toString('hex')}`)
  writeFileSync(`${path}.pack`, Buffer.concat([body, hashOf(body)]))
  writeFileSync(`${path}.idx`, Buffer.concat([index, hashOf(index)]))
  return { oid, bytes: body.length + 20 }
}
