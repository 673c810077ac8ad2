/**
 * An abort controller whose signal aborts when the first of several other signals aborts, or when its own `abort` is called. It is
 * far cheaper than `AbortSignal.any`, whose weak references to the signals are freed only by a full garbage collection.
 */
interface Follower extends AbortController {
  /** Stops following the other signals and removes its listeners from them. */
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
 * Creates a follower that aborts with a `TimeoutError` after a time, as `AbortSignal.timeout` does, unless it is released before.
 * Use it instead of `AbortSignal.any` with `AbortSignal.timeout`: Node 20 may collect those two as garbage while they have
 * listeners, and then they never abort.
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

/** Waits for work until a signal aborts, then rejects with the signal's reason. The work itself continues, and its result is dropped. */
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

/**
 * Makes `work` single-flight: concurrent callers share one run, with the arguments of the first caller. A call after the run has
 * ended starts another run.
 */
export function singleFlight<A extends readonly unknown[], T>(work: (...args: A) => Promise<T>) {
  let running: Promise<T> | undefined
  return {
    run: (...args: A): Promise<T> => {
      running ??= work(...args).finally(() => {
        running = undefined
      })
      return running
    },
    /** The run in flight; undefined when there is none. */
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

/** Waits `ms` milliseconds, or until the signal aborts, if there is one. Never rejects, and does not keep the process alive. */
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
