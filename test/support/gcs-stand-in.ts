import { createHash, createVerify } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { CRC32C } from '@google-cloud/storage'
import { listening } from './listening.ts'
import { createObjectTable, type ObjectTable, pageOf, type StoredObject } from './object-table.ts'
import { rsaPair } from './rsa-pair.ts'
import { type Intercept, rangeOf, type SeenRequest } from './s3-stand-in.ts'

export interface GcsStandIn {
  readonly url: string
  readonly port: number
  readonly bucket: string
  /** The key file of a service account of the stand-in, as text. */
  readonly keyFile: string
  readonly table: ObjectTable
  readonly requests: SeenRequest[]
  readonly forbidden: Set<string>
  intercept: Intercept | undefined
  /** The project that must pay for requests. */
  payer: string | undefined
  close(): Promise<void>
}

export function sendGcsError(response: ServerResponse, code: number, reason: string): void {
  const body = JSON.stringify({ error: { code, message: `It is ${reason}.`, errors: [{ reason, domain: 'global' }] } })
  response.writeHead(code, { 'content-type': 'application/json; charset=UTF-8' })
  response.end(body)
}

/** One key pair for all stand-ins, because creating one takes a while. */
const pair = rsaPair()

/**
 * A small stand-in for the JSON API of Google Cloud Storage (v1), for one bucket: it verifies tokens, lists in byte order, and
 * supports ranges, generations and requester pays.
 */
export async function startGcs(bucket = 'drawer'): Promise<GcsStandIn> {
  const { publicKey, privateKey } = pair
  const email = 'reader@stand-in.iam.gserviceaccount.com'
  const keyFile = JSON.stringify({
    type: 'service_account',
    project_id: 'stand-in',
    private_key_id: 'k1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: email,
    client_id: '1',
    token_uri: 'http://127.0.0.1:1/token',
  })
  const table = createObjectTable()
  const isSigned = (text: string, signature: Buffer) =>
    createVerify('RSA-SHA256').update(text).verify(publicKey, signature)
  const server = createServer((request, response) => {
    request.resume()
    const url = new URL(request.url ?? '/', standIn.url)
    const path = (request.url ?? '/').split('?')[0] ?? '/'
    const seen = { method: request.method ?? 'GET', path, query: url.searchParams, headers: request.headers }
    standIn.requests.push(seen)
    if (standIn.intercept?.(seen, response, request)) return
    if (url.searchParams.has('X-Goog-Signature')) {
      if (!isSigned(...signedText(seen))) return sendGcsError(response, 403, 'forbidden')
      const [, , ...key] = path.split('/')
      return send(standIn, decodeURIComponent(key.join('/')), seen, response)
    }
    if (!isToken(request, email, isSigned)) return sendGcsError(response, 401, 'authError')
    answer(standIn, seen, response)
  })
  const place = await listening(server)
  const standIn: GcsStandIn = {
    ...place,
    ...{ bucket, keyFile, table },
    requests: [],
    forbidden: new Set(),
    intercept: undefined,
    payer: undefined,
  }
  return standIn
}

