/**
 * A controller whose signal aborts with another one, and can be aborted by itself. It costs a fraction of `AbortSignal.any`, which
 * remembers each signal weakly: what hangs on it lives until a full collection then, and not for a moment only.
 */
export interface Follower extends AbortController {
  /** Follows no longer: nothing of it is kept by the other signal. */
  release(): void
}

export function followAbort(signal: AbortSignal): Follower {
  const controller = new AbortController()
  const abort = () => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => signal.removeEventListener('abort', abort),
  }
}
