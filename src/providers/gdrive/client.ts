import { drive_v3 } from '@googleapis/drive'
import { isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { followAbortFor, sleep } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import { doneOnce } from '../../core/kit/once.ts'
import type { ByteRange } from '../../core/provider.ts'
import { untilAbort } from '../files/place.ts'
import { createAuthorization } from './credentials.ts'
import type { RawFile } from './model.ts'
import type { Credentials } from './options.ts'
import {
  createTransport,
  isExpiredChangesFault,
  isQuotaFault,
  isTransientFault,
  type RequestFault,
  type RequestSubject,
  toCallerError,
  toRequestFault,
} from './transport.ts'

interface DriveClientOptions {
  readonly credentials: Credentials
  readonly endpoint: string | undefined
  /** Time-out of one answer including retries, in milliseconds. */
  readonly timeoutMs: number
}

/** A shared drive; without its id, the files of the user. */
export interface Corpus {
  readonly driveId?: string
}

const attempts = 5
/** Maximum of the first and of any later pause between attempts, in milliseconds, unless Google asks for more. */
const [firstWaitMs, longestWaitMs] = [500, 16_000]
/** Maximum time that all requests pause after Google has asked for fewer requests, in milliseconds. */
const maxQuietMs = 60_000
/** Number of files or changes requested per page: Drive's maximum. */
const pageSize = 1000

const everywhere = { supportsAllDrives: true, includeItemsFromAllDrives: true }

export type DriveClient = ReturnType<typeof createDriveClient>

/**
 * Client of Drive, on top of Google's own client. Requests that fail for a quota or a temporary error are retried with exponential,
 * jittered backoff; while Google asks for a pause, all requests wait, or fail at once if it is long. A rejected token is renewed once.
 *
 * The methods throw ResourceError (`changes` also {@link ExpiredChangesError}). An abort may reject with any error.
 */
export function createDriveClient(options: DriveClientOptions) {
  const { ask, close } = createRequests(options)
  return {
    files: async (
      q: string,
      { driveId }: Corpus,
      fields: string,
      pageToken: string | undefined,
      signal: AbortSignal,
    ) => {
      const corpus = driveId === undefined ? { corpora: 'user' } : { corpora: 'drive', driveId }
      const { files, nextPageToken } = await ask('drive', signal, (drive, options) =>
        drive.files.list(
          {
            q,
            ...corpus,
            ...everywhere,
            pageSize,
            spaces: 'drive',
            fields: `nextPageToken,files(${fields})`,
            ...defined({ pageToken }),
          },
          options,
        ),
      )
      return pageOf<RawFile>(files, nextPageToken)
    },
    /** If the file is missing, throws `not-found`, or with `about: 'drive'` (the mounted folder or drive) `unavailable`. */
    file: (fileId: string, fields: string, signal: AbortSignal, about: RequestSubject = 'file'): Promise<RawFile> =>
      ask(about, signal, (drive, options) => drive.files.get({ fileId, fields, supportsAllDrives: true }, options)),
    /** Downloads the stored bytes of a file, or a range of them. An answer of more than `most` bytes is `unavailable`. */
    media: async (
      fileId: string,
      part: Required<ByteRange> | undefined,
      most: number,
      signal: AbortSignal,
    ): Promise<Buffer> => {
      const range = part === undefined ? {} : { headers: { Range: `bytes=${part.start}-${part.end - 1}` } }
      const data: unknown = await ask('file', signal, (drive, options) =>
        drive.files.get(
          { fileId, alt: 'media', supportsAllDrives: true },
          { ...options, ...range, responseType: 'arraybuffer', size: most },
        ),
      )
      return bytesIn(data)
    },
    export: async (fileId: string, mimeType: string, most: number, signal: AbortSignal): Promise<Buffer> => {
      const data: unknown = await ask('file', signal, (drive, options) =>
        drive.files.export({ fileId, mimeType }, { ...options, responseType: 'arraybuffer', size: most }),
      )
      return bytesIn(data)
    },
    startToken: async ({ driveId }: Corpus, signal: AbortSignal): Promise<string> => {
      const { startPageToken } = await ask('drive', signal, (drive, options) =>
        drive.changes.getStartPageToken({ supportsAllDrives: true, ...defined({ driveId }) }, options),
      )
      if (typeof startPageToken === 'string') return startPageToken
      throw unavailable('Google returned no start token for the feed of changes. Try again later.')
    },
    /**
     * Returns a page of changes. `from` is the token for the next poll; only the last page has it. Throws {@link ExpiredChangesError} when
     * Google no longer knows the token.
     */
    changes: async ({ driveId }: Corpus, pageToken: string, fields: string, signal: AbortSignal) => {
      const { changes, nextPageToken, newStartPageToken } = await ask(
        'drive',
        signal,
        (drive, options) =>
          drive.changes.list(
            {
              pageToken,
              pageSize,
              ...everywhere,
              includeRemoved: true,
              spaces: 'drive',
              fields: `nextPageToken,newStartPageToken,changes(changeType,removed,fileId,driveId,file(${fields}))`,
              ...defined({ driveId }),
            },
            options,
          ),
        (fault) => (isExpiredChangesFault(fault) ? new ExpiredChangesError() : toCallerError(fault, 'drive')),
      )
      const from = typeof newStartPageToken === 'string' ? newStartPageToken : undefined
      return { ...pageOf<drive_v3.Schema$Change>(changes, nextPageToken), from }
    },
    drives: async (pageToken: string | undefined, signal: AbortSignal) => {
      const { drives, nextPageToken } = await ask('drive', signal, (drive, options) =>
        drive.drives.list(
          { pageSize: 100, fields: 'nextPageToken,drives(id,name)', ...defined({ pageToken }) },
          options,
        ),
      )
      return pageOf<drive_v3.Schema$Drive>(drives, nextPageToken)
    },
    drive: (driveId: string, signal: AbortSignal): Promise<drive_v3.Schema$Drive> =>
      ask('drive', signal, (drive, options) => drive.drives.get({ driveId, fields: 'id,name' }, options)),
    permissions: async (fileId: string, fields: string, signal: AbortSignal) => {
      const { permissions } = await ask('file', signal, (drive, options) =>
        drive.permissions.list(
          { fileId, pageSize: 100, supportsAllDrives: true, fields: `permissions(${fields})` },
          options,
        ),
      )
      return permissions ?? []
    },
    close,
  }
}

/** Requests share the tokens, and the pause that Google asks for. */
function createRequests({ credentials, endpoint, timeoutMs }: DriveClientOptions) {
  // Half of the time-out, so that a request that hangs is retried.
  const transport = createTransport(endpoint, Math.ceil(timeoutMs / 2))
  const closing = new AbortController()
  /** Time until which no request is sent, as `performance.now()` returns it. */
  let quietUntil = 0

  const openClient = doneOnce(async () => {
    const client = await createAuthorization(credentials, transport)
    const fetchImplementation = transport as typeof fetch
    return { client, drive: new drive_v3.Drive({ auth: client, retry: false, fetchImplementation }) }
  })

  /** Returns the wait before the next attempt, in milliseconds. Undefined: there is no further attempt. */
  const waitAfter = (fault: RequestFault, attempt: number): number | undefined => {
    if (attempt >= attempts || !isTransientFault(fault)) return undefined
    const mostMs = Math.min(firstWaitMs * 2 ** (attempt - 1), longestWaitMs)
    const waitMs = Math.max(fault.retryAfterMs ?? 0, mostMs * (0.5 + Math.random() * 0.5))
    if (isQuotaFault(fault)) quietUntil = Math.max(quietUntil, performance.now() + Math.min(waitMs, maxQuietMs))
    return waitMs
  }

  const attemptOnce = async <T>(work: Work<T>, signal: AbortSignal): Promise<RequestOutcome<T>> => {
    await sleep(quietUntil - performance.now(), signal)
    const { client, drive } = await untilAbort(openClient(), signal)
    const token = client.credentials.access_token
    try {
      return { value: (await untilAbort(work(drive, { signal }), signal)).data }
    } catch (error) {
      signal.throwIfAborted()
      const fault = toRequestFault(error)
      // A token that expired on the way is renewed by the next attempt, unless another request has renewed it.
      const isStale =
        fault.status === 401 && client.credentials.access_token === (token ?? client.credentials.access_token)
      if (isStale) client.credentials = { ...client.credentials, expiry_date: 1 }
      // The credentials file may have changed by the next attempt.
      if (fault.reason === 'invalid_grant') openClient.forget()
      return { fault }
    }
  }

  const ask = async <T>(
    about: RequestSubject,
    signal: AbortSignal,
    work: Work<T>,
    errorFor: (fault: RequestFault) => unknown = (fault) => toCallerError(fault, about),
  ): Promise<T> => {
    if (quietUntil - performance.now() > timeoutMs / 2) throw errorFor({ status: 429 })
    const { signal: own, release } = followAbortFor([signal, closing.signal], timeoutMs)
    let renewed = false
    try {
      for (let attempt = 1; ; attempt++) {
        const outcome = await attemptOnce(work, own)
        if (!('fault' in outcome)) return outcome.value
        const { fault } = outcome
        if (fault.status === 401 && !renewed) {
          renewed = true
          continue
        }
        const waitMs = waitAfter(fault, attempt)
        if (waitMs === undefined || waitMs > timeoutMs) throw errorFor(fault)
        await sleep(waitMs, own)
        own.throwIfAborted()
      }
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error) || error instanceof ExpiredChangesError) throw error
      if (closing.signal.aborted) throw unavailable('The provider is closed.')
      if (own.aborted)
        throw unavailable(
          `Google did not answer within ${timeoutMs} ms. Check that it can be reached from here, or raise "timeout".`,
        )
      throw new ResourceError('internal', 'asking Google failed', {}, { cause: error })
    } finally {
      release()
    }
  }

  return { ask, close: () => closing.abort() }
}

/** Thrown when everything must be listed again: Google no longer knows the changes since a token, or the shared drives have changed. */
export class ExpiredChangesError extends Error {}

type Work<T> = (drive: drive_v3.Drive, options: { readonly signal: AbortSignal }) => Promise<{ readonly data: T }>

type RequestOutcome<T> = { readonly value: T } | { readonly fault: RequestFault }

function pageOf<T>(items: readonly T[] | undefined, next: string | null | undefined) {
  if (items !== undefined && !Array.isArray(items))
    throw unavailable('The answer of Google is not a list. Try again later.')
  return { items: items ?? [], next: typeof next === 'string' && next !== '' ? next : undefined }
}

function bytesIn(data: unknown): Buffer {
  return data instanceof ArrayBuffer ? Buffer.from(data) : Buffer.alloc(0)
}
