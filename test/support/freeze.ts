import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** Stops a process (SIGSTOP), and waits until all its threads have stopped. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  if (process.platform !== 'linux') return
  const moving = () => readdirSync(`/proc/${pid}/task`).filter((thread) => !/^.*\) [Tt] /s.test(statOf(pid, thread)))
  await expect.poll(moving, { timeout: 30_000, interval: 10 }).toEqual([])
}

function statOf(pid: number, thread: string): string {
  try {
    return readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
  } catch {
    // The process has ended meanwhile.
    return 'x) T '
  }
}
