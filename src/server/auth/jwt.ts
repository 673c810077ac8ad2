import type { createLocalJWKSet, JSONWebKeySet, JWTVerifyOptions } from 'jose'
import type { ServiceNetwork } from '../../core/address-guard.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { isObject, jsonIn } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { hashToken, type TokenVerdict, type TokenVerifier } from './caller.ts'
import { type Claims, type Issuer, issuerNetwork, judgeClaims, leewayMs } from './claims.ts'
import { fetchJson } from './fetch.ts'
import { checkVerifyingKey } from './key-fault.ts'

/** Asymmetric signature algorithms of JOSE. With a shared secret, a server that can verify a token could also forge one. */
const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** How long the verdict on a valid token is cached. */
const cacheMs = 60_000
const maxCached = 2000
/** Maximum number of keys that are tried for one token. */
const maxTried = 8

export type JwtIssuer = Issuer & { readonly jwks: string; readonly audiences: readonly string[] }

/**
 * Creates the verifier of access tokens that are signed JWTs (RFC 9068), each checked with the keys and the rules of the issuer that it
 * names.
 */
export async function createJwtVerifier(
  issuers: readonly JwtIssuer[],
  implies: Readonly<Record<string, readonly string[]>>,
  log: Log,
): Promise<TokenVerifier> {
  const { createLocalJWKSet, errors, jwtVerify } = await import('jose')
  const byName = new Map(
    issuers.map((issuer) => [
      issuer.issuer,
      { issuer, keys: createKeySet(issuer.jwks, createLocalJWKSet, log, issuerNetwork(issuer)) },
    ]),
  )
  const verdictOn = createMemo<TokenVerdict>(maxCached)

  /** Verifies a token. If several keys match, tries up to `maxTried` of them. */
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

  const check = async (token: string, issuer: JwtIssuer, find: FindKey): Promise<TokenVerdict> => {
    const { payload, protectedHeader } = await verified(token, find, {
      issuer: issuer.issuer,
      audience: [...issuer.audiences],
      algorithms: [...(issuer.algorithms ?? asymmetric)],
      requiredClaims: ['exp'],
      clockTolerance: leewayMs / 1000,
    })
    const type = (protectedHeader.typ ?? 'JWT').toLowerCase().replace(/^application\//, '')
    const { types = ['at+jwt'] } = issuer
    if (!types.some((taken) => taken.toLowerCase() === type)) return { fault: 'its type is not accepted' }
    return judgeClaims(payload as Claims, issuer, implies)
  }

  const judge = async (token: string): Promise<TokenVerdict> => {
    const issuerEntry = byName.get(issuerOf(token) ?? '')
    if (issuerEntry === undefined) return { fault: 'its issuer is not known' }
    const { issuer, keys } = issuerEntry
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
      // The value of the claim may be secret.
      return { fault: 'claim' in error ? `${error.code} (${error.claim})` : error.code }
    }
  }

  return {
    takes: (token) => token.split('.').length === 3 && byName.has(issuerOf(token) ?? ''),
    verify: (token) =>
      verdictOn(hashToken(token), async () => {
        const value = await judge(token)
        const until = 'grant' in value ? Math.min(value.grant.expires, Date.now() + cacheMs) : 0
        return { value, until }
      }),
  }
}

/** Returns the issuer that a JWT names; undefined for another token. The issuer is not verified: it only selects the keys. */
export function issuerOf(token: string): string | undefined {
  const claims = jsonIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return isObject(claims) && typeof claims.iss === 'string' ? claims.iss : undefined
}

/** How long keys are used before they are fetched again, in milliseconds. */
const freshMs = 10 * 60_000
/** How long keys are used when they cannot be fetched again, in milliseconds. */
const lastGoodMs = 4 * 3600_000
/** Minimum time between fetches because of an unknown key, in milliseconds. */
const coolDownMs = 30_000
/** How long nothing is fetched after a failure, in milliseconds. */
const failurePauseMs = 2000
/** Difference of the clocks above which a warning is logged, in milliseconds. */
const maxAheadMs = 60_000

type FindKey = ReturnType<typeof createLocalJWKSet>

