import { isResourceError } from '../../core/errors.ts'
import { sleep } from '../../core/kit/abort.ts'
import type { Degradation, Provider } from '../../core/provider.ts'
import { createHandles } from '../files/watch-handles.ts'
import { createPending, createSchedule } from '../files/watch-schedule.ts'
import { explained } from './launch-failures.ts'
import type { RefTable } from './refs.ts'
import type { Repository } from './repository.ts'
import { changesBetween, createChangedFiles, createDirectories, type GitEvent } from './watch-parts.ts'

/** Interval of checks that the git directory is still the same, in milliseconds: its parent directories are not watched. */
const sameIntervalMs = 1000
/** Maximum time that a watch waits for the state of the working tree before it is armed, in milliseconds. */
const statusTimeoutMs = 2000
/** Maximum number of ref directories watched at once. */
const maxHandles = 4096

/** A part of the repository that is compared on schedule. */
interface WatchedPart {
  readonly of: 'refs' | 'status'
}

/** The known state of the refs. */
interface RefState {
  readonly table: RefTable
  readonly shallow: ReadonlySet<string>
}

/** Returns the text of `status` for a table of refs; throws `not-found` when there is none. */
export type ReadStatus = (table: RefTable, signal: AbortSignal) => Promise<string>

/**
 * Watches a repository: refs, `HEAD`, and the state of the working tree. On events of their directories, and at an interval, the current state
 * is compared with the known one. A change is notified only once answers include it.
 *
 * @param closing Ends all watches.
 */
export function createWatch(
  repository: Repository,
  readStatus: ReadStatus,
  closing: AbortSignal,
): Required<Pick<Provider, 'watch' | 'degraded'>> {
  /** Functions that return the degradation of each running watch. */
  const running = new Set<() => Degradation | undefined>()
  return {
    watch: async (caller) => {
      const ending = new AbortController()
      const signal = AbortSignal.any([caller, closing, ending.signal])
      signal.throwIfAborted()
      const { batches, degraded, ended } = await begin(repository, readStatus, signal)
      running.add(degraded)
      void ended.finally(() => running.delete(degraded))
      return (async function* () {
        try {
          for await (const batch of batches) yield* batch
        } finally {
          ending.abort()
        }
      })()
    },
    degraded: () => {
      const found = [...running].map((degraded) => degraded())
      return found.includes('unavailable') ? 'unavailable' : found.find((one) => one !== undefined)
    },
  }
}

async function begin(repository: Repository, readStatus: ReadStatus, signal: AbortSignal) {
  const { refs, settings, launcher } = repository
  const { log, reconcile } = settings
  const parts = { refs: { of: 'refs' }, index: { of: 'status' } } as const
  const schedule = createSchedule<WatchedPart>()
  const pending = createPending()
  const heard = (what: GitEvent) => schedule.touch(parts[what])
  const overflown = () => {
    heard('refs')
    heard('index')
  }
  const handles = createHandles(maxHandles, { log, overflown })
  const directories = createDirectories(repository, handles, heard)
  const changedFiles = createChangedFiles(launcher, signal)
  /** Whether the last attempt to read the repository failed. */
  let away = false

  const look = async (): Promise<RefState> => {
    await directories.follow()
    const table = await refs.table(performance.now())
    return { table, shallow: repository.shallow() }
  }

  const lookAtStatus = () => statusOf(known.table, readStatus, signal)

  /** Compares the refs. Returns whether it sent notifications. */
  const compareRefs = async (): Promise<boolean> => {
    try {
      const now = await look()
      const before = known
      known = now
      if (!away && now.table === before.table && now.shallow === before.shallow) return false
      // Missing history that was fetched (or lost) can change any text.
      if (away || now.shallow !== before.shallow) pending.add({})
      else for (const change of await changesBetween(before.table, now.table, changedFiles)) pending.add(change)
      if (away) log('info', 'a repository can be looked at again', { repository: settings.repository })
      away = false
    } catch (error) {
      if (signal.aborted) throw error
      if (!away) {
        log('warn', 'a repository cannot be looked at now', { repository: settings.repository, error })
        pending.add({})
      }
      away = true
      schedule.later(parts.refs, sameIntervalMs)
    }
    return true
  }

  const compareStatus = async (): Promise<void> => {
    const now = await lookAtStatus()
    if (now?.text !== status?.text)
      pending.add({ path: 'status', listed: now !== undefined && 'text' in now !== 'text' in (status ?? {}) })
    status = now
  }

  /** Runs the work, then pauses the part for as long as the work took. */
  const spared = async (part: WatchedPart, work: () => Promise<unknown>): Promise<void> => {
    const start = performance.now()
    await work()
    schedule.spare(part, performance.now() - start)
  }

  const run = async (): Promise<void> => {
    let sameAt = performance.now() + sameIntervalMs
    let roundAt = performance.now() + reconcile
    while (!signal.aborted) {
      const start = performance.now()
      const due = new Set(schedule.take())
      const isRound = start >= roundAt
      if (isRound || (start >= sameAt && !(await directories.isSame().catch(() => false)))) due.add(parts.refs)
      if (start >= sameAt) sameAt = start + sameIntervalMs
      if (due.has(parts.refs))
        await spared(parts.refs, async () => {
          if (await compareRefs()) due.add(parts.index)
        })
      if (isRound || due.has(parts.index)) await spared(parts.index, compareStatus)
      // A round uses a fifth of the time at most.
      if (isRound) roundAt = performance.now() + Math.max(reconcile, 4 * (performance.now() - start))
      await schedule.idle(Math.min(sameAt, roundAt))
    }
  }

  const end = () => {
    pending.end()
    schedule.wake()
  }
  signal.addEventListener('abort', end, { once: true })
  let known: RefState
  let status: Status | undefined
  try {
    known = await look()
    const first = lookAtStatus().then((found) => {
      status = found
    })
    // The status of a large working tree may take long. Changes meanwhile are unknown, so it is reported as changed.
    if (!(await Promise.race([first.then(() => true), sleep(statusTimeoutMs).then(() => false)])))
      void first.then(
        () => pending.add({ path: 'status' }),
        () => {},
      )
    signal.throwIfAborted()
  } catch (error) {
    directories.close()
    throw explained(error)
  }
  const ended = run()
    .catch((error: unknown) => pending.end(error))
    .finally(() => {
      signal.removeEventListener('abort', end)
      directories.close()
    })
  const degraded = (): Degradation | undefined => (away ? 'unavailable' : handles.limited ? 'limited' : undefined)
  return { batches: pending.batches(), degraded, ended }
}

/** The text of the page `status`, if there is one. */
interface Status {
  readonly text?: string
}

/** Reads the page `status`. Returns undefined when git fails. */
async function statusOf(table: RefTable, readStatus: ReadStatus, signal: AbortSignal): Promise<Status | undefined> {
  try {
    return { text: await readStatus(table, signal) }
  } catch (error) {
    if (signal.aborted || !isResourceError(error)) throw error
    return error.kind === 'not-found' ? {} : undefined
  }
}
