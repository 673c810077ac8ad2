import { drive_v3 } from '@googleapis/drive'
import { followFor } from '../../core/abort.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { sleep } from '../../core/sleep.ts'
import { untilAbort } from '../files/pool.ts'
import { type Authorization, authorize } from './credentials.ts'
import { type About, errorOf, type Fault, faultOf, isExpired, isPassing, isQuota } from './errors.ts'
import type { Credentials } from './login.ts'
import type { RawFile } from './model.ts'
import { createTransport } from './transport.ts'

export interface ClientOptions {
  readonly credentials: Credentials
  readonly endpoint: string | undefined
  /** How long one answer may take, with everything that is tried again, in milliseconds. */
  readonly timeoutMs: number
}

/** Where something lies, as far as it has to be said with a request: in a shared drive, or not. */
export interface Corpus {
  readonly driveId?: string
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly next?: string
}

/** A page of what changed; `from` is where the next look begins, on the last page. */
export interface ChangePage extends Page<drive_v3.Schema$Change> {
  readonly from?: string
}

/** Part of a file: `end` is behind its last byte. */
export interface Part {
  readonly start: number
  readonly end: number
}

/** How often something is tried, and how long the waits between are: the first at most, and any at most, in milliseconds. */
const attempts = 5
const [firstWait, longestWait] = [500, 16_000]
/** For how long everybody waits at most, once Google has asked for fewer requests. */
const longestQuiet = 60_000
/** What is asked for on one page: as many as Drive gives. */
const pageSize = 1000

/** What every request says: what lies in shared drives counts. */
const everywhere = { supportsAllDrives: true, includeItemsFromAllDrives: true }

export type DriveClient = ReturnType<typeof createClient>

/**
 * Asks Drive, through Google's own client. What is refused for its quota, or went wrong on the way, is asked again, after waits
 * that grow and are random; while Google asks for fewer requests, all wait. A token that is refused is renewed, once.
 *
 * Every method throws only ResourceError, whose messages hold nothing that was answered. An abort rejects with anything.
 */
