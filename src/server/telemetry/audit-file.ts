import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { errorCodeOf, invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Scrubber } from '../../core/scrub.ts'
import type { Audit } from './audit.ts'

export interface AuditFileOptions {
  readonly file: string
  /** Maximum size of the file, in bytes. Beyond it, the file is rotated to `file.1`. Default 64 MiB. */
  readonly maxBytes?: number
  /** Number of rotated files to keep. Default 5. */
  readonly keep?: number
  readonly scrubber?: Scrubber | undefined
  readonly log: Log
}

export interface AuditFile {
  readonly write: Audit
  /** Number of records that could not be written so far. */
  readonly lost: number
  close(): Promise<void>
}

/** Maximum length of the queue for a slow disk, in characters. Further records are lost, and counted. */
const maxQueueLength = 4 * 1024 * 1024
/** Period of the checks whether the file was moved away, in milliseconds. */
const lookIntervalMs = 1000
/** Maximum length of a URI in a record, in characters. Longer ones are cut. */
const maxUriLength = 8192
const mode = 0o600
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

/**
 * Opens an audit log that only the owner can read. It is rotated when it is too long, and opened again when it was moved or deleted
 * (logrotate). A full or missing disk blocks no request: records that could not be written are counted and reported.
 *
 * @throws ResourceError `invalid` when it cannot be opened.
 */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  const { file, maxBytes = 64 * 1024 * 1024, keep = 5, scrubber, log } = options
  let handle: FileHandle | undefined
  let size = 0
  let inode: number | undefined
  let lookCount = 0
  const waiting: string[] = []
  let characters = 0
  let lostCount = 0
  /** Number of lost records that the audit log does not report yet. */
  let untold = 0
  let working: Promise<void> | undefined
  let failing = false

  const openFile = async (): Promise<void> => {
    const { opened, stats } = await openOwn(file)
    size = stats.size
    inode = stats.ino
    handle = opened
  }

  const shut = async (): Promise<void> => {
    const open = handle
    handle = undefined
    await open?.close().catch(() => {})
  }

  const putAside = async (): Promise<void> => {
    await shut()
    await rotate(file, keep)
    await openFile()
  }

  /** Returns the handle of the file that currently has the name. */
  const current = async (): Promise<FileHandle> => {
    if (handle !== undefined && performance.now() - lookCount > lookIntervalMs) {
      lookCount = performance.now()
      const there = await stat(file).catch(() => undefined)
      if (there?.ino !== inode) await shut()
    }
    if (handle === undefined) await openFile()
    if (handle === undefined) throw new Error('the file is not open')
    return handle
  }

  const writeBatch = async (lines: readonly string[]): Promise<void> => {
    const count = untold
    const bytes = Buffer.from([...lossOf(count), ...lines].join(''))
    let into = await current()
    if (size > 0 && size + bytes.length > maxBytes) {
      await putAside()
      into = await current()
    }
    const before = size
    try {
      await writeAll(into, bytes)
      size += bytes.length
      untold -= count
    } catch (error) {
      // Half a record would corrupt the next one: truncate the file to its previous length.
      await into.truncate(before).catch(() => {})
      throw error
    }
  }

  const drain = async (): Promise<void> => {
    while (waiting.length > 0) {
      const lines = waiting.splice(0, 1000)
      for (const line of lines) characters -= line.length
      try {
        await writeBatch(lines)
        if (failing) log('info', 'the audit log is written again', { file, lost: lostCount })
        failing = false
      } catch (error) {
        lose(lines.length)
        if (!failing) log('error', 'the audit log cannot be written: records are lost', { file, error })
        failing = true
        await shut()
      }
    }
  }

  const lose = (count: number): void => {
    lostCount += count
    untold += count
  }

  const work = (): void => {
    working ??= drain().finally(() => {
      working = undefined
      if (waiting.length > 0) work()
    })
  }

  await openFile().catch((error: unknown) => {
    const code = errorCodeOf(error) ?? 'unknown'
    throw invalid(`The audit log ${file} cannot be written (${code}).`, 'configuration')
  })

  return {
    write: (record) => {
      const { uri } = record
      const clean = uri === undefined ? {} : { uri: truncateUri(scrubber === undefined ? uri : scrubber.scrub(uri)) }
      const line = `${JSON.stringify({ ...record, ...clean })}\n`
      if (characters + line.length > maxQueueLength) return lose(1)
      waiting.push(line)
      characters += line.length
      work()
    },
    get lost() {
      return lostCount
    },
    close: async () => {
      await working
      await shut()
      if (lostCount > 0) log('warn', 'records of the audit log were lost', { file, lost: lostCount })
    },
  }
}

/** Opens a file for appending, which only its owner can read from then on. */
async function openOwn(file: string) {
  const handle = await open(file, flags, mode)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' })
    // An existing file may have been readable by others.
    if ((stats.mode & 0o077) !== 0) await handle.chmod(mode)
    return { opened: handle, stats }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Renames a file to `FILE.1`, and each older one to the next number, so the oldest of `keep` is replaced. If `keep` is 0, removes the file. */
async function rotate(file: string, keep: number): Promise<void> {
  if (keep === 0) return rm(file, { force: true })
  for (let number = keep - 1; number >= 1; number--)
    await rename(`${file}.${number}`, `${file}.${number + 1}`).catch(ignoreMissing)
  await rename(file, `${file}.1`).catch(ignoreMissing)
}

/** Returns the record that states how many records were lost; empty when none were. */
const lossOf = (items: number): readonly string[] =>
  items === 0 ? [] : [`${JSON.stringify({ time: new Date().toISOString(), verb: 'lost', items })}\n`]

const truncateUri = (uri: string) => (uri.length > maxUriLength ? `${uri.slice(0, maxUriLength)}…` : uri)

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at, bytes.length - at, null)).bytesWritten
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
