import { readFileSync } from 'node:fs'
import type { RunnerTask } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** What a file of tests took. */
    processor?: ProcessorSeconds
  }
}

/** For how long processors were at work, in seconds. */
export interface ProcessorSeconds {
  readonly own: number
  /** For the processes that this one started, once they have ended, and for theirs. */
  readonly children: number
}

function processorSeconds(): ProcessorSeconds {
  const { user, system } = process.cpuUsage()
  return { own: (user + system) / 1e6, children: childrenSeconds() }
}

/** Other systems than Linux do not tell. */
function childrenSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // After the name, which may hold spaces: the state is field 3; 16 and 17 are the children's time, in ticks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
  } catch {
    return 0
  }
}

/** USER_HZ, which is the same on all architectures that Node runs on. */
const ticksPerSecond = 100

const counted: unique symbol = Symbol.for('hikidashi: the processor time of this process that files before have taken')
const shared = globalThis as typeof globalThis & { [counted]?: ProcessorSeconds }

/** Writes into what is told of a file what it took, at its end. The first file of a process is charged with its start. */
export function countProcessors(file: Pick<RunnerTask, 'meta'>): void {
  const now = processorSeconds()
  const before = shared[counted] ?? { own: 0, children: 0 }
  file.meta.processor = { own: now.own - before.own, children: now.children - before.children }
  shared[counted] = now
}
