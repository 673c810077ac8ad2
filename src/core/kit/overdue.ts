/** Ends requests that take longer than a time-out, with one timer for all of them. */
export interface Overdue {
  readonly timeoutMs: number
  /** Calls back when the time is over, at most an eighth of it late, unless the returned function is called before. */
  begin(onOver: () => void): () => void
}

/** A clock that is never set back, in milliseconds. Node loads `performance` when it is first used, which a start would wait for. */
const nowMs = () => process.uptime() * 1000

export function createOverdue(timeoutMs: number): Overdue {
  /** The requests that run, the oldest first. */
  const running = new Set<{ readonly begunMs: number; readonly onOver: () => void }>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const now = nowMs()
    for (const request of running) {
      if (now - request.begunMs < timeoutMs) break
      running.delete(request)
      request.onOver()
    }
    if (running.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    timeoutMs,
    begin: (onOver) => {
      const request = { begunMs: nowMs(), onOver }
      running.add(request)
      if (timer === undefined) timer = setInterval(look, Math.max(1, Math.ceil(timeoutMs / 8)))
      else if (running.size === 1) timer.ref()
      return () => {
        running.delete(request)
        // The timer goes on for the next request, but does not keep the process alive.
        if (running.size === 0) timer?.unref()
      }
    },
  }
}
