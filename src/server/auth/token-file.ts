import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, statfs, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCodeOf, invalid, ResourceError } from '../../core/errors.ts'
import { isLocalFileSystem, syncFolder } from '../../core/kit/local-disk.ts'
import { defined, isObject, jsonIn, objectOf } from '../../core/kit/object.ts'
import { hashToken } from './caller.ts'

/** A token in the file: never the token itself, only its hash. */
export interface StoredToken {
  readonly id: string
  readonly name?: string
  /** SHA-256 of the token in hexadecimal. */
  readonly sha256: string
  readonly roles: readonly string[]
  /** Times of creation and expiry (ISO 8601, UTC). */
  readonly created: string
  readonly expires?: string
}

/** Prefix of every token, by which scanners for leaked secrets recognise it. */
const prefix = 'hkd_'

export function isOwnToken(token: string): boolean {
  return token.startsWith(prefix)
}

export interface TokenFile {
  readonly tokens: readonly StoredToken[]
  readonly mark: string
  /** Whether the file lies on a local disk. */
  readonly local: boolean
}

export const absentFileMark = 'absent'

/**
 * Reads the tokens of a file. A missing file has none.
 *
 * @throws ResourceError `invalid` for a file that cannot be read, does not contain tokens, can be written by others, or belongs to
 *   another user than that of this process or root.
 */
export async function readTokenFile(file: string): Promise<TokenFile> {
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return { tokens: [], mark: absentFileMark, local: false }
    throw invalid(`The file of tokens ${file} cannot be read (${errorCodeOf(error) ?? 'unknown'}).`, 'configuration')
  }
  try {
    const stat = await handle.stat({ bigint: true })
    const refuse = (why: string) => invalid(`The file of tokens ${file} ${why}.`, 'configuration')
    if (!stat.isFile()) throw refuse('is not a file')
    if (stat.size > maxBytes) throw refuse(`is longer than ${maxBytes} bytes`)
    if (process.platform !== 'win32' && (Number(stat.mode) & 0o022) !== 0)
      throw refuse('can be written by others, who could add tokens. Make it yours alone: chmod 600')
    const own = process.getuid?.()
    if (own !== undefined && stat.uid !== BigInt(own) && stat.uid !== 0n)
      throw refuse(
        `belongs to another user (uid ${stat.uid}), who could add tokens. Make it yours: chown ${own}, or run the server as that user`,
      )
    const tokens = parseTokens(await handle.readFile('utf8'))
    if (tokens === undefined) throw refuse('is not one that `hikidashi token` wrote')
    const local = await statfs(file).then(
      ({ type }) => isLocalFileSystem(type),
      () => false,
    )
    return { tokens, mark: fileMark(stat), local }
  } finally {
    await handle.close()
  }
}

const maxBytes = 1024 * 1024

export function fileMark(stat: { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint }): string {
  return [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(':')
}

/** Hashes of texts that are no tokens: the empty text, those that an unset variable turns into, and the prefix alone. */
const worthless = new Set(['', 'undefined', 'null', prefix].map(hashToken))

function parseTokens(text: string): readonly StoredToken[] | undefined {
  const { version, tokens } = objectOf(jsonIn(text))
  return version === 1 && Array.isArray(tokens) && tokens.every(isStoredToken) ? tokens : undefined
}

function isStoredToken(value: unknown): value is StoredToken {
  if (!isObject(value)) return false
  const { id, name, sha256, roles, created, expires } = value
  return (
    isWord(id) &&
    (name === undefined || isWord(name)) &&
    typeof sha256 === 'string' &&
    /^[0-9a-f]{64}$/.test(sha256) &&
    !worthless.has(sha256) &&
    Array.isArray(roles) &&
    roles.every(isWord) &&
    isTime(created) &&
    (expires === undefined || isTime(expires))
  )
}

const isWord = (value: unknown) => typeof value === 'string' && value !== ''
const isTime = (value: unknown) => typeof value === 'string' && !Number.isNaN(Date.parse(value))

interface NewToken {
  readonly roles: readonly string[]
  readonly name?: string
  readonly expires?: number
}

/** Creates a token and stores its hash. Only the result contains the token itself. */
export async function addToken(
  file: string,
  { roles, name, expires }: NewToken,
): Promise<{ readonly token: string; readonly stored: StoredToken }> {
  const token = prefix + randomBytes(32).toString('base64url')
  const storedToken = await changeTokens(file, (tokens) => {
    const newToken: StoredToken = {
      id: freeId(tokens),
      ...defined({ name }),
      sha256: hashToken(token),
      roles,
      created: new Date().toISOString(),
      ...(expires === undefined ? {} : { expires: new Date(expires).toISOString() }),
    }
    return { tokens: [...tokens, newToken], value: newToken }
  })
  return { token, stored: storedToken }
}

/** Removes a token from the file. Returns the removed one; undefined when none has this id. */
export async function revokeToken(file: string, id: string): Promise<StoredToken | undefined> {
  return changeTokens(file, (tokens) => ({
    tokens: tokens.filter((token) => token.id !== id),
    value: tokens.find((token) => token.id === id),
  }))
}

/** Returns an unused id, by which people refer to the token. It is not a secret. */
function freeId(tokens: readonly StoredToken[]): string {
  for (;;) {
    const id = randomBytes(4).toString('hex')
    if (!tokens.some((token) => token.id === id)) return id
  }
}

type TokenFileChange<T> = { readonly tokens: readonly StoredToken[]; readonly value: T }

/** Changes a file atomically, under a lock against other processes. */
async function changeTokens<T>(
  file: string,
  change: (tokens: readonly StoredToken[]) => TokenFileChange<T>,
): Promise<T> {
  const unlock = await lock(file)
  try {
    const { tokens: before } = await readTokenFile(file)
    const { tokens, value } = change(before)
    if (tokens.length !== before.length)
      await replaceFile(file, `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`)
    return value
  } finally {
    await unlock()
  }
}

/** How long to wait for the lock of another process, in milliseconds. */
const lockTimeoutMs = 5000

async function lock(file: string): Promise<() => Promise<void>> {
  const locked = `${file}.lock`
  for (const end = performance.now() + lockTimeoutMs; ; ) {
    try {
      await (await open(locked, 'wx', 0o600)).close()
      return () => unlink(locked)
    } catch (error) {
      if (errorCodeOf(error) !== 'EEXIST') throw unwritable(file, error)
      if (performance.now() > end)
        throw new ResourceError(
          'unavailable',
          `Another process is changing the tokens: its lock file ${locked} exists. If no such process runs, remove that file.`,
        )
      await sleep(20)
    }
  }
}

/** Replaces a file atomically: readers find either the whole old file or the whole new one, also after a crash. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString('hex')}.new`
  try {
    const handle = await open(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(fresh, file)
    await syncFolder(dirname(file))
  } catch (error) {
    await unlink(fresh).catch(() => {})
    throw unwritable(file, error)
  }
}

function unwritable(file: string, error: unknown): ResourceError {
  return invalid(`${file} cannot be written (${errorCodeOf(error) ?? 'unknown'}).`, 'configuration')
}
