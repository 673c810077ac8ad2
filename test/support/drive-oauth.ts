import { createHash, createVerify, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { rsaPair } from './rsa-pair.ts'

export const readOnly = 'https://www.googleapis.com/auth/drive.readonly'

export type DriveOAuth = ReturnType<typeof createDriveOAuth>

/** One key pair for all stand-ins, because creating one takes a while. */
const pair = rsaPair()

/** Stand-ins for the authorization servers of Google: the consent page, and the token endpoint. */
export function createDriveOAuth() {
  const client = { id: 'stand-in.apps.example.com', secret: 'stand-in-client-secret' }
  const email = 'robot@stand-in.iam.gserviceaccount.com'
  /** Issued access tokens with their expiry. */
  const issued = new Map<string, { readonly expires: number; readonly subject: string | undefined }>()
  const refreshTokens = new Set<string>()
  const codes = new Map<string, { readonly challenge: string; readonly redirect: string }>()
  const settings = {
    /** The action of the person at the consent page. */
    person: 'allows' as 'allows' | 'denies' | 'ticks nothing',
    /** Announced lifetime of tokens, in seconds, and their real lifetime. */
    lifetime: 3600,
    /** The users that the service account may impersonate. */
    delegated: new Set<string>(),
    /** Number of issued tokens. */
    given: 0,
    /** Text in every token, by which tests find it. */
    mark: 'canary',
  }

  const give = (subject?: string) => {
    settings.given++
    const token = `ya29.${settings.mark}-${randomBytes(12).toString('hex')}`
    issued.set(token, { expires: Date.now() + settings.lifetime * 1000, subject })
    return { access_token: token, expires_in: settings.lifetime, token_type: 'Bearer', scope: readOnly }
  }

  const addRefreshToken = (): string => {
    const token = `1//${settings.mark}-${randomBytes(12).toString('hex')}`
    refreshTokens.add(token)
    return token
  }

  /** The consent page, which redirects at once. */
  const page = (query: URLSearchParams, response: ServerResponse): unknown => {
    const redirect = query.get('redirect_uri') ?? ''
    const isRight =
      query.get('client_id') === client.id &&
      query.get('response_type') === 'code' &&
      query.get('access_type') === 'offline' &&
      query.get('code_challenge_method') === 'S256' &&
      /^[\w-]{43}$/.test(query.get('code_challenge') ?? '') &&
      /^http:\/\/127\.0\.0\.1:\d+\//.test(redirect)
    if (!isRight) return send(response, 400, { error: 'invalid_request' })
    const code = `4/${settings.mark}-${randomBytes(12).toString('hex')}`
    codes.set(code, { challenge: query.get('code_challenge') ?? '', redirect })
    const back = new URL(redirect)
    back.searchParams.set('state', query.get('state') ?? '')
    if (settings.person === 'denies') back.searchParams.set('error', 'access_denied')
    else back.searchParams.set('code', code)
    response.writeHead(302, { location: back.href })
    return response.end()
  }

  const byCode = (form: URLSearchParams): unknown => {
    const known = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const proof = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isRight = known?.challenge === proof && known.redirect === form.get('redirect_uri') && isClient(form)
    if (!isRight) return undefined
    const scope = settings.person === 'ticks nothing' ? 'openid' : readOnly
    return { ...give(), refresh_token: addRefreshToken(), scope }
  }
  const isClient = (form: URLSearchParams) =>
    form.get('client_id') === client.id && form.get('client_secret') === client.secret

  const byAssertion = (assertion: string): unknown => {
    const [head = '', claims = '', signature = ''] = assertion.split('.')
    const isSigned = createVerify('RSA-SHA256')
      .update(`${head}.${claims}`)
      .verify(pair.publicKey, signature, 'base64url')
    const { iss, aud, scope, exp, sub } = JSON.parse(Buffer.from(claims, 'base64url').toString())
    const isRight = iss === email && aud === 'https://oauth2.googleapis.com/token' && scope === readOnly
    if (!isSigned || !isRight || exp * 1000 < Date.now()) return undefined
    return sub === undefined || settings.delegated.has(sub) ? give(sub) : undefined
  }

  /** The token endpoint. */
  const token = (body: string, response: ServerResponse): unknown => {
    const form = new URLSearchParams(body)
    const type = form.get('grant_type')
    const isKnown = refreshTokens.has(form.get('refresh_token') ?? '') && isClient(form)
    const answer =
      type === 'refresh_token'
        ? isKnown && give()
        : type === 'authorization_code'
          ? byCode(form)
          : byAssertion(form.get('assertion') ?? '')
    if (answer) return send(response, 200, answer)
    return send(response, 400, { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' })
  }

  return {
    client,
    email,
    settings,
    issued,
    refreshTokens,
    addRefreshToken,
    page,
    token,
    /** Revokes all issued tokens before their announced expiry. */
    expire: () => issued.clear(),
    /** Returns the subject of a valid token. */
    isGood: (authorization: string | undefined): boolean => {
      const found = issued.get((authorization ?? '').replace(/^Bearer /, ''))
      return found !== undefined && found.expires > Date.now()
    },
    /** The key of the service account, in the form of the Google console. */
    key: JSON.stringify({
      type: 'service_account',
      project_id: 'stand-in',
      private_key_id: 'k1',
      private_key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      client_email: email,
      client_id: '1',
      token_uri: 'http://127.0.0.1:1/leads-elsewhere',
    }),
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' })
  response.end(JSON.stringify(body))
}
