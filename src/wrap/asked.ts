import { ResourceError } from '../core/errors.ts'
import type { Context } from '../core/provider.ts'

/** Ends requests that take longer than a time-out, with one timer for all of them. */
export interface Overdue {
  /** Calls back on time-out, at most an eighth of it late, unless the returned function is called before. */
  begin(onOver: (error: ResourceError) => void): () => void
}

export function createOverdue(timeoutMs: number): Overdue {
  /** The requests that run, the oldest first. */
  const running = new Set<{ readonly begunMs: number; readonly onOver: (error: ResourceError) => void }>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const nowMs = performance.now()
    for (const request of running) {
      if (nowMs - request.begunMs < timeoutMs) break
      running.delete(request)
      request.onOver(new ResourceError('unavailable', `The source took longer than ${timeoutMs} ms.`))
    }
    if (running.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    begin: (onOver) => {
      const request = { begunMs: performance.now(), onOver }
      running.add(request)
      if (timer === undefined) timer = setInterval(look, Math.max(1, Math.ceil(timeoutMs / 8)))
      else if (running.size === 1) timer.ref()
      return () => {
        running.delete(request)
        // The timer stays for the next request, but does not keep the process alive.
        if (running.size === 0) timer?.unref()
      }
    },
  }
}

/** A request to the source, and its signal, which aborts with that of the caller and on time-out. */
export interface Asked {
  /** Rejects on time-out, and when the caller aborts, whatever the work does. */
  run<T>(work: (context: Context) => Promise<T>): Promise<T>
  /** Ends the time-out, and stops following the signal of the caller. */
  release(): void
}

export function createAsked(context: Context, overdue: Overdue): Asked {
  const { signal } = context
  let ended: { readonly reason: unknown } | undefined
  // Created on first access, because few sources look at the signal before they answer from memory.
  let controller: AbortController | undefined
  let reject: (reason: unknown) => void = () => {}
  let stop = () => {}
  const end = (reason: unknown) => {
    ended ??= { reason }
    controller?.abort(reason)
    reject(reason)
  }
  const onAbort = () => end(signal.reason)
  // The signal may have aborted just as a slot became free.
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort)
  const inner: Context = {
    ...context,
    get signal() {
      if (controller === undefined) {
        controller = new AbortController()
        if (ended !== undefined) controller.abort(ended.reason)
      }
      return controller.signal
    },
  }
  return {
    run: (work) =>
      new Promise((resolve, rejectRun) => {
        if (ended !== undefined) return rejectRun(ended.reason)
        reject = rejectRun
        stop = overdue.begin(end)
        work(inner).then((answer) => {
          // A stream may last as long as its chunks arrive in time.
          stop()
          resolve(answer)
        }, rejectRun)
      }),
    release: () => {
      stop()
      signal.removeEventListener('abort', onAbort)
    },
  }
}
