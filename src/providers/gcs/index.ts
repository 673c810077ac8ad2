import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { CRC32C } from '@google-cloud/storage'
import { errorCodeOf, invalid, type ResourceError, unavailable } from '../../core/errors.ts'
import { defined, jsonIn, nonEmptyText, requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { ByteRange, Provider } from '../../core/provider.ts'
import { type BucketOptions, completeBucketOptions, createObjectsProvider } from '../objects/provider.ts'
import {
  createThrottledLog,
  type GetQuery,
  type ObjectBody,
  type ObjectDetails,
  ObjectFault,
  type ObjectStore,
  rangeHeader,
} from '../objects/store.ts'
import { createGcsClient, discardAnswer, errorOfStatus, type GcsClient, toCallerError } from './client.ts'

export interface GcsOptions extends BucketOptions {
  /** The absolute path of the key of a service account. Default: the application default credentials. */
  readonly keyFile?: string
  /** The project that pays for the requests. Default: that of the bucket. */
  readonly userProject?: string
}

/**
 * Provider of the objects of a bucket of Google Cloud Storage. The path of an object is its name, below `prefix`; names that no path can
 * hold are left out, and the log names some of them.
 *
 * The version of an object is its generation. An answer is one complete version, with the length that the store reports. Objects that the
 * credentials may not read are `not-found`.
 *
 * It sends no request before the first call. See docs/providers/gcs.md.
 *
 * @throws ResourceError `invalid` for invalid options.
 */
export async function gcs(options: GcsOptions): Promise<Provider> {
  requireKeys('gcs({ bucket })', options, { bucket: 'a string' })
  const { keyFile, userProject } = options
  const settings = completeBucketOptions(options)
  if (settings.anonymous && keyFile !== undefined)
    throw invalid('"anonymous" excludes "keyFile". Remove one of the two.', 'configuration')
  const client = createGcsClient({ ...settings, keyFile })
  return createObjectsProvider(createStore(client, settings.bucket, userProject, settings.log), settings)
}

/** Maximum size of an answer other than an object, in bytes. */
const maxAnswerBytes = 16 * 2 ** 20
/** Maximum size of an error answer, in bytes. */
const maxRefusalBytes = 64 * 1024
/** Maximum number of consecutive empty answers to a listing. */
const maxEmpty = 20
const facts = 'name,size,updated,generation,contentType'
const details = `${facts},contentEncoding,storageClass,metadata`

function createStore(client: GcsClient, bucket: string, userProject: string | undefined, log: Log): ObjectStore {
  const seldom = createThrottledLog(log)
  const bucketPath = `b/${encodeURIComponent(bucket)}/o`

  const ask = async (
    about: 'list' | 'object',
    path: string,
    params: Readonly<Record<string, string | number | undefined>>,
    signal: AbortSignal,
    headers?: Readonly<Record<string, string>>,
  ): Promise<IncomingMessage> => {
    try {
      const answer = await client.send(path, { ...params, userProject }, signal, headers)
      const { statusCode = 0 } = answer
      if (statusCode === 200 || statusCode === 206) return answer
      throw errorOfStatus(statusCode, await reasonIn(answer), about, seldom)
    } catch (error) {
      signal.throwIfAborted()
      throw toCallerError(error)
    }
  }

  const objectAt = (key: string) => `${bucketPath}/${encodeURIComponent(key)}`

  return {
    page: async ({ prefix, after, limit, shallow = false }, signal) => {
      const params = {
        maxResults: limit,
        fields: `items(${facts}),prefixes,nextPageToken`,
        ...(prefix === '' ? {} : { prefix }),
        // `startOffset` is inclusive, so the key itself is removed from the answer below.
        ...defined({ startOffset: after }),
        ...(shallow ? { delimiter: '/' } : {}),
      }
      let token: string | undefined
      // An answer may be empty although more objects follow.
      for (let tries = 0; tries < maxEmpty; tries++) {
        const answer = await ask('list', bucketPath, { ...params, pageToken: token }, signal)
        const {
          items = [],
          prefixes = [],
          nextPageToken,
        } = recordIn(await readJsonAnswer(answer, signal, maxAnswerBytes))
        if (!Array.isArray(items) || !Array.isArray(prefixes)) throw notGcs('a listing without items')
        const details = items.map((item) => detailsOf(recordIn(item)))
        const objects = details[0]?.key === after ? details.slice(1) : details
        token = typeof nextPageToken === 'string' ? nextPageToken : undefined
        if (token === undefined || objects.length + prefixes.length > 0)
          return { objects, prefixes: prefixes.map(String), more: token !== undefined }
      }
      throw notGcs('many pages without objects')
    },
    head: async (key, signal) => {
      const answer = await ask('object', objectAt(key), { fields: details }, signal)
      const objectDetails = detailsOf(recordIn(await readJsonAnswer(answer, signal, maxAnswerBytes)))
      if (objectDetails.key !== key) throw notGcs('another object than was asked for')
      return objectDetails
    },
    get: async (query, signal) => {
      const { key, range, version } = query
      const headers = range === undefined ? {} : { range: rangeHeader(range) }
      const params = { alt: 'media', ...defined({ ifGenerationMatch: version }) }
      const answer = await ask('object', objectAt(key), params, signal, headers)
      try {
        return toObjectBody(query, answer, signal)
      } catch (error) {
        discardAnswer(answer)
        throw error
      }
    },
    link: async ({ key, version }, seconds) => {
      const file = client.storage.bucket(bucket).file(key)
      try {
        const [url] = await file.getSignedUrl({
          version: 'v4',
          action: 'read',
          expires: Date.now() + seconds * 1000,
          queryParams: { generation: version, ...defined({ userProject }) },
        })
        return url
      } catch (error) {
        throw unavailable(
          'No link could be signed. Use the key of a service account, or credentials with the permission ' +
            'iam.serviceAccounts.signBlob; or remove "links".',
          {},
          new Error(errorCodeOf(error) ?? 'unknown'),
        )
      }
    },
    close: () => client.close(),
  }
}

type Fields = Readonly<Record<string, unknown>>

function recordIn(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notGcs('JSON that is not an object')
  return value as Fields
}

function detailsOf({ name, size, updated, generation, ...others }: Fields): ObjectDetails {
  const bytes = Number(size)
  const time = Date.parse(String(updated))
  if (typeof name !== 'string' || typeof generation !== 'string' || !Number.isSafeInteger(bytes) || bytes < 0)
    throw notGcs('an object without a name, a size or a generation')
  const { contentType, contentEncoding, storageClass, metadata } = others
  return {
    key: name,
    size: bytes,
    ...(Number.isNaN(time) ? {} : { modified: Math.floor(time / 1000) * 1000 }),
    version: generation,
    ...(typeof contentType === 'string' ? { mimeType: contentType } : {}),
    ...(typeof contentEncoding === 'string' && contentEncoding !== '' ? { encoding: contentEncoding } : {}),
    ...(typeof storageClass === 'string' ? { storageClass } : {}),
    ...(typeof metadata === 'object' && metadata !== null ? { metadata: stringMetadata(metadata) } : {}),
  }
}

function stringMetadata(metadata: object): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(metadata).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

function toObjectBody({ key, range, version }: GetQuery, answer: IncomingMessage, signal: AbortSignal): ObjectBody {
  const { headers } = answer
  const { start, end, size } = parseContentRange(range, headers['content-range'], headers['content-length'])
  const generation = headers['x-goog-generation']
  if (typeof generation !== 'string') throw notGcs('an object without a generation')
  if (version !== undefined && version !== generation) throw new ObjectFault('replaced')
  const time = Date.parse(headers['last-modified'] ?? '')
  const mimeType = nonEmptyText(headers['content-type'])
  const encoding = nonEmptyText(headers['x-goog-stored-content-encoding'])
  const storageClass = nonEmptyText(headers['x-goog-storage-class'])
  const metadata = Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith('x-goog-meta-') && typeof value === 'string' ? [[name.slice(12), value] as const] : [],
  )
  const details: ObjectDetails = {
    ...{ key, size, version: generation },
    ...(Number.isNaN(time) ? {} : { modified: time }),
    ...defined({ mimeType, storageClass }),
    ...(encoding === undefined || encoding === 'identity' ? {} : { encoding }),
    ...(metadata.length === 0 ? {} : { metadata: Object.fromEntries(metadata) }),
  }
  const sums = range === undefined ? nonEmptyText(headers['x-goog-hash']) : undefined
  return {
    ...{ details: details, start, end },
    bytes: async () => {
      const bytes = await readAnswerBytes(answer, end - start, signal)
      if (bytes.length !== end - start || !hasValidChecksum(bytes, sums)) throw new ObjectFault('torn')
      return bytes
    },
    discard: () => discardAnswer(answer),
  }
}

