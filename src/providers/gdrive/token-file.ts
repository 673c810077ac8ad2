import { type FileHandle, open } from 'node:fs/promises'
import { errorCodeOf, ResourceError } from '../../core/errors.ts'

/** Credentials for Google. */
export type Credentials =
  /** A person who has allowed access by `hikidashi auth gdrive`. */
  | { readonly kind: 'person'; readonly client: OAuthClient; readonly tokenFile: string }
  /** A service account: its key as JSON, and the user it impersonates, if access is delegated. */
  | { readonly kind: 'service'; readonly key: string; readonly subject?: string }
  /** The application default credentials. */
  | { readonly kind: 'default' }

/** The OAuth client registration of this program. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string | undefined
}

/** The file that `hikidashi auth gdrive` writes: anyone who has it and the secret of the client can read everything that was allowed. */
export interface RefreshToken {
  readonly version: 1
  readonly clientId: string
  readonly refreshToken: string
  /** ISO 8601, UTC. */
  readonly created: string
}

const maxBytes = 64 * 1024

/** The remedy for every error of the file. */
const again = 'Run: hikidashi auth gdrive'

/**
 * Reads the refresh token. The file must belong to this user and be closed to all others.
 *
 * @throws ResourceError `unavailable`; the message names the file, and says what to do.
 */
export async function readRefreshToken(file: string): Promise<RefreshToken> {
  const refuse = (why: string) => new ResourceError('unavailable', `The file ${file} ${why}`)
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (code === 'ENOENT') throw refuse(`with the permission to read Drive is not there. ${again}.`)
    throw refuse(`cannot be read (${code}). Let this user read it, and nobody else.`)
  }
  try {
    const stats = await handle.stat()
    const { mode, uid, size } = stats
    if (!stats.isFile() || size > maxBytes)
      throw refuse(`is not one that was written by: hikidashi auth gdrive. ${again}.`)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw refuse('can be read or written by others, who could read Drive with it. Make it yours alone: chmod 600.')
    const own = process.getuid?.()
    if (own !== undefined && own !== 0 && uid !== own) throw refuse('belongs to another user. Make it yours.')
    const token = parseToken(await handle.readFile('utf8'))
    if (token === undefined) throw refuse(`is not one that was written by: hikidashi auth gdrive. ${again}.`)
    return token
  } finally {
    await handle.close()
  }
}

function parseToken(text: string): RefreshToken | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return undefined
    const { version, clientId, refreshToken, created } = value as Readonly<Record<string, unknown>>
    const isWhole = [clientId, refreshToken, created].every((one) => typeof one === 'string' && one !== '')
    return version === 1 && isWhole ? (value as RefreshToken) : undefined
  } catch {
    return undefined
  }
}
