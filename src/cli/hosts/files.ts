import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { type FileHandle, lstat, open, readFile, readlink, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { errorCodeOf } from '../../core/errors.ts'
import { syncFolder } from '../../core/kit/local-disk.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { commandFailure } from '../terminal/exit.ts'

/** A settings file that may be missing: `bytes` and `text` are then undefined. */
export interface HostFile {
  readonly file: string
  /** The target of the path, after symbolic links. */
  readonly target: string
  readonly bytes: Buffer | undefined
  readonly text: string | undefined
}

const mark = '\ufeff'
const maxBytes = 64 * 1024 * 1024

/** @throws CommandError for a file that cannot be read, or is not text in UTF-8 */
export async function readHostFile(file: string): Promise<HostFile> {
  const target = await resolveSymlink(file)
  const bytes = await readRegularFile(target)
  if (bytes === undefined) return { file, target, bytes, text: undefined }
  try {
    return { file, target, bytes, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    throw commandFailure(`${file} is not text in UTF-8, so it was not changed. Convert it first.`)
  }
}

async function resolveSymlink(file: string): Promise<string> {
  let target = resolve(file)
  for (let links = 0; links < 40; links++) {
    const stats = await lstat(target).catch(() => undefined)
    if (stats?.isSymbolicLink() !== true) return target
    target = resolve(dirname(target), await readlink(target))
  }
  throw commandFailure(`${file} leads through 40 symbolic links or more, probably in a circle. Remove the link.`)
}

async function readRegularFile(file: string): Promise<Buffer | undefined> {
  try {
    const stats = await stat(file)
    if (!stats.isFile()) throw commandFailure(`${file} is not a regular file. Remove it first.`)
    if (stats.size > maxBytes)
      throw commandFailure(
        `${file} is larger than a settings file may be (${maxBytes / 2 ** 20} MiB), so it was not changed.`,
      )
    return await readFile(file)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined
    throw failedTo('read', file, error)
  }
}

export function backupPath({ target }: Pick<HostFile, 'target'>): string {
  return `${target}.hikidashi.bak`
}

/**
 * Replaces the text of a file atomically. The old text is kept in {@link backupPath}; the byte order mark, the mode and
 * the owner stay.
 * @throws CommandError if the file was changed since it was read, or cannot be written
 */
export async function writeHostFile(before: HostFile, text: string): Promise<void> {
  const { file, target, bytes } = before
  const fresh = Buffer.from((hasMark(bytes) ? mark : '') + text)
  try {
    await refuseChanged(before)
    if (bytes === undefined) makeFolder(dirname(target))
    const owner = bytes === undefined ? undefined : await stat(target)
    const renames: [from: string, to: string][] = []
    try {
      if (bytes !== undefined) renames.push([await writeBeside(backupPath(before), bytes, owner), backupPath(before)])
      renames.push([await writeBeside(target, fresh, owner), target])
      await refuseChanged(before)
      for (const [from, to] of renames) await rename(from, to)
    } catch (error) {
      for (const [from] of renames) await unlink(from).catch(() => {})
      throw error
    }
    await syncFolder(dirname(target))
  } catch (error) {
    throw failedTo('written', file, error)
  }
}

const hasMark = (bytes: Buffer | undefined) => bytes?.subarray(0, 3).equals(Buffer.from(mark)) === true

async function refuseChanged({ file, target, bytes }: HostFile): Promise<void> {
  const isSame = (await resolveSymlink(file)) === target && isEqual(await readRegularFile(target), bytes)
  if (!isSame)
    throw commandFailure(`Another program has just changed ${file}, so nothing was written. Run this command again.`)
}

const isEqual = (one: Buffer | undefined, other: Buffer | undefined) =>
  one === other || (one !== undefined && other?.equals(one) === true)

type FileOwner = Pick<Stats, 'uid' | 'gid' | 'mode'>

const privateMode = 0o600

/** Writes a temporary file in the folder of `file`, and returns its path. */
async function writeBeside(file: string, bytes: Buffer, owner: FileOwner | undefined): Promise<string> {
  const fresh = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}.tmp`)
  const handle = await open(fresh, 'wx', privateMode)
  try {
    await handle.writeFile(bytes)
    if (owner !== undefined) await keepOwner(handle, owner, file)
    await handle.sync()
  } catch (error) {
    await unlink(fresh).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
  return fresh
}

async function keepOwner(handle: FileHandle, { uid, gid, mode }: FileOwner, file: string): Promise<void> {
  const mine = await handle.stat()
  if (mine.uid !== uid || mine.gid !== gid)
    await handle.chown(uid, gid).catch(() => {
      throw commandFailure(
        `${file} belongs to another user, and writing it would change its owner. Run this command as its owner.`,
      )
    })
  await handle.chmod(mode & 0o7777)
}

function failedTo(verb: 'read' | 'written', file: string, error: unknown): unknown {
  const code = errorCodeOf(error)
  return code === undefined ? error : commandFailure(`${file} cannot be ${verb} (${code}).`)
}