export function createClient({ credentials, endpoint, timeoutMs }: ClientOptions) {
  // One that hangs is tried again.
  const transport = createTransport({ endpoint, timeoutMs: Math.ceil(timeoutMs / 2) })
  const closing = new AbortController()
  let authorized: Promise<Opened> | undefined
  /** Until when Google wants to be left alone. */
  let quietUntil = 0

  const open = async (): Promise<Opened> => {
    const client = await authorize(credentials, transport)
    const fetchImplementation = transport as typeof fetch
    return { client, drive: new drive_v3.Drive({ auth: client, retry: false, fetchImplementation }) }
  }

  const authorization = (): Promise<Opened> => {
    authorized ??= open().catch((error: unknown) => {
      authorized = undefined
      throw error
    })
    return authorized
  }

  /** How long to wait before the next attempt; `undefined`: there is none. */
  const waitAfter = (fault: Fault, attempt: number): number | undefined => {
    if (attempt >= attempts || !isPassing(fault)) return undefined
    const most = Math.min(firstWait * 2 ** (attempt - 1), longestWait)
    const wait = Math.max(fault.retryAfter ?? 0, most * (0.5 + Math.random() * 0.5))
    if (isQuota(fault)) quietUntil = Math.max(quietUntil, Date.now() + Math.min(wait, longestQuiet))
    return wait
  }

  const attemptOnce = async <T>(work: Work<T>, signal: AbortSignal): Promise<Outcome<T>> => {
    await sleep(quietUntil - Date.now(), signal)
    const { client, drive } = await untilAbort(authorization(), signal)
    const token = client.credentials.access_token
    try {
      return { value: (await untilAbort(work(drive, { signal }), signal)).data }
    } catch (error) {
      signal.throwIfAborted()
      const fault = faultOf(error)
      // What has expired on the way is renewed by the next attempt, unless another has done that already.
      const isStale =
        fault.status === 401 && client.credentials.access_token === (token ?? client.credentials.access_token)
      if (isStale) client.credentials = { ...client.credentials, expiry_date: 1 }
      // What the file says may be another by the next time.
      if (fault.reason === 'invalid_grant') authorized = undefined
      return { fault }
    }
  }

  const ask = async <T>(
    about: About,
    signal: AbortSignal,
    work: Work<T>,
    errorFor: (fault: Fault) => unknown = (fault) => errorOf(fault, about),
  ): Promise<T> => {
    // Whoever would wait for too long need not.
    if (quietUntil - Date.now() > timeoutMs / 2) throw errorFor({ status: 429 })
    const { signal: own, release } = followFor([signal, closing.signal], timeoutMs)
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
        const wait = waitAfter(fault, attempt)
        if (wait === undefined || wait > timeoutMs) throw errorFor(fault)
        await sleep(wait, own)
        own.throwIfAborted()
      }
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error) || error === expired) throw error
      if (closing.signal.aborted) throw new ResourceError('unavailable', 'The provider is closed.')
      if (own.aborted) throw new ResourceError('unavailable', tooLate(timeoutMs))
      throw new ResourceError('internal', 'asking Google failed', {}, { cause: error })
    } finally {
      release()
    }
  }

  return {
    /** A page of files that a query finds. */
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
            ...(pageToken === undefined ? {} : { pageToken }),
          },
          options,
        ),
      )
      return pageOf<RawFile>(files, nextPageToken)
    },
    /** One file. Throws `not-found`, or `unavailable` where it is not a file that is asked for but what is mounted. */
    file: (fileId: string, fields: string, signal: AbortSignal, about: About = 'file'): Promise<RawFile> =>
      ask(about, signal, (drive, options) => drive.files.get({ fileId, fields, supportsAllDrives: true }, options)),
    /** What is stored of a file, or a part of it: at most so many bytes. */
    media: async (fileId: string, part: Part | undefined, most: number, signal: AbortSignal): Promise<Buffer> => {
      const range = part === undefined ? {} : { headers: { Range: `bytes=${part.start}-${part.end - 1}` } }
      const data: unknown = await ask('file', signal, (drive, options) =>
        drive.files.get(
          { fileId, alt: 'media', supportsAllDrives: true },
          { ...options, ...range, responseType: 'arraybuffer', size: most },
        ),
      )
      return bytesIn(data)
    },
    /** A document of Google's own formats, in another. */
    export: async (fileId: string, mimeType: string, most: number, signal: AbortSignal): Promise<Buffer> => {
      const data: unknown = await ask('file', signal, (drive, options) =>
        drive.files.export({ fileId, mimeType }, { ...options, responseType: 'arraybuffer', size: most }),
      )
      return bytesIn(data)
    },
    /** From where on changes will be told. */
    startToken: async ({ driveId }: Corpus, signal: AbortSignal): Promise<string> => {
      const { startPageToken } = await ask('drive', signal, (drive, options) =>
        drive.changes.getStartPageToken(
          { supportsAllDrives: true, ...(driveId === undefined ? {} : { driveId }) },
          options,
        ),
      )
      if (typeof startPageToken === 'string') return startPageToken
      throw new ResourceError('unavailable', 'Google did not say from where on changes are told.')
    },
    /** What changed. Throws {@link expired} where it is not known any more from there on. */
    changes: async (
      { driveId }: Corpus,
      pageToken: string,
      fields: string,
      signal: AbortSignal,
    ): Promise<ChangePage> => {
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
              ...(driveId === undefined ? {} : { driveId }),
            },
            options,
          ),
        (fault) => (isExpired(fault) ? expired : errorOf(fault, 'drive')),
      )
      const page = pageOf<drive_v3.Schema$Change>(changes, nextPageToken)
      return typeof newStartPageToken === 'string' ? { ...page, from: newStartPageToken } : page
    },
    drives: async (pageToken: string | undefined, signal: AbortSignal) => {
      const { drives, nextPageToken } = await ask('drive', signal, (drive, options) =>
        drive.drives.list(
          { pageSize: 100, fields: 'nextPageToken,drives(id,name)', ...(pageToken === undefined ? {} : { pageToken }) },
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
    close: () => closing.abort(),
  }
}

/** What is thrown where Google does not know any more what changed. */
export const expired = Symbol('expired')

type Work<T> = (drive: drive_v3.Drive, options: { readonly signal: AbortSignal }) => Promise<{ readonly data: T }>
/** What requests are made with. */
interface Opened {
  readonly client: Authorization
  readonly drive: drive_v3.Drive
}

type Outcome<T> = { readonly value: T } | { readonly fault: Fault }

function pageOf<T>(items: readonly T[] | undefined, next: string | null | undefined): Page<T> {
  if (items !== undefined && !Array.isArray(items))
    throw new ResourceError('unavailable', 'Google answered something else than a list.')
  return { items: items ?? [], ...(typeof next === 'string' && next !== '' ? { next } : {}) }
}

function bytesIn(data: unknown): Buffer {
  if (data instanceof ArrayBuffer) return Buffer.from(data)
  // An answer without content.
  return Buffer.alloc(0)
}

function tooLate(ms: number): string {
  return `Google did not answer within ${ms} ms. Look at whether it can be reached from here, or raise "timeout".`
}