/** Creates the key set of one issuer, fetched from its URL and cached. */
export function createKeySet(url: string, create: typeof createLocalJWKSet, log: Log, network: ServiceNetwork = {}) {
  let cachedKeys: { readonly find: FindKey; readonly at: number } | undefined
  let fetching: Promise<FindKey> | undefined
  let failedAt = Number.NEGATIVE_INFINITY
  let refreshedAt = Number.NEGATIVE_INFINITY

  let logged = ''
  /** Returns the keys that can verify signatures. The log names the faults of the other keys. */
  const usableOf = async (keys: readonly unknown[]): Promise<readonly object[]> => {
    const judged = await Promise.all(keys.map(checkVerifyingKey))
    const faults = judged.flatMap((one, index) => {
      const key = keys[index]
      return 'fault' in one ? [{ kid: isObject(key) ? String(key.kid).slice(0, 64) : undefined, why: one.fault }] : []
    })
    if (logged !== JSON.stringify(faults))
      for (const fault of faults) log('warn', 'a key of an issuer is not used', { jwks: url, ...fault })
    logged = JSON.stringify(faults)
    return judged.flatMap((one) => ('key' in one ? [one.key] : []))
  }

  const load = async (): Promise<FindKey> => {
    try {
      const { value, ahead = 0 } = await fetchJson(url, network)
      if (!isObject(value) || !Array.isArray(value.keys) || (value.keys.length > 0 && !value.keys.some(isObject)))
        throw new ResourceError('unavailable', `There is no valid key set (JWKS) at ${url}.`)
      if (Math.abs(ahead) > maxAheadMs)
        log('warn', 'the clock of this machine and that of the issuer differ', {
          jwks: url,
          seconds: Math.round(ahead / 1000),
        })
      const find = create({ keys: await usableOf(value.keys) } as JSONWebKeySet)
      cachedKeys = { find, at: performance.now() }
      return find
    } catch (error) {
      failedAt = performance.now()
      log('warn', 'the keys of an issuer cannot be fetched', { error, jwks: url })
      if (isResourceError(error)) throw error
      throw new ResourceError('unavailable', `There is no valid key set (JWKS) at ${url}.`)
    } finally {
      fetching = undefined
    }
  }

  const fetchOnce = (): Promise<FindKey> => {
    if (performance.now() - failedAt < failurePauseMs)
      return Promise.reject(
        new ResourceError('unavailable', `The keys at ${url} could not be fetched a moment ago. Try again later.`),
      )
    fetching ??= load()
    return fetching
  }

  return {
    current: async (): Promise<FindKey> => {
      const have = cachedKeys
      const ageMs = have === undefined ? Number.POSITIVE_INFINITY : performance.now() - have.at
      if (have !== undefined && ageMs < freshMs) return have.find
      try {
        return await fetchOnce()
      } catch (error) {
        if (have === undefined || ageMs > lastGoodMs) throw error
        return have.find
      }
    },
    /**
     * Fetches the keys again, for a key that is not among the cached ones. Resolves to undefined when they were fetched recently.
     *
     * @throws ResourceError `unavailable`
     */
    refreshed: async (): Promise<FindKey | undefined> => {
      if (fetching !== undefined) return fetching
      if (performance.now() - refreshedAt < coolDownMs) return undefined
      const find = await fetchOnce()
      refreshedAt = performance.now()
      return find
    },
  }
}

/**
 * Returns a cache with expiry: a function that returns the cached value of a key, or the result of `find`, which is cached until `until`, in
 * milliseconds since 1970. Concurrent look-ups of one key share one call (single-flight).
 *
 * @param most Maximum number of entries. Beyond it, the oldest are removed.
 */
export function createMemo<T>(most: number) {
  const cache = new Map<string, { readonly value: T; readonly until: number }>()
  const finding = new Map<string, Promise<T>>()

  const findOut = async (key: string, find: () => Promise<{ value: T; until: number }>): Promise<T> => {
    try {
      const outcome = await find()
      cache.delete(key)
      if (outcome.until > Date.now()) cache.set(key, outcome)
      for (const oldest of cache.keys()) {
        if (cache.size <= most) break
        cache.delete(oldest)
      }
      return outcome.value
    } finally {
      finding.delete(key)
    }
  }

  return async (key: string, find: () => Promise<{ readonly value: T; readonly until: number }>): Promise<T> => {
    const remembered = cache.get(key)
    if (remembered !== undefined && remembered.until > Date.now()) return remembered.value
    const answer = finding.get(key) ?? findOut(key, find)
    finding.set(key, answer)
    return answer
  }
}