/** Returns the byte range of an answer and the size of the object, and checks them against the request. */
function parseContentRange(
  range: ByteRange | undefined,
  contentRange: string | undefined,
  contentLength: string | undefined,
) {
  if (range === undefined) {
    const length = Number(contentLength)
    if (contentRange !== undefined || contentLength === undefined || !Number.isSafeInteger(length))
      throw notGcs('an object without a length')
    return { start: 0, end: length, size: length }
  }
  const [, first, last, all] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(contentRange ?? '') ?? []
  const [start, end, size] = [Number(first), Number(last) + 1, Number(all)]
  if (start !== range.start || end !== Math.min(range.end ?? size, size) || !Number.isSafeInteger(size))
    throw notGcs('another range than was asked for')
  return { start, end, size }
}

/** Whether bytes match a checksum in `crc32c=…,md5=…`: the MD5, or the CRC32C of a composed object, which has no MD5. True without any. */
function hasValidChecksum(bytes: Buffer, sums: string | undefined): boolean {
  const md5 = /(?:^|,)\s*md5=([\w+/=]+)/.exec(sums ?? '')?.[1]
  if (md5 !== undefined) return createHash('md5').update(bytes).digest('base64') === md5
  const crc32c = /(?:^|,)\s*crc32c=([\w+/=]+)/.exec(sums ?? '')?.[1]
  if (crc32c === undefined) return true
  const sum = new CRC32C()
  sum.update(bytes)
  return sum.validate(crc32c)
}

