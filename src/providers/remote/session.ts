import { isConnectionLostError, isErrorAnswer, isUnknownMethodError, type RemoteView } from '../../client/index.ts'
import {
  type ErrorDetail,
  type ErrorReason,
  invalid,
  isResourceError,
  notFound,
  ResourceError,
  unavailable,
} from '../../core/errors.ts'
import { untilAborted } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'

export type ServerConnection = ReturnType<typeof createServerConnection>

/** Pause after the second of failures in a row, in milliseconds. It doubles with each further one, up to {@link maxPauseMs}. */
const firstPauseMs = 500
const maxPauseMs = 60_000
/** Duration of a connection, in milliseconds, after which its end resets the number of failures. */
const stableMs = 10_000

/**
 * Creates the connections to a server that may die at any time. A request opens a new connection, but not before the pause after a failure
 * is over.
 */
export function createServerConnection(connect: (signal: AbortSignal) => Promise<RemoteView>, log: Log) {
  const closing = new AbortController()
  let current: Promise<RemoteView> | undefined
  let failures = 0
  let notBefore = 0

  // There is no pause after the first failure, because a restarted server is back at once.
  const noteFailure = (): number => {
    const pauseMs = failures === 0 ? 0 : Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(failures - 1, 20))
    failures++
    notBefore = performance.now() + pauseMs
    return pauseMs
  }

  const begin = async (): Promise<RemoteView> => {
    const view = await connect(closing.signal).catch((error: unknown) => {
      if (!closing.signal.aborted) log('warn', 'the server cannot be reached', { failures: failures + 1, error })
      noteFailure()
      throw error
    })
    const since = performance.now()
    if (failures > 0) log('info', 'the server answers again', { failures })
    void view.over.then((reason) => {
      if (closing.signal.aborted || dropped.has(view)) return
      drop(view)
      if (performance.now() - since >= stableMs) failures = 0
      const pauseMs = noteFailure()
      log('warn', 'the connection to the server has ended: it is opened again when it is needed', {
        failures,
        pause: pauseMs,
        reason: reason.message,
      })
    })
    return view
  }

  const dropped = new WeakSet<RemoteView>()
  const views = new WeakMap<RemoteView, Promise<RemoteView>>()
  const drop = (view: RemoteView): void => {
    if (dropped.has(view)) return
    dropped.add(view)
    if (views.get(view) === current) current = undefined
    view.close().catch((error: unknown) => log('debug', 'a lost connection cannot be closed', { error }))
  }

  /**
   * Returns the open connection, or opens one.
   *
   * @throws ResourceError `unavailable` if it cannot be opened, and at once while the pause after a failure lasts.
   */
  const open = async (signal: AbortSignal): Promise<RemoteView> => {
    signal.throwIfAborted()
    if (closing.signal.aborted) throw unavailable('The mount is closed.')
    if (current === undefined) {
      const waitMs = notBefore - performance.now()
      if (waitMs > 0) {
        const retryAfter = Math.ceil(waitMs / 1000)
        throw unavailable('The server failed a moment ago. Try again later.', { retryAfter })
      }
      const opening = begin()
      current = opening
      opening.then(
        (view) => views.set(view, opening),
        () => {
          if (current === opening) current = undefined
        },
      )
    }
    return untilAborted(current, signal)
  }

  return {
    open,
    /** Sends a request to the server. A request that fails because the connection was lost is retried once on a new one. */
    ask: async <T>(work: (view: RemoteView) => Promise<T>, signal: AbortSignal): Promise<T> => {
      const view = await open(signal)
      try {
        return await work(view)
      } catch (error) {
        signal.throwIfAborted()
        if (!isConnectionLostError(error)) throw error
        drop(view)
        return work(await open(signal))
      }
    },
    /** Sends a request that must not be repeated, even if its connection is lost, because it may have had an effect. */
    askOnce: async <T>(work: (view: RemoteView) => Promise<T>, view: RemoteView, signal: AbortSignal): Promise<T> => {
      try {
        return await untilAborted(work(view), signal)
      } catch (error) {
        signal.throwIfAborted()
        if (isConnectionLostError(error)) drop(view)
        throw error
      }
    },
    close: async () => {
      closing.abort()
      const view = await current?.catch(() => undefined)
      await view?.close()
    },
  }
}

/** Error reasons that are relayed from a server to the readers of its resources. Any other reason becomes `refused`. */
const knownReasons = [
  'range',
  'query',
  'parameter',
  'not-a-directory',
  'unknown-name',
] as const satisfies readonly ErrorReason[]

const knownReason = (reason: ErrorReason | undefined) => knownReasons.find((one) => one === reason)

/** Time after which a client should retry if the server says that it cannot answer now, in seconds. */
const retryAfterSeconds = 2

/**
 * Converts a failure of the server to an error of this process. The message of the server is untrusted text, and becomes the message only
 * of errors `unavailable` and `internal`.
 */
export function translateRemoteError(error: unknown): ResourceError {
  if (!isResourceError(error))
    return new ResourceError('internal', 'The client of the mounted server failed.', {}, { cause: error })
  const options = { cause: error }
  switch (error.kind) {
    case 'not-found':
      return new ResourceError('not-found', 'the server reports that the resource does not exist', {}, options)
    case 'invalid': {
      const { reason } = error.detail
      const clearReason = knownReason(reason) ?? 'refused'
      return invalid('The server behind this mount refuses the request.', clearReason)
    }
    case 'too-large': {
      const { limit } = error.detail
      const detail: ErrorDetail = { reason: 'too-large', ...(typeof limit === 'number' ? { limit } : {}) }
      return new ResourceError('too-large', tooLargeMessage(error), detail, options)
    }
    case 'unavailable':
      return new ResourceError(
        'unavailable',
        error.message,
        isErrorAnswer(error) ? { retryAfter: retryAfterSeconds } : {},
        options,
      )
    case 'internal':
      return new ResourceError('internal', error.message, {}, options)
  }
}

function tooLargeMessage(error: ResourceError): string {
  if (isErrorAnswer(error)) return 'The server behind this mount refuses the request, because the answer is too large.'
  return error.detail.reason === 'too-large'
    ? 'The answer of the server is longer than "maxBytes" of the mount.'
    : error.message
}

/** Converts a failure to read. Without parameters, an error `invalid` of another reason means that the server does not have the URI. */
export function toReadError(error: unknown, hasParams: boolean): ResourceError {
  if (isUnknownMethodError(error)) return notFound('the server has no resources to read')
  const isForeign = isResourceError(error, 'invalid') && knownReason(error.detail.reason) === undefined
  if (isForeign && !hasParams) return new ResourceError('not-found', 'the server refuses the URI', {}, { cause: error })
  return translateRemoteError(error)
}

/** Converts a failure to list to `unavailable`, so that other mounts are still listed. */
export function toListError(error: unknown): ResourceError {
  if (isResourceError(error, 'unavailable')) return translateRemoteError(error)
  const message = error instanceof Error ? error.message : String(error)
  return unavailable(`The server cannot be listed: ${message}`, {}, error)
}
