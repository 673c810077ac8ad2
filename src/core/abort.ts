/**
 * A controller whose signal aborts with the first of other signals, and can be aborted by itself. It costs a fraction of `AbortSignal.any`, which
 * remembers each signal weakly: what hangs on it lives until a full collection then, and not for a moment only.
 */
export interface Follower extends AbortController {
  /** Follows no longer: nothing of it is kept by the other signals. */
  release(): void
}

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
 * A follower that aborts by itself after a time, unless it is released before: with a `TimeoutError`, as `AbortSignal.timeout` does. To be used in the place of `AbortSignal.any` with
 * `AbortSignal.timeout`: Node 20 may collect those two as garbage while somebody listens, and then they never abort.
 */
export function followFor(signals: AbortSignal | readonly AbortSignal[], timeoutMs: number): Follower {
  const follower = followAbort(...[signals].flat())
  const timer = setTimeout(() => follower.abort(new DOMException('The time is over.', 'TimeoutError')), timeoutMs)
  return {
    ...follower,
    release: () => {
      clearTimeout(timer)
      follower.release()
    },
  }
}

/** Awaits work until a signal aborts; then it rejects with the signal's reason, and the work goes on unheard. */
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
