import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sharedVariable } from './bundle-folder.ts'
import { isAlive } from './postgres-processes.ts'

// How many files of tests run at once follows from what processors have to do: some files wait most of the time, others compute.

/** So many files run at once in any case. */
const leastAtOnce = 4

/** So many files run at once at most: the processes that vitest starts. */
export const mostAtOnce = 6

/** One more file begins if so much of a processor had nothing to do. */
const idleProcessors = 0.3

const sampleMs = 200

/** Each file that runs has an entry here, with the id of its process. */
function folder(): string {
  const shared = process.env[sharedVariable]
  if (shared === undefined) throw new Error(`${sharedVariable} is not set: run this with vitest, which sets it.`)
  const path = join(shared, 'running')
  mkdirSync(path, { recursive: true })
  return path
}

/** Waits until a file of tests may begin in this process. */
export async function takeTurn(): Promise<void> {
  const running = folder()
  const own = join(running, String(process.pid))
  // It is left over if the last file of this process could not be loaded.
  rmSync(own, { force: true })
  while (!mayBegin({ ...othersIn(running), idle: 0 })) {
    const idleNow = await idle()
    // Another file may have begun while this was measured.
    if (mayBegin({ ...othersIn(running), idle: idleNow })) break
    // Those that wait do not ask at the same time.
    await sleep(Math.random() * sampleMs)
  }
  writeFileSync(own, '')
}

/** A file of tests has ended in this process. */
export function endTurn(): void {
  rmSync(join(folder(), String(process.pid)), { force: true })
}

export interface Situation {
  /** How many other files run. */
  readonly others: number
  /** How long ago the last of them began. */
  readonly sinceLastMs: number
  /** How many processors have nothing to do. */
  readonly idle: number
}

/** Whether one more file may begin. */
export function mayBegin({ others, sinceLastMs, idle }: Situation): boolean {
  if (others < leastAtOnce) return true
  // As long as a file is loaded, it does not show how much it will compute.
  return idle >= idleProcessors && sinceLastMs > 2 * sampleMs
}

function othersIn(running: string): Pick<Situation, 'others' | 'sinceLastMs'> {
  const pids = readdirSync(running).filter((pid) => isAlive(Number(pid)))
  const begun = pids.map((pid) => statSync(join(running, pid), { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return { others: pids.length, sinceLastMs: Date.now() - Math.max(0, ...begun) }
}

/** How many processors have nothing to do, measured for a moment. */
async function idle(): Promise<number> {
  const before = idleMs()
  const start = performance.now()
  await sleep(sampleMs)
  return (idleMs() - before) / (performance.now() - start)
}

const idleMs = () => cpus().reduce((sum, { times }) => sum + times.idle, 0)
