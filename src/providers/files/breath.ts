/** Time that long work takes of one turn of the event loop before it yields to other work of this process, in milliseconds. */
const sliceMs = 8

const waiting: (() => void)[] = []
/** Whether those that wait are being resumed, in this turn or the next one. */
let isResuming = false
/** When such work began in this turn. Undefined: there was none yet. */
let begun: number | undefined

/** The event loop does not wait for sockets while an immediate is due: only work lies between the beginning and the end. */
function begin(): number {
  if (begun === undefined) setImmediate(end)
  begun = performance.now()
  return begun
}

function end(): void {
  begun = undefined
}

/** Resumes those that wait, one after the other, until the slice of this turn is used up. */
function next(): void {
  begin()
  resume()
}

function resume(): void {
  waiting.shift()?.()
  // A tick runs when no microtask is left: the resumed work has come to its end, or waits for something else.
  queueMicrotask(() => process.nextTick(goOn))
}

function goOn(): void {
  if (waiting.length === 0) isResuming = false
  else if (breath.due()) setImmediate(next)
  else resume()
}

/**
 * Cooperative yield for long work: `if (breath.due()) await breath.take()`. Between two yields the event loop is blocked for about 8 ms,
 * however many such tasks run at once: they share the slice of a turn, and those that have waited longest go first.
 */
export const breath = {
  due: (): boolean => performance.now() - (begun ?? begin()) > sliceMs,
  take: (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (!isResuming) setImmediate(next)
      isResuming = true
    }),
}
