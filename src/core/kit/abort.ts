/**
 * An abort controller that follows other signals. It is cheaper than `AbortSignal.any`, whose references to the signals
 * stay until a full garbage collection.
 */
interface Follower extends AbortController {
  /** Removes the listeners from the other signals. */
  release(): void
}

/** Creates a controller whose signal aborts with the first of several signals. Release it when its work has ended. */
export function followAbort(...signals: readonly AbortSignal[]): Follower {
  const controller = new AbortController()
  function abort(this: AbortSignal) {
    controller.abort(this.reason)
  }
  const aborted = signals.find((signal) => signal.aborted)
  if (aborted !== undefined) abort.call(aborted)
  else for (const signal of signals) signal.addEventListener('abort', abort, { once: true })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => {
      for (const signal of signals) signal.removeEventListener('abort', abort)
    },
  }
}

/**
 * Creates a follower that also aborts with a `TimeoutError` after a time, unless it is released before. In Node 20,
 * `AbortSignal.any` with `AbortSignal.timeout` may be collected as garbage while it has listeners, and then does not
 * abort.
 */
export function followAbortFor(signals: AbortSignal | readonly AbortSignal[], timeoutMs: number): Follower {
  const follower = followAbort(...[signals].flat())
  const timer = setTimeout(
    () => follower.abort(new DOMException('The operation timed out.', 'TimeoutError')),
    timeoutMs,
  )
  return {
    ...follower,
    release: () => {
      clearTimeout(timer)
      follower.release()
    },
  }
}

/**
 * Rejects with the reason of the signal if it aborts before the work has ended. The work itself continues, and its
 * result is dropped.
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  let onAbort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Returns a promise with its `resolve` and `reject`, like `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T>() {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise
    reject = rejectPromise
  })
  return { promise, resolve, reject }
}

/** Makes `work` single-flight: concurrent callers share one run, with the arguments of the first caller. */
export function singleFlight<A extends readonly unknown[], T>(work: (...args: A) => Promise<T>) {
  let running: Promise<T> | undefined
  return {
    run: (...args: A): Promise<T> => {
      running ??= work(...args).finally(() => {
        running = undefined
      })
      return running
    },
    get running() {
      return running
    },
  }
}

/** Creates an auto-reset event: `set` wakes the pending `wait`. If none is pending, the next `wait` resolves at once. */
export function createAutoResetEvent() {
  let isSet = false
  let wake = () => {}
  return {
    set: () => {
      isSet = true
      wake()
    },
    wait: async (): Promise<void> => {
      if (!isSet)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      isSet = false
    },
  }
}

/** Waits `ms` milliseconds, or until the signal aborts. Does not reject, and does not keep the process alive. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const finish = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    timer.unref()
    signal?.addEventListener('abort', finish)
  })
}
