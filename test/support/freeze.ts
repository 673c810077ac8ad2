import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** Stops a process where it is (SIGSTOP), and waits until every thread of it stands still: on a busy machine that takes a while. */
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
    // It has ended meanwhile.
    return 'x) T '
  }
}
