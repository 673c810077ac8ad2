import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Change, Provider } from '../../src/core/provider.ts'

/** A watch that runs, and all that it told so far. */
export interface Watching {
  readonly changes: readonly Change[]
  /** Which of these paths were not told, not even by "everything". */
  missing(paths: readonly string[]): readonly string[]
  /** Waits until these paths were told. */
  until(...paths: readonly string[]): Promise<void>
  /** Waits until nothing was told for so long. */
  quiet(ms?: number): Promise<void>
  /** The paths that were told, each once, in order; those that came or went with a `+`, and everything as `*`. */
  summary(): readonly string[]
  /** Forgets what was told. */
  clear(): void
  /** What the watch ended with. */
  readonly error: unknown
  /** Resolves once the watch has ended. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** How long to wait between two looks at what was told, in milliseconds. */
const lookMs = 10

export async function startWatching(provider: Provider): Promise<Watching> {
  const abort = new AbortController()
  const source = await provider.watch?.(abort.signal)
  if (source === undefined) throw new Error('the provider cannot watch')
  let changes: Change[] = []
  let last = performance.now()
  let error: unknown
  const listen = async () => {
    try {
      for await (const change of source) {
        changes.push(change)
        last = performance.now()
      }
    } catch (thrown) {
      error = thrown
    }
  }
  const ended = listen()
  const missing = (paths: readonly string[]) => {
    const told = new Set(changes.map(({ path }) => path))
    return told.has(undefined) ? [] : paths.filter((path) => !told.has(path))
  }
  return {
    get changes() {
      return changes
    },
    get error() {
      return error
    },
    missing,
    until: async (...paths) => {
      const end = performance.now() + 15_000
      // With thousands of changes, what is missing takes milliseconds to find: only after more was told.
      let counted = -1
      for (let left = paths; left.length > 0; ) {
        if (performance.now() > end) throw new Error(`not told: ${left.slice(0, 5)} and ${left.length - 5} more`)
        await sleep(lookMs)
        if (changes.length === counted) continue
        counted = changes.length
        left = missing(paths)
      }
    },
    quiet: async (ms = 250) => {
      last = Math.max(last, performance.now() - ms / 2)
      while (performance.now() - last < ms) await sleep(10)
    },
    summary: () => {
      const all = new Map<string, boolean>()
      for (const { path = '*', listed } of changes) all.set(path, all.get(path) === true || listed === true)
      return [...all].map(([path, listed]) => (listed ? `+${path}` : path)).sort()
    },
    clear: () => {
      changes = []
    },
    ended,
    stop: async () => {
      abort.abort()
      await ended
    },
  }
}

/** How many directories and files this process is notified of by the system. */
export function countNotified(): number {
  let count = 0
  for (const fd of fs.readdirSync('/proc/self/fdinfo'))
    try {
      count += fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1').match(/^inotify /gm)?.length ?? 0
    } catch {
      // Closed meanwhile.
    }
  return count
}

/** Waits until a condition holds. */
export async function eventually(condition: () => boolean, what: string, ms = 15_000): Promise<void> {
  const end = performance.now() + ms
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await sleep(lookMs)
  }
}
