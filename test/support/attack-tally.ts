import type { RunnerTask } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** How many inputs a test sent to the servers. */
    inputs?: number
  }
}

let sent = 0
let before = 0

/** Counts what is sent to servers under attack, for each test. */
export const tally = {
  /** Called by whatever writes to a server. */
  add: (): void => {
    sent++
  },
  begin: (): void => {
    before = sent
  },
  end: (task: Pick<RunnerTask, 'meta'>): void => {
    task.meta.inputs = sent - before
  },
}
