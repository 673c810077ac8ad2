import type { RunnerTask } from 'vitest'
import type { Target } from './attack-target.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** How many inputs a test sent to the servers. */
    inputs?: number
  }
}

let sent = 0
let before = 0
let asked = new Set<Target>()

/** Counts what is sent to servers under attack, for each test. */
export const tally = {
  /** Called by whatever writes to a server. */
  add: (target: Target): void => {
    sent++
    asked.add(target)
  },
  begin: (): void => {
    before = sent
    asked = new Set()
  },
  /** Whether the test wrote to a server. */
  hasAsked: (target: Target): boolean => asked.has(target),
  end: (task: Pick<RunnerTask, 'meta'>): void => {
    task.meta.inputs = sent - before
  },
}
