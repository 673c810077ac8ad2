import { ResourceError } from '../../core/errors.ts'
import { createGate } from '../admission/gate.ts'
import { isObject } from '../protocol/messages.ts'
import { type Claims, judgeClaims } from './claims.ts'
import { fetchJson } from './fetch.ts'
import { issuerOf } from './jwt.ts'
import { createMemo } from './memo.ts'
import { type Issuer, networkOf } from './options.ts'
import { digestOf, type Verdict, type Verifier } from './verdict.ts'

/** How long an answer is cached, in milliseconds, and the maximum number of cached answers. */
const cacheMs = 30_000
const maxCached = 2000
/** Maximum number of concurrent requests, and of waiting ones: anyone can send any token. */
const maxConcurrent = 16
const maxWaiting = 256

/** An issuer with introspection, and the audiences that its tokens must have. */
export type AskedIssuer = Issuer & {
  readonly introspection: NonNullable<Issuer['introspection']>
  readonly audiences: readonly string[]
}

/** Creates the verifier of opaque access tokens: it asks the issuer about each one (RFC 7662), and never shows a token to any other server. */
export function createIntrospection(
  issuer: AskedIssuer,
  implies: Readonly<Record<string, readonly string[]>>,
): Verifier {
  const { url, clientId, clientSecret } = issuer.introspection
  const network = networkOf(issuer)
  const authorization = `Basic ${Buffer.from([clientId, clientSecret].map(formEncode).join(':')).toString('base64')}`
  const gate = createGate(maxConcurrent, maxWaiting)
  const verdicts = createMemo<Verdict>(maxCached)

  const ask = async (token: string): Promise<Verdict> => {
    const body = `token=${formEncode(token)}&token_type_hint=access_token`
    const answered = await gate.run(() => fetchJson(url, { ...network, body, authorization }))
    if ('refused' in answered) throw new ResourceError('unavailable', 'Too many tokens are asked about at once')
    const claims = answered.value.value
    if (!isObject(claims) || typeof claims.active !== 'boolean')
      throw new ResourceError('unavailable', `There is no answer about a token at ${url}`)
    return claims.active ? judge(claims) : { fault: 'the issuer says that it is not good' }
  }

  const judge = (claims: Claims): Verdict => {
    if (claims.iss !== undefined && claims.iss !== issuer.issuer) return { fault: 'it is of another issuer' }
    if (![claims.aud].flat().some((audience) => issuer.audiences.includes(String(audience))))
      return { fault: 'it is for another audience' }
    return judgeClaims(claims, issuer, implies)
  }

  const verify = (token: string): Promise<Verdict> =>
    verdicts.get(digestOf(token), async () => {
      const value = await ask(token)
      return { value, until: 'grant' in value ? Math.min(value.grant.expires, Date.now() + cacheMs) : 0 }
    })

  return {
    // A JWT names its issuer: no other server may see it.
    takes: (token) => [undefined, issuer.issuer].includes(issuerOf(token)),
    verify,
    watch: (token, grant, end) => {
      const look = async () => {
        const verdict = await verify(token).catch(() => undefined)
        const same = verdict !== undefined && 'grant' in verdict && sameRights(verdict.grant, grant)
        if (!same) end()
      }
      const timer = setInterval(() => void look(), cacheMs)
      return () => clearInterval(timer)
    },
  }
}

function sameRights(one: { readonly principal: unknown }, other: { readonly principal: unknown }): boolean {
  return JSON.stringify(one.principal) === JSON.stringify(other.principal)
}

/** Encodes as `application/x-www-form-urlencoded`, which client identifiers require too (RFC 6749, section 2.3.1). */
function formEncode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}
