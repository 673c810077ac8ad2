import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isResourceError } from '../../src/core/errors.ts'
import type { Change, Provider } from '../../src/core/provider.ts'

/** A running watch, and the changes that it has reported. */
export interface Watching {
  readonly changes: readonly Change[]
  /** Returns the paths that were not reported, also not by "everything". */
  missing(paths: readonly string[]): readonly string[]
  /** Waits until these paths were reported. */
  until(...paths: readonly string[]): Promise<void>
  /** Waits until nothing was reported for a time. */
  quiet(ms?: number): Promise<void>
  /** The reported paths, each once, in order; created and deleted ones with a `+`, and everything as `*`. */
  summary(): readonly string[]
  /** Forgets the reported changes. */
  clear(): void
  /** The error that ended the watch. */
  readonly error: unknown
  /** Resolves once the watch has ended. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** Interval of the checks, in milliseconds. */
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
      // With thousands of changes a check takes milliseconds, so it runs only after a new report.
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

/** Returns the number of directories and files that this process watches. */
export function countNotified(): number {
  let count = 0
  for (const fd of fs.readdirSync('/proc/self/fdinfo'))
    try {
      count += fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1').match(/^inotify /gm)?.length ?? 0
    } catch {
      // The descriptor was closed meanwhile.
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

/** Repeats a request until it succeeds: a store must recover by itself, and report `unavailable` meanwhile. */
export async function untilAvailable<Result>(ask: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + 40_000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isExpected = isResourceError(error) && error.kind === 'unavailable'
      if (!isExpected || performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
