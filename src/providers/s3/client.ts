import { Transform } from 'node:stream'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { Endpoint } from '../objects/endpoint.ts'
import { guardedLookup } from '../objects/endpoint.ts'
import type { Keys } from './keys.ts'

/** What the machine that this runs on has to say about credentials is only asked for where the operator says so. */
process.env.AWS_EC2_METADATA_DISABLED ??= 'true'

export interface ClientOptions {
  readonly endpoint: Endpoint | undefined
  readonly region: string | undefined
  /** Whether the bucket stands in the path of a request, and not in the name of the host. */
  readonly pathStyle: boolean
  /** Without keys, those of the platform: environment, profile, files, container. */
  readonly credentials: Keys | 'anonymous' | { readonly profile?: string }
  readonly timeoutMs: number
  /** How many connections there are at once. */
  readonly sockets: number
}

/** How often a request is sent at most. Between two of them the client waits, a random time. */
const maxAttempts = 3
/** The longest answer that is not an object, in bytes: a page of a thousand keys, all as long as they can be, has half of that. */
const maxAnswer = 8 * 2 ** 20

/** The official client, in bounds: of time, of connections, of what an answer may hold; nothing leads it to another host. */
export function createClient(options: ClientOptions): S3Client {
  const { endpoint, region, pathStyle, credentials, timeoutMs, sockets } = options
  const attemptMs = Math.max(100, Math.floor(timeoutMs / maxAttempts))
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
    // Both of them write to the console otherwise.
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    requestHandler: {
      httpAgent: agent,
      httpsAgent: agent,
      connectionTimeout: Math.min(attemptMs, 5000),
      requestTimeout: attemptMs,
      socketTimeout: attemptMs,
      throwOnRequestTimeout: true,
      logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    },
    ...credentialsOf(credentials),
  }
  const client = withoutWarning(() => new S3Client(config))
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args)
      const { response } = result as { response: { statusCode: number; body?: unknown } }
      const isObject = context.commandName === 'GetObjectCommand' && response.statusCode < 300
      if (!isObject && isStream(response.body)) response.body = bounded(response.body)
      return result
    },
    { step: 'deserialize', priority: 'low', name: 'hikidashiBounds' },
  )
  return client
}

function nothing(): void {}

function regionOf(region: string | undefined, endpoint: Endpoint | undefined): Pick<S3ClientConfig, 'region'> {
  if (region !== undefined) return { region }
  // Stores of others rarely have regions; the client wants one to sign with.
  return endpoint === undefined
    ? {}
    : { region: process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? 'us-east-1' }
}

function credentialsOf(credentials: ClientOptions['credentials']): S3ClientConfig {
  if (credentials === 'anonymous') {
    // What is not signed is sent as it is; the credentials only stop the client from looking for others.
    return {
      credentials: { accessKeyId: '', secretAccessKey: '' },
      signer: { sign: async (request) => request },
    }
  }
  return 'accessKeyId' in credentials ? { credentials } : credentials
}

/** The client warns of Node.js 20 on stderr once in a process: which Node.js is right is not for it to say here. */
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

/** A body that ends with an error once it is longer than it can be: the client would hold all of it. */
function bounded(body: NodeJS.ReadableStream & { destroy(error?: Error): void }): Transform {
  let length = 0
  const limit = new Transform({
    transform(chunk: Buffer, _, done) {
      length += chunk.length
      if (length <= maxAnswer) return done(null, chunk)
      body.destroy()
      done(Object.assign(new Error('too long'), { name: 'TooLong' }))
    },
  })
  body.on('error', (error) => limit.destroy(error))
  body.on('close', () => {
    if (!limit.writableEnded) limit.destroy(Object.assign(new Error('cut off'), { code: 'ECONNRESET' }))
  })
  return body.pipe(limit)
}
