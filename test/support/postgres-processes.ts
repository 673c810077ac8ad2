import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the processes of a server, the main one first; none if it is stopped. */
export function processes(data: string): readonly number[] {
  const file = join(data, 'postmaster.pid')
  const main = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : Number.NaN
  return Number.isNaN(main) || !isAlive(main) ? [] : [main, ...childrenOf(main)]
}

/** Returns the running child processes of a process. */
export function childrenOf(parent: number): readonly number[] {
  if (process.platform !== 'linux') {
    const listed = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    const pairs = listed.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
    return pairs.flatMap(([pid, of]) => (of === parent && pid !== undefined ? [pid] : []))
  }
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    return parentOf(name) === parent ? [Number(name)] : []
  })
}

function parentOf(pid: string): number {
  try {
    // The name in parentheses may contain any character.
    return Number(/^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return Number.NaN
  }
}

/** Whether a process runs, so is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (process.platform !== 'linux') return true
    return !/^.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has ended meanwhile.
  }
}
