import { readFileSync } from 'node:fs'

/** Records the peak memory of each child process of this process, on Linux. */
export interface ChildMemory {
  /** Returns the highest peak of all children so far, in MiB. */
  peak(): number
  stop(): void
}

export function watchChildren(matches: RegExp): ChildMemory {
  let most = 0
  const look = () => {
    // proc_pid_task(5): the children that the main thread has started.
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'latin1')
    for (const pid of children.split(' ').filter((text) => text !== '')) {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'latin1')
        if (!matches.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))) continue
        most = Math.max(most, Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024)
      } catch {
        // The process has ended meanwhile.
      }
    }
  }
  const timer = setInterval(look, 10)
  return {
    peak: () => {
      look()
      return most
    },
    stop: () => clearInterval(timer),
  }
}
