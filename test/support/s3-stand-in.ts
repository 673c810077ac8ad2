import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { crc32 } from 'node:zlib'
import { listening } from './listening.ts'
import { createObjectTable, type ObjectTable, pageOf, type StoredObject } from './object-table.ts'
import { type Keys, signatureFault } from './s3-signature.ts'

/** A received request, for tests that count requests. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
}

/** Answers instead of the stand-in if it returns true. */
export type Intercept = (seen: SeenRequest, response: ServerResponse, request: IncomingMessage) => boolean

export interface S3StandIn {
  readonly url: string
  readonly port: number
  readonly bucket: string
  readonly keys: Keys
  readonly table: ObjectTable
  readonly requests: SeenRequest[]
  /** Keys that may not be read; `list` stands for the listing. */
  readonly forbidden: Set<string>
  intercept: Intercept | undefined
  /** Difference of the clock of the store from that of the machine, in milliseconds. */
  skew: number
  /** Whether the bucket has versions. */
  versioned: boolean
  close(): Promise<void>
}

const messages: Readonly<Record<string, readonly [status: number, text: string]>> = {
  AccessDenied: [403, 'Access Denied'],
  InvalidAccessKeyId: [403, 'The AWS Access Key Id you provided does not exist in our records.'],
  InvalidToken: [400, 'The provided token is malformed or otherwise invalid.'],
  SignatureDoesNotMatch: [403, 'The request signature we calculated does not match the signature you provided.'],
  RequestTimeTooSkewed: [403, 'The difference between the request time and the current time is too large.'],
  NoSuchBucket: [404, 'The specified bucket does not exist'],
  NoSuchKey: [404, 'The specified key does not exist.'],
  NoSuchVersion: [404, 'The specified version does not exist.'],
  PreconditionFailed: [412, 'At least one of the pre-conditions you specified did not hold'],
  InvalidRange: [416, 'The requested range is not satisfiable'],
  InvalidObjectState: [403, "The operation is not valid for the object's storage class"],
  KeyTooLongError: [400, 'Your key is too long'],
  MethodNotAllowed: [405, 'The specified method is not allowed against this resource.'],
  SlowDown: [503, 'Please reduce your request rate.'],
}

