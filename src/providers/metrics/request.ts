import { createServiceGuard, type ServiceNetwork } from '../../core/address-guard.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { sendGuarded } from '../../core/guarded-request.ts'
import { httpUrlBelow, parseHttpUrl } from '../../core/http-url.ts'
import { followFor } from '../../core/kit/abort.ts'
import { reasonOf, unpackedBody } from '../http/client.ts'
import { apiAddress } from './address.ts'

/** Credentials of the requests. */
export type Credentials = { readonly bearer: string } | { readonly user: string; readonly password: string }

export interface ClientOptions extends ServiceNetwork {
  /** Address of the API, without `/api/v1`. */
  readonly url: string
  readonly credentials?: Credentials | undefined
  readonly timeoutMs: number
  /** Maximum size of an unpacked answer, in bytes. */
  readonly maxBytes: number
}

export type Fields = readonly (readonly [name: string, value: string])[]

export interface Ask {
  /** Path below `/api/v1/`. */
  readonly path: string
  readonly fields?: Fields
  /** Whether to send the fields in a body, because they may be long. */
  readonly post?: boolean
  readonly signal: AbortSignal
}

/** Status of an answer, whose body was passed on in chunks. */
export interface Answered {
  readonly status: number
}

export type Client = (ask: Ask, take: (chunk: Uint8Array) => void) => Promise<Answered>

/**
 * Creates an HTTP client of an API. It sends requests only to this address, as {@link createServiceGuard} allows: it follows no redirects, and
 * ignores proxies of the environment.
 *
 * Throws ResourceError `unavailable` when there is no answer, and `too-large` for one that is too long. No error holds any part of the answer.
 */
export function createClient({ url, credentials, timeoutMs, maxBytes, ...network }: ClientOptions): Client {
  const base = parseHttpUrl(apiAddress(url))
  const guard = createServiceGuard(base, network)
  const credentialHeaders = credentials === undefined ? {} : { Authorization: authorizationOf(credentials) }

  const send = async ({ path, fields = [], post = false, signal }: Ask, take: (chunk: Uint8Array) => void) => {
    const encoded = new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value])).toString()
    const query = post || encoded === '' ? '' : `?${encoded}`
    const asked = httpUrlBelow(base, `api/v1/${path}${query}`)
    const response = await sendGuarded(guard, {
      url: asked,
      signal,
      headers: {
        Accept: 'application/json',
        'Accept-Encoding': 'gzip, br',
        ...credentialHeaders,
        ...(post ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
      },
      ...(post ? { body: encoded } : {}),
    })
    try {
      let length = 0
      for await (const chunk of unpackedBody(response, asked, maxBytes)) {
        length += chunk.length
        if (length > maxBytes) throw tooLong(maxBytes)
        take(chunk)
      }
      return { status: response.statusCode ?? 0 }
    } finally {
      response.destroy()
    }
  }

  return async (ask, take) => {
    const { signal, release } = followFor(ask.signal, timeoutMs)
    try {
      return await send({ ...ask, signal }, take)
    } catch (error) {
      ask.signal.throwIfAborted()
      if (isResourceError(error)) throw error
      throw unreachable(signal.aborted ? `it took longer than ${timeoutMs} ms` : reasonOf(error), error)
    } finally {
      release()
    }
  }
}

function authorizationOf(credentials: Credentials): string {
  if ('bearer' in credentials) return `Bearer ${credentials.bearer}`
  return `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')}`
}

function unreachable(why: string, cause: unknown): ResourceError {
  return new ResourceError(
    'unavailable',
    `Prometheus does not answer: ${why}. Look whether it runs, and whether "url" is right.`,
    {},
    { cause },
  )
}

function tooLong(limit: number): ResourceError {
  return new ResourceError(
    'too-large',
    `The answer would be longer than ${limit} bytes: ask for a shorter range, a larger step or fewer series.`,
    { reason: 'too-large', limit },
  )
}
