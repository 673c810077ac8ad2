import { timingSafeEqual } from 'node:crypto'
import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { type Grant, hashToken, type TokenVerdict, type TokenVerifier } from './caller.ts'
import { absentFileMark, fileMark, isOwnToken, readTokenFile, type StoredToken, type TokenFile } from './token-file.ts'

const checkIntervalMs = 500

/**
 * Creates the verifier of this server's own tokens, from a file that may change at any time. While the file exists but cannot be read, no
 * token is accepted.
 *
 * @throws ResourceError `invalid` when the file is invalid at the start.
 */
export async function createTokenVerifier(file: string, log: Log): Promise<TokenVerifier> {
  let tokenFile: TokenFile | undefined = await readTokenFile(file)
  if (tokenFile.mark === absentFileMark) log('warn', 'there is no file of tokens yet', { file })
  const watchers = new Set<(now: TokenFile | undefined) => void>()
  let timer: NodeJS.Timeout | undefined

  const readTokens = async (): Promise<TokenFile | undefined> => {
    let now: TokenFile | undefined
    try {
      now = await readTokenFile(file)
      if (now.mark !== tokenFile?.mark) log('info', 'the tokens were read again', { file, tokens: now.tokens.length })
    } catch (error) {
      // Log it once, not at every check.
      if (tokenFile !== undefined) log('error', 'the tokens cannot be read: none is accepted', { error })
    }
    tokenFile = now
    for (const look of [...watchers]) look(now)
    return now
  }
  /** Returns the current content of the file. */
  const current = async (): Promise<TokenFile | undefined> => {
    let mark = absentFileMark
    try {
      // This call runs for each request, and on a local disk a synchronous one takes less time.
      mark = fileMark(tokenFile?.local ? statSync(file, { bigint: true }) : await stat(file, { bigint: true }))
    } catch {}
    return mark === tokenFile?.mark ? tokenFile : readTokens()
  }

  const verify = async (digest: string): Promise<TokenVerdict> => {
    const now = await current()
    if (now === undefined) throw new ResourceError('unavailable', `The tokens in ${file} cannot be read`)
    const token = findToken(now.tokens, digest)
    if (token === undefined) return { fault: 'it is not in the file of tokens' }
    const grant = grantOf(token)
    return grant.expires > Date.now() ? { grant } : { fault: 'it has expired' }
  }
  const watch = (digest: string, grant: Grant, end: () => void): (() => void) => {
    const look = (now: TokenFile | undefined) => {
      const token = now === undefined ? undefined : findToken(now.tokens, digest)
      if (token === undefined || JSON.stringify(grantOf(token)) !== JSON.stringify(grant)) end()
    }
    watchers.add(look)
    timer ??= setInterval(() => void current(), checkIntervalMs)
    return () => {
      watchers.delete(look)
      if (watchers.size > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }

  return {
    takes: isOwnToken,
    verify: (token, digest = hashToken(token)) => verify(digest),
    watch: (token, grant, end) => watch(hashToken(token), grant, end),
    restore: async (digest) => {
      const verdict = await verify(digest)
      if (!('grant' in verdict)) return undefined
      return { grant: verdict.grant, watch: (end) => watch(digest, verdict.grant, end) }
    },
  }
}

/** Finds a token by its digest. Every stored one is compared, in constant time, so the time reveals nothing. */
function findToken(tokens: readonly StoredToken[], digest: string): StoredToken | undefined {
  const sought = Buffer.from(digest)
  let token: StoredToken | undefined
  for (const stored of tokens) if (timingSafeEqual(sha256Of(stored), sought)) token = stored
  return token
}

const bytes = new WeakMap<StoredToken, Buffer>()

function sha256Of(token: StoredToken): Buffer {
  const cachedBytes = bytes.get(token)
  if (cachedBytes !== undefined) return cachedBytes
  const digestBytes = Buffer.from(token.sha256)
  bytes.set(token, digestBytes)
  return digestBytes
}

const grants = new WeakMap<StoredToken, Grant>()

function grantOf(token: StoredToken): Grant {
  const cachedGrant = grants.get(token)
  if (cachedGrant !== undefined) return cachedGrant
  const { id, name, roles, expires } = token
  const grant = {
    principal: { id: JSON.stringify(['token', id]), ...defined({ label: name }), roles },
    expires: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
  }
  grants.set(token, grant)
  return grant
}
