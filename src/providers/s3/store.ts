import type { Readable } from 'node:stream'
import {
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { notFound, type ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { ByteRange } from '../../core/provider.ts'
import {
  createThrottledLog,
  type GetQuery,
  type ObjectBody,
  type ObjectDetails,
  ObjectFault,
  type ObjectStore,
  rangeHeader,
} from '../objects/store.ts'
import { isUnexplainedRefusal, toBodyError, toCallerError } from './errors.ts'

export function createS3Store(client: S3Client, bucket: string, requesterPays: boolean, log: Log): ObjectStore {
  const seldom = createThrottledLog(log)
  const common = { Bucket: bucket, ...(requesterPays ? { RequestPayer: 'requester' as const } : {}) }

  const answered = async <T>(about: 'list' | 'object', work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw toCallerError(error, about, seldom)
    }
  }

  const open = async ({ key, range, version }: GetQuery, signal: AbortSignal): Promise<Opened> => {
    const leaving = new AbortController()
    const command = new GetObjectCommand({
      ...common,
      Key: key,
      ...(range === undefined ? {} : { Range: rangeHeader(range) }),
      ...(version === undefined ? {} : { IfMatch: `"${version}"` }),
    })
    const answer = await client.send(command, { abortSignal: AbortSignal.any([signal, leaving.signal]) })
    const discard = () => {
      const body = answer.Body as Readable | undefined
      body?.on('error', () => {})
      body?.destroy()
      // The checksum stream is in front of the connection, and would keep it open.
      leaving.abort()
    }
    return { answer, discard }
  }

  const head = async (key: string, signal: AbortSignal): Promise<HeadObjectCommandOutput> => {
    try {
      return await client.send(new HeadObjectCommand({ ...common, Key: key }), { abortSignal: signal })
    } catch (error) {
      if (!isUnexplainedRefusal(error)) throw error
      // An error answer to HEAD has no body, so the reason is unknown. GET fails for the same reason, and states it in its body.
      const { discard } = await open({ key }, signal)
      discard()
      throw notFound('the store refuses HEAD, but not GET')
    }
  }

  return {
    page: ({ prefix, after, limit, shallow = false }, signal) =>
      answered('list', async () => {
        const command = new ListObjectsV2Command({
          ...common,
          MaxKeys: limit,
          // Keys can contain characters that XML cannot.
          EncodingType: 'url',
          ...(prefix === '' ? {} : { Prefix: prefix }),
          ...defined({ StartAfter: after }),
          ...(shallow ? { Delimiter: '/' } : {}),
        })
        const answer = await client.send(command, { abortSignal: signal })
        const { Contents = [], CommonPrefixes = [], IsTruncated = false } = answer
        const plain = answer.EncodingType === 'url' ? decodeKey : (key: string) => key
        const objects = Contents.map(({ Key = '', Size, LastModified, ETag }) => ({
          key: plain(Key),
          ...toObjectFacts(Size, LastModified, ETag),
        }))
        return { objects, prefixes: CommonPrefixes.map(({ Prefix = '' }) => plain(Prefix)), more: IsTruncated }
      }),
    head: (key, signal) => answered('object', async () => detailsOf(key, await head(key, signal))),
    get: async (query, signal) => {
      const object = await answered('object', () => open(query, signal))
      return toObjectBody(query, object, signal, seldom)
    },
    link: ({ key, versionId }, seconds) =>
      answered('object', () =>
        getSignedUrl(client, new GetObjectCommand({ ...common, Key: key, ...defined({ VersionId: versionId }) }), {
          expiresIn: seconds,
        }),
      ),
    close: () => client.destroy(),
  }
}

interface Opened {
  readonly answer: GetObjectCommandOutput
  readonly discard: () => void
}

/** Decodes a key of a listing with `encoding-type=url`: form encoding, where a space may be a plus. */
function decodeKey(key: string): string {
  if (!/[%+]/.test(key)) return key
  try {
    return decodeURIComponent(key.replaceAll('+', ' '))
  } catch {
    throw notS3('a key is not encoded correctly')
  }
}

function toObjectFacts(size: number | undefined, modified: Date | undefined, etag: string | undefined) {
  const version = etag?.replace(/^(?:W\/)?"|"$/g, '')
  if (size === undefined || !Number.isSafeInteger(size) || size < 0) throw notS3('an object has no size')
  const time = modified?.getTime()
  return {
    size,
    // The header of an object has only whole seconds.
    ...(time === undefined || Number.isNaN(time) ? {} : { modified: Math.floor(time / 1000) * 1000 }),
    version: version === undefined || version === '' ? `${size}-${time ?? 0}` : version,
  }
}

function detailsOf(
  key: string,
  answer: HeadObjectCommandOutput | GetObjectCommandOutput,
  size = answer.ContentLength,
): ObjectDetails {
  const { ContentType, ContentEncoding, StorageClass, VersionId, Metadata } = answer
  return {
    key,
    ...toObjectFacts(size, answer.LastModified, answer.ETag),
    ...defined({ mimeType: ContentType, storageClass: StorageClass, metadata: Metadata }),
    ...(ContentEncoding === undefined || ContentEncoding === 'aws-chunked' ? {} : { encoding: ContentEncoding }),
    ...(VersionId === undefined || VersionId === 'null' ? {} : { versionId: VersionId }),
  }
}

function toObjectBody(query: GetQuery, object: Opened, signal: AbortSignal, log: Log): ObjectBody {
  const { key, range, version } = query
  const { answer, discard } = object
  try {
    const { start, end, size } = parseContentRange(range, answer)
    const details = detailsOf(key, answer, size)
    // Some stores ignore If-Match.
    if (version !== undefined && details.version !== version) throw new ObjectFault('replaced')
    return {
      ...{ details, start, end },
      bytes: () => readBodyInto(object, Buffer.allocUnsafe(end - start), signal, log),
      discard,
    }
  } catch (error) {
    discard()
    throw error
  }
}

/** Returns the byte range of an answer and the size of the object, and checks them against the request. */
function parseContentRange(range: ByteRange | undefined, { ContentRange, ContentLength }: GetObjectCommandOutput) {
  if (ContentRange === undefined) {
    if (ContentLength === undefined) throw notS3('an object has no length')
    if (range !== undefined) throw notS3('a range is answered with the whole')
    return { start: 0, end: ContentLength, size: ContentLength }
  }
  const [, first, last, all] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(ContentRange) ?? []
  const [start, end, size] = [Number(first), Number(last) + 1, Number(all)]
  const isAsked = range !== undefined && start === range.start && end === Math.min(range.end ?? size, size)
  if (!isAsked || !Number.isSafeInteger(size)) throw notS3('another range is answered than was asked for')
  return { start, end, size }
}

/** Reads the body of an answer into `bytes`, which the body must fill exactly. */
async function readBodyInto(
  { answer, discard }: Opened,
  bytes: Buffer,
  signal: AbortSignal,
  log: Log,
): Promise<Buffer> {
  let count = 0
  try {
    for await (const piece of answer.Body as AsyncIterable<Uint8Array>) {
      signal.throwIfAborted()
      if (count + piece.length > bytes.length) throw new ObjectFault('torn')
      bytes.set(piece, count)
      count += piece.length
    }
  } catch (error) {
    discard()
    signal.throwIfAborted()
    throw toBodyError(error, log)
  }
  signal.throwIfAborted()
  if (count !== bytes.length) throw new ObjectFault('torn')
  return bytes
}

function notS3(what: string): ResourceError {
  return unavailable(`The answer of the store is not one of S3: ${what}. Check which server is at the endpoint.`)
}
