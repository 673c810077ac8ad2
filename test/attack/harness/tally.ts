import type { RunnerTask } from 'vitest'
import type { Target } from './target.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Number of inputs that a test sent to servers. */
    inputs?: number
  }
}

let sent = 0
let before = 0
let asked = new Set<Target>()

/** Counts the inputs to servers under attack, for each test. */
export const tally = {
  /** Every function that writes to a server calls this. */
  add: (target: Target): void => {
    sent++
    asked.add(target)
  },
  begin: (): void => {
    before = sent
    asked = new Set()
  },
  /** Whether the test sent a request to a server. */
  hasAsked: (target: Target): boolean => asked.has(target),
  end: (task: Pick<RunnerTask, 'meta'>): void => {
    task.meta.inputs = sent - before
  },
}
