import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Listed } from './listing.ts'
import type { Run } from './run.ts'

/** Number of listings left early, and the growth that counts as a leak: less growth can come from other work in the process. */
const repeats = 20
const leaks = 16
/** Time that open resources may take to close, in milliseconds. */
const patience = 1000

/**
 * Leaves listings at their first entry and in their middle, and counts what stays open: files and directories (where
 * the operating system tells), timers, sockets, child processes.
 */
export async function checkLeaving(run: Run, { entries }: Listed): Promise<void> {
  if (entries.length === 0 || run.broken('list-ends')) return
  const first = entries[0]?.path
  const leave = (count: number) => {
    let seen = 0
    return run.walk('list-stop', {}, () => ++seen < count)
  }
  // Warm up once: a resource that a provider keeps open (a connection, a cache) is not a leak.
  await leave(Math.ceil(entries.length / 2))
  const before = await quiet()
  for (let i = 0; i < repeats; i++) if ((await leave(1)) === 'failed') return
  const deadline = Date.now() + patience
  let growth = grown(before)
  while (growth.length > 0 && Date.now() < deadline) {
    await sleep(10)
    growth = grown(before)
  }
  if (growth.length > 0) run.fail('list-stop', `after ${repeats} listings, left at the first entry: ${growth}`, first)
}

/** Counts the open resources of this process once their number is stable, or after {@link patience}. */
async function quiet(): Promise<ReadonlyMap<string, number>> {
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0)
  const deadline = Date.now() + patience
  for (let counts = resources(); ; ) {
    await sleep(10)
    const later = resources()
    if (total(later) === total(counts) || Date.now() > deadline) return later
    counts = later
  }
}

/** Counts the open resources of this process by kind. */
function resources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  try {
    counts.set('open file', readdirSync('/proc/self/fd').length)
  } catch {
    // Only Linux has /proc/self/fd.
  }
  return counts
}

/** The kinds that grew as if every listing had left one behind, in words. */
function grown(before: ReadonlyMap<string, number>): string {
  return [...resources()]
    .map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const)
    .filter(([, more]) => more >= leaks)
    .map(([kind, more]) => `${more} more ${kind}`)
    .join(', ')
}
