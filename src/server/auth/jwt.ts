import type { JWTVerifyOptions } from 'jose'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { isObject } from '../protocol/messages.ts'
import { type Claims, judgeClaims } from './claims.ts'
import { createKeys, type FindKey } from './keys.ts'
import { createMemo } from './memo.ts'
import { type Issuer, leeway, networkOf } from './options.ts'
import { digestOf, type Verdict, type Verifier } from './verdict.ts'

/** Asymmetric signature algorithms of JOSE. With a shared secret, a server that can verify a token could also forge one. */
const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** How long the verdict on a valid token is cached, in milliseconds, and the maximum number of cached verdicts. */
const cacheMs = 60_000
const maxCached = 2000
/** Maximum number of keys that are tried for one token. */
const maxTried = 8

/** An issuer with a key set, and the audiences that its tokens must have. */
export type JwtIssuer = Issuer & { readonly jwks: string; readonly audiences: readonly string[] }

/**
 * Creates the verifier of access tokens that are signed JWTs (RFC 9068), each checked with the keys and the rules of the one
 * issuer that it names.
 */
export async function createJwtVerifier(
  issuers: readonly JwtIssuer[],
  implies: Readonly<Record<string, readonly string[]>>,
  log: Log,
): Promise<Verifier> {
  const { createLocalJWKSet, errors, jwtVerify } = await import('jose')
  const byName = new Map(
    issuers.map((issuer) => [
      issuer.issuer,
      { issuer, keys: createKeys(issuer.jwks, createLocalJWKSet, log, networkOf(issuer)) },
    ]),
  )
  const verdicts = createMemo<Verdict>(maxCached)

  /** Verifies a token. If several keys match, such as two with the same `kid`, tries each of them. */
  const verified = async (token: string, find: FindKey, options: JWTVerifyOptions) => {
    try {
      return await jwtVerify(token, find, options)
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      let tried = 0
      for await (const key of error) {
        if (++tried > maxTried) break
        try {
          return await jwtVerify(token, key, options)
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
        }
      }
      throw new errors.JWSSignatureVerificationFailed()
    }
  }

  const check = async (token: string, issuer: JwtIssuer, find: FindKey): Promise<Verdict> => {
    const { payload, protectedHeader } = await verified(token, find, {
      issuer: issuer.issuer,
      audience: [...issuer.audiences],
      algorithms: [...(issuer.algorithms ?? asymmetric)],
      requiredClaims: ['exp'],
      clockTolerance: leeway / 1000,
    })
    const type = (protectedHeader.typ ?? 'JWT').toLowerCase().replace(/^application\//, '')
    const { types = ['at+jwt'] } = issuer
    if (!types.some((taken) => taken.toLowerCase() === type)) return { fault: 'it is of a type that is not taken' }
    return judgeClaims(payload as Claims, issuer, implies)
  }

  const judge = async (token: string): Promise<Verdict> => {
    const named = byName.get(issuerOf(token) ?? '')
    if (named === undefined) return { fault: 'its issuer is not known' }
    const { issuer, keys } = named
    try {
      try {
        return await check(token, issuer, await keys.current())
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        const find = await keys.refreshed()
        if (find === undefined) throw error
        return await check(token, issuer, find)
      }
    } catch (error) {
      if (isResourceError(error)) throw error
      if (!(error instanceof errors.JOSEError)) return { fault: 'it cannot be read' }
      // The name of the claim is known to be harmless; its value is not.
      return { fault: 'claim' in error ? `${error.code} (${error.claim})` : error.code }
    }
  }

  return {
    takes: (token) => token.split('.').length === 3 && byName.has(issuerOf(token) ?? ''),
    verify: (token) =>
      verdicts.get(digestOf(token), async () => {
        const value = await judge(token)
        const until = 'grant' in value ? Math.min(value.grant.expires, Date.now() + cacheMs) : 0
        return { value, until }
      }),
  }
}

/** Returns the issuer that a token names. It is not verified yet: it only selects the keys to verify the token with. */
export function issuerOf(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return isObject(claims) && typeof claims.iss === 'string' ? claims.iss : undefined
  } catch {
    return undefined
  }
}
