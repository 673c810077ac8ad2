import type { createLocalJWKSet, JSONWebKeySet } from 'jose'
import type { ServiceNetwork } from '../../core/address-guard.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { isObject } from '../protocol/messages.ts'
import { fetchJson } from './fetch.ts'

/** How long keys are used before they are fetched again, in milliseconds. */
const freshMs = 10 * 60_000
/** How long keys are used when they cannot be fetched again, in milliseconds: an issuer that is down must not lock out everyone. */
const lastGoodMs = 4 * 3600_000
/** Minimum time between fetches because of an unknown key, in milliseconds: anyone can name any key. */
const coolDownMs = 30_000
/** How long nothing is fetched after a failure, in milliseconds. */
const failurePauseMs = 2000
/** Difference of the clocks above which a warning is logged, in milliseconds. */
const maxAheadMs = 60_000

/**
 * Whether anyone could forge signatures of a key: with an RSA exponent of 1 a signature is the message itself. A valid exponent
 * is odd and greater than 1 (RFC 8017, section 3.1).
 */
function isForgeable(key: unknown): boolean {
  if (!isObject(key) || key.kty !== 'RSA') return false
  const exponent = typeof key.e === 'string' ? Buffer.from(key.e, 'base64url').toString('hex').replace(/^0+/, '') : ''
  return exponent === '' || exponent === '1' || !/[13579bdf]$/.test(exponent)
}

export type FindKey = ReturnType<typeof createLocalJWKSet>

/** The key set of one issuer. */
export interface Keys {
  /** Returns the cached keys, fetched again when they are old. @throws ResourceError `unavailable` */
  current(): Promise<FindKey>
  /**
   * Fetches the keys again, for a key that is not among the cached ones. Resolves to undefined when they were fetched recently.
   *
   * @throws ResourceError `unavailable`
   */
  refreshed(): Promise<FindKey | undefined>
}

export function createKeys(
  url: string,
  create: typeof createLocalJWKSet,
  log: Log,
  network: ServiceNetwork = {},
): Keys {
  let known: { readonly find: FindKey; readonly at: number } | undefined
  let fetching: Promise<FindKey> | undefined
  let failedAt = Number.NEGATIVE_INFINITY
  let refreshedAt = Number.NEGATIVE_INFINITY

  const load = async (): Promise<FindKey> => {
    try {
      const { value, ahead = 0 } = await fetchJson(url, network)
      if (!isObject(value) || !Array.isArray(value.keys))
        throw new ResourceError('unavailable', `There are no keys at ${url}`)
      if (Math.abs(ahead) > maxAheadMs)
        log('warn', 'the clock of this machine and that of the issuer differ', {
          jwks: url,
          seconds: Math.round(ahead / 1000),
        })
      const find = create({ keys: value.keys.filter((key) => !isForgeable(key)) } as JSONWebKeySet)
      known = { find, at: performance.now() }
      return find
    } catch (error) {
      failedAt = performance.now()
      log('warn', 'the keys of an issuer cannot be fetched', { error, jwks: url })
      if (isResourceError(error)) throw error
      throw new ResourceError('unavailable', `There are no keys at ${url}`)
    } finally {
      fetching = undefined
    }
  }

  const fetchOnce = (): Promise<FindKey> => {
    if (performance.now() - failedAt < failurePauseMs)
      return Promise.reject(new ResourceError('unavailable', `${url} did not answer just before`))
    fetching ??= load()
    return fetching
  }

  return {
    current: async () => {
      const have = known
      const age = have === undefined ? Number.POSITIVE_INFINITY : performance.now() - have.at
      if (have !== undefined && age < freshMs) return have.find
      try {
        return await fetchOnce()
      } catch (error) {
        if (have === undefined || age > lastGoodMs) throw error
        return have.find
      }
    },
    refreshed: async () => {
      if (fetching !== undefined) return fetching
      if (performance.now() - refreshedAt < coolDownMs) return undefined
      const find = await fetchOnce()
      refreshedAt = performance.now()
      return find
    },
  }
}
