import { readdirSync, readFileSync } from 'node:fs'

/** Follows how much memory the children of this process have held, each at its most. Linux only. */
export interface ChildMemory {
  /** The most that any of them has held so far, in MiB. */
  peak(): number
  stop(): void
}

export function watchChildren(matches: RegExp): ChildMemory {
  let most = 0
  const look = () => {
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'latin1')
        if (/^PPid:\s+(\d+)/m.exec(status)?.[1] !== String(process.pid)) continue
        if (!matches.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))) continue
        most = Math.max(most, Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024)
      } catch {
        // It has ended meanwhile.
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
