import { Transform } from 'node:stream'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/object.ts'
import type { Provider } from '../../core/provider.ts'
import { traceContext } from '../../core/trace.ts'
import { type Endpoint, guardedLookup } from '../objects/endpoint.ts'
import { type BucketOptions, completeBucketOptions, createObjectsProvider } from '../objects/provider.ts'
import { createS3Store } from './store.ts'

interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface S3Options extends BucketOptions {
  /** Region. Default: that of `AWS_REGION` or the profile; with an endpoint that of `AWS_REGION`, else `us-east-1`. */
  readonly region?: string
  /** Whether the bucket is in the path of a request instead of the host name. Default: true with an endpoint or a dot in the bucket name. */
  readonly pathStyle?: boolean
  /** Keys that sign requests. Default: those of the platform, as the official client finds them. */
  readonly keys?: Keys
  readonly profile?: string
  /** Whether the requester pays. Default false. */
  readonly requesterPays?: boolean
}

const sockets = 32

/**
 * Provider of the objects of a bucket of Amazon S3, or of any compatible store. The path of an object is its key, below `prefix`; keys
 * that no path can hold are left out, and the log names some of them.
 *
 * The version of an object is its ETag. An answer is one complete version, with the length that the store reports. Objects that the
 * credentials may not read are `not-found`.
 *
 * It sends no request before the first call. See docs/providers/s3.md.
 *
 * @throws ResourceError `invalid` for invalid options.
 */
export async function s3(options: S3Options): Promise<Provider> {
  requireKeys('s3({ bucket })', options, { bucket: 'a string' })
  const { keys, profile, requesterPays = false } = options
  const settings = completeBucketOptions(options)
  const { bucket, endpoint, anonymous } = settings
  if (/--x-s3$/.test(bucket))
    throw invalid(
      'A directory bucket does not list its keys in order, and cannot be served. Name a general purpose bucket.',
      'configuration',
    )
  if (anonymous && (keys !== undefined || profile !== undefined))
    throw invalid('"anonymous" excludes keys and a profile. Remove them, or "anonymous".', 'configuration')
  const client = createS3Client({
    endpoint,
    region: options.region,
    // No wildcard certificate covers a bucket name with dots before the host name.
    pathStyle: options.pathStyle ?? (endpoint !== undefined || bucket.includes('.')),
    credentials: anonymous ? 'anonymous' : (keys ?? (profile === undefined ? {} : { profile })),
    timeoutMs: settings.timeoutMs,
  })
  const store = createS3Store(client, bucket, requesterPays, settings.log)
  return createObjectsProvider(store, settings)
}

/** The metadata service of the machine is asked for credentials only if the operator enables it. */
process.env.AWS_EC2_METADATA_DISABLED ??= 'true'

interface S3ClientOptions {
  readonly endpoint: Endpoint | undefined
  readonly region: string | undefined
  readonly pathStyle: boolean
  /** Credentials; without keys, those of the platform: environment, profile, files, container. */
  readonly credentials: Keys | 'anonymous' | { readonly profile?: string }
  readonly timeoutMs: number
}

const maxAttempts = 3
/** Maximum size of an answer other than an object, in bytes. */
const maxAnswerBytes = 8 * 2 ** 20

function createS3Client(options: S3ClientOptions): S3Client {
  const { endpoint, region, pathStyle, credentials, timeoutMs } = options
  const attemptTimeoutMs = Math.max(100, Math.floor(timeoutMs / maxAttempts))
  const agent = { keepAlive: true, maxSockets: sockets, maxFreeSockets: sockets, lookup: guardedLookup }
  const config: S3ClientConfig = {
    ...(endpoint === undefined ? {} : { endpoint: endpoint.url }),
    ...regionOf(region, endpoint),
    forcePathStyle: pathStyle,
    followRegionRedirects: false,
    maxAttempts,
    retryMode: 'standard',
    responseChecksumValidation: 'WHEN_SUPPORTED',
    useArnRegion: false,
    // Without these loggers, both the client and its request handler log to the console.
    logger: { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing },
    requestHandler: {
      httpAgent: agent,
      httpsAgent: agent,
      connectionTimeout: Math.min(attemptTimeoutMs, 5000),
      requestTimeout: attemptTimeoutMs,
      socketTimeout: attemptTimeoutMs,
      throwOnRequestTimeout: true,
      logger: { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing },
    },
    ...credentialsOf(credentials),
  }
  const client = withoutWarning(() => new S3Client(config))
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args)
      const { response } = result as { response: { statusCode: number; body?: unknown } }
      const isObject = context.commandName === 'GetObjectCommand' && response.statusCode < 300
      if (!isObject && isStream(response.body)) response.body = limitBodySize(response.body)
      return result
    },
    { step: 'deserialize', priority: 'low', name: 'hikidashiBounds' },
  )
  client.middlewareStack.add(
    (next) => async (args) => {
      const { request } = args as { request?: { headers?: Record<string, string> } }
      if (request?.headers !== undefined) Object.assign(request.headers, traceContext())
      return next(args)
    },
    { step: 'build', name: 'hikidashiTrace' },
  )
  return client
}

function doNothing(): void {}

function regionOf(region: string | undefined, endpoint: Endpoint | undefined): Pick<S3ClientConfig, 'region'> {
  if (region !== undefined) return { region }
  // Other vendors' stores rarely have regions, but the client needs one for signing.
  return endpoint === undefined
    ? {}
    : { region: process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? 'us-east-1' }
}

function credentialsOf(credentials: S3ClientOptions['credentials']): S3ClientConfig {
  if (credentials === 'anonymous') {
    // Requests are sent unsigned; the empty credentials only stop the client from searching for others.
    return {
      credentials: { accessKeyId: '', secretAccessKey: '' },
      signer: { sign: async (request) => request },
    }
  }
  return 'accessKeyId' in credentials ? { credentials } : credentials
}

/** Suppresses the client's warning about Node.js 20 on stderr. */
function withoutWarning<T>(work: () => T): T {
  const name = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'
  const before = process.env[name]
  process.env[name] = 'true'
  try {
    return work()
  } finally {
    if (before === undefined) delete process.env[name]
    else process.env[name] = before
  }
}

function isStream(body: unknown): body is NodeJS.ReadableStream & { destroy(error?: Error): void } {
  return typeof body === 'object' && body !== null && 'pipe' in body && 'destroy' in body
}

/** Limits a body: it ends with an error above the maximum, because the client would buffer all of it. */
function limitBodySize(body: NodeJS.ReadableStream & { destroy(error?: Error): void }): Transform {
  let length = 0
  const limit = new Transform({
    transform(chunk: Buffer, _, callback) {
      length += chunk.length
      if (length <= maxAnswerBytes) return callback(null, chunk)
      body.destroy()
      callback(Object.assign(new Error('too long'), { name: 'TooLong' }))
    },
  })
  body.on('error', (error) => limit.destroy(error))
  body.on('close', () => {
    if (!limit.writableEnded) limit.destroy(Object.assign(new Error('cut off'), { code: 'ECONNRESET' }))
  })
  return body.pipe(limit)
}
