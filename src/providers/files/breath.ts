/** Time that long work runs before it yields to other work of this process, in milliseconds. */
const slice = 8

const waiting: (() => void)[] = []

function next(): void {
  // Resume one waiter per turn: all immediates of a turn run before the event loop polls sockets again.
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next)
  })
}

/**
 * Cooperative yield for long work: `if (breath.due()) await breath.take()`. Between two yields the event loop is blocked for about 8 ms,
 * however many such tasks run at once.
 */
export interface Breath {
  due(): boolean
  take(): Promise<void>
}

export function createBreath(): Breath {
  let since = performance.now()
  return {
    due: () => performance.now() - since > slice,
    take: async () => {
      await turn()
      since = performance.now()
    },
  }
}
