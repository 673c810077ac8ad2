/** How long work goes on before other work of this process has its turn, in milliseconds. */
const slice = 8

const waiting: (() => void)[] = []

function next(): void {
  // One at a time: the immediates of one turn of the event loop all run before it looks at a socket again.
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next)
  })
}

/**
 * Lets long work take breath: `if (breath.due()) await breath.take()`. Between two breaths the event loop is kept for
 * about 8 ms, however much such work runs at a time.
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
