import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Maximum difference of clocks, in milliseconds. */
const maxSkew = 15 * 60_000

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

/** Returns the error code of S3 for an invalid signature of a request (Signature Version 4); `undefined`: it is valid. */
export function signatureFault(request: IncomingMessage, keys: Keys, now: number): string | undefined {
  const url = new URL(request.url ?? '/', 'http://stand-in')
  const header = String(request.headers.authorization ?? '')
  const isQuery = url.searchParams.has('X-Amz-Signature')
  if (header === '' && !isQuery) return 'AccessDenied'
  const parts = isQuery
    ? {
        credential: url.searchParams.get('X-Amz-Credential') ?? '',
        signed: url.searchParams.get('X-Amz-SignedHeaders') ?? '',
        signature: url.searchParams.get('X-Amz-Signature') ?? '',
        date: url.searchParams.get('X-Amz-Date') ?? '',
        token: url.searchParams.get('X-Amz-Security-Token'),
      }
    : {
        credential: /Credential=([^,\s]+)/.exec(header)?.[1] ?? '',
        signed: /SignedHeaders=([^,\s]+)/.exec(header)?.[1] ?? '',
        signature: /Signature=([0-9a-f]+)/.exec(header)?.[1] ?? '',
        date: String(request.headers['x-amz-date'] ?? ''),
        token: request.headers['x-amz-security-token'] ?? null,
      }
  const [accessKeyId, day = '', region = '', service = '', end = ''] = parts.credential.split('/')
  if (accessKeyId !== keys.accessKeyId) return 'InvalidAccessKeyId'
  if (keys.sessionToken !== undefined && parts.token !== keys.sessionToken) return 'InvalidToken'
  const time = Date.parse(parts.date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  const expires = isQuery ? Number(url.searchParams.get('X-Amz-Expires')) * 1000 : maxSkew
  if (isQuery && !(now < time + expires)) return 'AccessDenied'
  if (!(Math.abs(now - time) <= Math.max(maxSkew, expires))) return 'RequestTimeTooSkewed'
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
  const signed = parts.signed.split(';')
  const path = (request.url ?? '/').split('?')[0] ?? '/'
  const canonical = [
    request.method,
    path,
    query,
    ...signed.map((name) => `${name}:${String(request.headers[name] ?? '').trim()}`),
    '',
    parts.signed,
    isQuery ? 'UNSIGNED-PAYLOAD' : String(request.headers['x-amz-content-sha256']),
  ].join('\n')
  const scope = `${day}/${region}/${service}/${end}`
  const text = ['AWS4-HMAC-SHA256', parts.date, scope, sha256(canonical)].join('\n')
  const key = [day, region, service, end].reduce<Buffer | string>(
    (secret, part) => hmac(secret, part),
    `AWS4${keys.secretAccessKey}`,
  )
  const expected = Buffer.from(hmac(key, text).toString('hex'))
  const given = Buffer.from(parts.signature)
  return given.length === expected.length && timingSafeEqual(given, expected) ? undefined : 'SignatureDoesNotMatch'
}