/** Whether a request has a valid token that the service account signed. */
function isToken(request: IncomingMessage, email: string, isSigned: (text: string, signature: Buffer) => boolean) {
  const [head = '', claims = '', signature = ''] = (request.headers.authorization ?? '')
    .replace(/^Bearer /, '')
    .split('.')
  if (!isSigned(`${head}.${claims}`, Buffer.from(signature, 'base64url'))) return false
  const { iss, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { iss: string; exp: number }
  return iss === email && exp * 1000 > Date.now()
}

/** Returns the text that a signed link signs (V4 signing process), and the signature. */
function signedText({ path, query, headers }: SeenRequest): [string, Buffer] {
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const signed = query.get('X-Goog-SignedHeaders') ?? ''
  const canonical = [
    'GET',
    path,
    [...query]
      .filter(([name]) => name !== 'X-Goog-Signature')
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort()
      .join('&'),
    // The client signs the host name only.
    ...signed.split(';').map((name) => `${name}:${headers[name]}`.replace(/^(host:.*):\d+$/, '$1')),
    '',
    signed,
    'UNSIGNED-PAYLOAD',
  ].join('\n')
  const [, ...scope] = (query.get('X-Goog-Credential') ?? '').split('/')
  const digest = createHash('sha256').update(canonical).digest('hex')
  const text = ['GOOG4-RSA-SHA256', query.get('X-Goog-Date'), scope.join('/'), digest].join('\n')
  return [text, Buffer.from(query.get('X-Goog-Signature') ?? '', 'hex')]
}

function answer(standIn: GcsStandIn, seen: SeenRequest, response: ServerResponse) {
  const [, , , , bucket = '', , ...rest] = seen.path.split('/')
  if (!seen.path.startsWith('/storage/v1/b/') || decodeURIComponent(bucket) !== standIn.bucket)
    return sendGcsError(response, 404, 'notFound')
  if (standIn.payer !== undefined && seen.query.get('userProject') === null)
    return sendGcsError(response, 400, 'required')
  if (standIn.payer !== undefined && seen.query.get('userProject') !== standIn.payer)
    return sendGcsError(response, 403, 'forbidden')
  const key = decodeURIComponent(rest.join('/'))
  return key === '' ? list(standIn, seen, response) : send(standIn, key, seen, response)
}

function describe(key: string, object: StoredObject) {
  const { bytes, generation, modified, contentType, contentEncoding, storageClass, metadata } = object
  return {
    kind: 'storage#object',
    name: key,
    size: String(bytes.length),
    updated: new Date(modified).toISOString(),
    generation: String(generation),
    ...(contentType === undefined ? {} : { contentType }),
    ...(contentEncoding === undefined ? {} : { contentEncoding }),
    storageClass: storageClass ?? 'STANDARD',
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  }
}

function sendJson(response: ServerResponse, value: unknown) {
  response.writeHead(200, { 'content-type': 'application/json; charset=UTF-8' })
  response.end(JSON.stringify(value))
}

function list({ table, forbidden }: GcsStandIn, { query }: SeenRequest, response: ServerResponse) {
  if (forbidden.has('list')) return sendGcsError(response, 403, 'forbidden')
  const start = query.get('startOffset')
  const token = query.get('pageToken')
  const { keys, prefixes, next } = pageOf(table, {
    prefix: query.get('prefix') ?? '',
    from: token !== null ? Number(token) : start === null ? 0 : table.seek(start, true),
    delimiter: query.get('delimiter') ?? '',
    limit: Math.min(1000, Number(query.get('maxResults') ?? 1000)),
  })
  sendJson(response, {
    kind: 'storage#objects',
    ...(keys.length === 0 ? {} : { items: keys.map((key) => describe(key, table.get(key) as StoredObject)) }),
    ...(prefixes.length === 0 ? {} : { prefixes }),
    ...(next === undefined ? {} : { nextPageToken: String(next) }),
  })
}

const sums = new WeakMap<StoredObject, string>()

/** Returns the checksums of an object, computed once. */
function sumsOf(object: StoredObject): string {
  const known = sums.get(object)
  if (known !== undefined) return known
  const crc = new CRC32C()
  crc.update(object.bytes)
  const made = `crc32c=${crc.toString()},md5=${createHash('md5').update(object.bytes).digest('base64')}`
  sums.set(object, made)
  return made
}

function send({ table, forbidden }: GcsStandIn, key: string, seen: SeenRequest, response: ServerResponse) {
  const { query, headers } = seen
  const object = table.get(key)
  if (forbidden.has(key)) return sendGcsError(response, 403, 'forbidden')
  if (object === undefined) return sendGcsError(response, 404, 'notFound')
  const wanted = query.get('ifGenerationMatch') ?? query.get('generation')
  if (wanted !== null && wanted !== String(object.generation)) return sendGcsError(response, 412, 'conditionNotMet')
  if (query.get('alt') !== 'media' && !query.has('X-Goog-Signature')) return sendJson(response, describe(key, object))
  const { bytes, contentType, contentEncoding, generation, modified, storageClass, metadata } = object
  const range = rangeOf(headers.range, bytes.length)
  if (range === 'unsatisfiable') return sendGcsError(response, 416, 'requestedRangeNotSatisfiable')
  const part = range === undefined ? bytes : bytes.subarray(range.start, range.end)
  response.writeHead(range === undefined ? 200 : 206, {
    'content-type': contentType ?? 'application/octet-stream',
    'content-length': part.length,
    'last-modified': new Date(modified).toUTCString(),
    'x-goog-generation': generation,
    'x-goog-storage-class': storageClass ?? 'STANDARD',
    'x-goog-stored-content-encoding': contentEncoding ?? 'identity',
    'x-goog-hash': sumsOf(object),
    ...(contentEncoding === undefined ? {} : { 'content-encoding': contentEncoding }),
    ...(range === undefined ? {} : { 'content-range': `bytes ${range.start}-${range.end - 1}/${bytes.length}` }),
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-goog-meta-${name}`, value])),
  })
  response.end(part)
}
