import { readFileSync } from 'node:fs'
import type { RunnerTask } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** The CPU time of a test file. */
    processor?: ProcessorSeconds
  }
}

/** CPU time, in seconds. */
export interface ProcessorSeconds {
  readonly own: number
  /** CPU time of ended child processes, and of theirs. */
  readonly children: number
}

function processorSeconds(): ProcessorSeconds {
  const { user, system } = process.cpuUsage()
  return { own: (user + system) / 1e6, children: childrenSeconds() }
}

/** Only Linux reports it. */
function childrenSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // The fields after the name, which may contain spaces: field 3 is the state; 16 and 17 are the CPU time of children, in ticks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
  } catch {
    return 0
  }
}

/** USER_HZ, the same on all architectures of Node. */
const ticksPerSecond = 100

const counted: unique symbol = Symbol.for('hikidashi: the processor time of this process that files before have taken')
const shared = globalThis as typeof globalThis & { [counted]?: ProcessorSeconds }

/** Adds the CPU time of a test file to its metadata, at its end. The first file of a process includes its start. */
export function countProcessors(file: Pick<RunnerTask, 'meta'>): void {
  const now = processorSeconds()
  const before = shared[counted] ?? { own: 0, children: 0 }
  file.meta.processor = { own: now.own - before.own, children: now.children - before.children }
  shared[counted] = now
}