/** Reads the bytes of an answer, and stops once there are more than `length`. */
async function readAnswerBytes(answer: IncomingMessage, length: number, signal: AbortSignal): Promise<Buffer> {
  const pieces: Buffer[] = []
  let count = 0
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      count += piece.length
      pieces.push(piece)
      if (count > length) break
    }
  } catch {
    signal.throwIfAborted()
    throw new ObjectFault('torn')
  }
  signal.throwIfAborted()
  return Buffer.concat(pieces)
}

async function readJsonAnswer(answer: IncomingMessage, signal: AbortSignal, limit: number): Promise<unknown> {
  const bytes = await readAnswerBytes(answer, limit, signal).catch((error: unknown) => {
    throw error instanceof ObjectFault ? notGcs('an answer that is cut off') : error
  })
  if (bytes.length > limit) throw notGcs(`an answer of more than ${limit} bytes`)
  const value = jsonIn(bytes.toString())
  if (value === undefined) throw notGcs('no JSON')
  return value
}

async function reasonIn(answer: IncomingMessage): Promise<string | undefined> {
  try {
    const { error } = recordIn(await readJsonAnswer(answer, new AbortController().signal, maxRefusalBytes))
    const { errors } = recordIn(error)
    const { reason } = recordIn(Array.isArray(errors) ? errors[0] : undefined)
    return typeof reason === 'string' && /^\w{1,64}$/.test(reason) ? reason : undefined
  } catch {
    return undefined
  }
}

function notGcs(what: string): ResourceError {
  return unavailable(
    `The answer of the store is not one of Google Cloud Storage: ${what}. Check which server is at the endpoint.`,
  )
}