const escapeXml = (text: string) => text.replace(/[<>&"\r]/g, (c) => `&#${c.charCodeAt(0)};`)
/** Encodes keys as S3 does with `encoding-type=url`: a space becomes a plus, a slash stays. */
const encodeKey = (key: string) =>
  encodeURIComponent(key)
    .replaceAll('%20', '+')
    .replaceAll('%2F', '/')
    .replace(/[!'()]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

export function sendError(response: ServerResponse, code: string, extra = '', method = 'GET'): void {
  const [status, text] = messages[code] ?? [500, 'Internal Error']
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${text}</Message>${extra}<RequestId>R</RequestId></Error>`
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) })
  response.end(method === 'HEAD' ? undefined : body)
}

/**
 * A small stand-in for the HTTP API of S3 (2006-03-01), for one bucket in path style: it checks signatures, lists in byte order,
 * and supports ranges, conditions and versions.
 */
export async function startS3(options: { readonly keys?: Keys; readonly bucket?: string } = {}): Promise<S3StandIn> {
  const { keys = { accessKeyId: 'AKIDSTANDIN', secretAccessKey: 'canary-secret-of-the-stand-in' }, bucket = 'drawer' } =
    options
  const table = createObjectTable()
  const server = createServer((request, response) => {
    request.resume()
    const url = new URL(request.url ?? '/', 'http://stand-in')
    const path = (request.url ?? '/').split('?')[0] ?? '/'
    const seen = { method: request.method ?? 'GET', path, query: url.searchParams, headers: request.headers }
    standIn.requests.push(seen)
    if (standIn.intercept?.(seen, response, request)) return
    answer(standIn, request, seen, response)
  })
  const place = await listening(server)
  const standIn: S3StandIn = {
    ...place,
    ...{ bucket, keys, table },
    requests: [],
    forbidden: new Set(),
    intercept: undefined,
    skew: 0,
    versioned: false,
  }
  return standIn
}

function answer(standIn: S3StandIn, request: IncomingMessage, seen: SeenRequest, response: ServerResponse) {
  const { method, path, query } = seen
  const fail = (code: string, extra = '') => sendError(response, code, extra, method)
  const fault = signatureFault(request, standIn.keys, Date.now() + standIn.skew)
  if (fault !== undefined) return fail(fault)
  const [, bucket = '', ...rest] = path.split('/')
  if (decodeURIComponent(bucket) !== standIn.bucket) return fail('NoSuchBucket')
  const key = decodeURIComponent(rest.join('/'))
  if (method !== 'GET' && method !== 'HEAD') return fail('MethodNotAllowed')
  if (key === '') return list(standIn, query, response, fail)
  get(standIn, key, seen, response, fail)
}

type Fail = (code: string, extra?: string) => void

function list({ table, bucket, forbidden }: S3StandIn, query: URLSearchParams, response: ServerResponse, fail: Fail) {
  if (query.get('list-type') !== '2') return fail('MethodNotAllowed')
  if (forbidden.has('list')) return fail('AccessDenied')
  const prefix = query.get('prefix') ?? ''
  const limit = Math.min(1000, Number(query.get('max-keys') ?? 1000))
  const token = query.get('continuation-token')
  const after = query.get('start-after')
  const delimiter = query.get('delimiter') ?? ''
  const from = token !== null ? Number(token) : after === null ? 0 : table.seek(after, false)
  const { keys, prefixes, next } = pageOf(table, { prefix, from, delimiter, limit })
  const named = query.get('encoding-type') === 'url' ? encodeKey : escapeXml
  const contents = keys.map((key) => {
    const { etag, bytes, modified, storageClass } = table.get(key) as StoredObject
    return (
      `<Contents><Key>${named(key)}</Key><LastModified>${new Date(modified).toISOString()}</LastModified>` +
      `<ETag>&quot;${etag}&quot;</ETag><Size>${bytes.length}</Size><StorageClass>${storageClass ?? 'STANDARD'}</StorageClass></Contents>`
    )
  })
  const body =
    `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${bucket}</Name>` +
    `<Prefix>${named(prefix)}</Prefix><KeyCount>${keys.length + prefixes.length}</KeyCount><MaxKeys>${limit}</MaxKeys>` +
    (query.get('encoding-type') === 'url' ? '<EncodingType>url</EncodingType>' : '') +
    `<IsTruncated>${next !== undefined}</IsTruncated>` +
    (next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`) +
    contents.join('') +
    prefixes.map((common) => `<CommonPrefixes><Prefix>${named(common)}</Prefix></CommonPrefixes>`).join('') +
    '</ListBucketResult>'
  response.writeHead(200, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

function get(
  standIn: S3StandIn,
  key: string,
  { method, query, headers }: SeenRequest,
  response: ServerResponse,
  fail: Fail,
) {
  const { table, forbidden, versioned } = standIn
  if (Buffer.byteLength(key) > 1024) return fail('KeyTooLongError')
  if (forbidden.has(key)) return fail('AccessDenied')
  const versionId = query.get('versionId')
  const object = versionId === null ? table.get(key) : table.version(key, versionId)
  if (object === undefined) return fail(versionId === null ? 'NoSuchKey' : 'NoSuchVersion')
  const { bytes, etag, modified, contentType, contentEncoding, storageClass, metadata } = object
  const tag = `"${etag}"`
  const wanted = headers['if-match']
  if (wanted !== undefined && wanted !== '*' && wanted !== tag) return fail('PreconditionFailed')
  const facts = {
    etag: tag,
    'last-modified': new Date(modified).toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': contentType ?? 'binary/octet-stream',
    ...(contentEncoding === undefined ? {} : { 'content-encoding': contentEncoding }),
    ...(storageClass === undefined ? {} : { 'x-amz-storage-class': storageClass }),
    ...(versioned ? { 'x-amz-version-id': object.versionId } : {}),
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-amz-meta-${name}`, value])),
  }
  if (headers['if-none-match'] === tag) {
    response.writeHead(304, facts)
    response.end()
    return
  }
  if (method === 'GET' && /^(?:GLACIER|DEEP_ARCHIVE)$/.test(storageClass ?? ''))
    return fail('InvalidObjectState', `<StorageClass>${storageClass}</StorageClass>`)
  const range = rangeOf(headers.range, bytes.length)
  if (range === 'unsatisfiable') return fail('InvalidRange', `<ActualObjectSize>${bytes.length}</ActualObjectSize>`)
  const part = range === undefined ? bytes : bytes.subarray(range.start, range.end)
  const isSummed = range === undefined && method === 'GET' && headers['x-amz-checksum-mode'] === 'ENABLED'
  response.writeHead(range === undefined ? 200 : 206, {
    ...facts,
    'content-length': part.length,
    ...(range === undefined ? {} : { 'content-range': `bytes ${range.start}-${range.end - 1}/${bytes.length}` }),
    ...(isSummed ? { 'x-amz-checksum-crc32': checksum(bytes), 'x-amz-checksum-type': 'FULL_OBJECT' } : {}),
  })
  response.end(method === 'HEAD' ? undefined : part)
}

const checksums = new WeakMap<Buffer, string>()

/** Returns the CRC-32 of an object in base64, and caches it. */
export function checksum(bytes: Buffer): string {
  const known = checksums.get(bytes)
  if (known !== undefined) return known
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes))
  const text = sum.toString('base64')
  checksums.set(bytes, text)
  return text
}

/** Parses a `Range` header with one range (RFC 9110, section 14). */
export function rangeOf(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  if (start >= size) return 'unsatisfiable'
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  return { start, end }
}
