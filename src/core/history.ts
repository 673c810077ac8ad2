import { createHash, randomBytes } from 'node:crypto'
import { valueOr } from './errors.ts'
import { compileGlob, type PathTest } from './glob.ts'
import {
  changesBetween,
  type KeptMountChanges,
  type KeptRun,
  keptRunKey,
  type LoggedChange,
  listingOf,
} from './kept-run.ts'
import { untilAborted } from './kit/abort.ts'
import type { Mounted } from './mount.ts'
import { type MountWatch, withoutFinalSlash } from './mount-watch.ts'
import { type CatalogState, createCursorSeal } from './paging.ts'
import { canonicalPath } from './path.ts'
import type { Change, Principal } from './provider.ts'
import { type ParsedUri, parseUri } from './uri.ts'
import type { CallOptions, ChangeFilter, ChangeHistory, ChangePage, ChangePageQuery, ChangeReader } from './view.ts'

const maxPaths = 10_000
/** Time without readers after which the mounts are no longer watched, in milliseconds. */
const idleMs = 3_600_000
/** Time after a change until the log is stored, and time-out of storing it at the end, in milliseconds. */
const [keepMs, lastKeepMs] = [60_000, 1000]

/**
 * Creates a log of the latest change of each path of a mount, ordered by the numbers of the changes. Its size is bounded: `gap` is the
 * number up to which changes may be missing.
 */
function createMountLog({ changes, gap: first }: Pick<KeptMountChanges, 'changes' | 'gap'>) {
  const byPath = new Map(changes.map((noticed) => [canonicalPath(noticed.path), noticed] as const))
  let entries = [...changes]
  let gap = first
  return {
    get gap() {
      return gap
    },
    changes: (): readonly LoggedChange[] => [...byPath.values()],
    add: (number: number, { path, listed = false, aliases = [] }: Change, time: number): void => {
      if (path === undefined) {
        gap = number
        return
      }
      const key = canonicalPath(path)
      const replaced = byPath.get(key)
      const noticed = { number, path, listed: listed || replaced?.listed === true, aliases, time }
      byPath.delete(key)
      byPath.set(key, noticed)
      entries.push(noticed)
      const [oldest] = byPath
      if (byPath.size > maxPaths && oldest !== undefined) {
        byPath.delete(oldest[0])
        gap = Math.max(gap, oldest[1].number)
      }
      if (entries.length > 2 * byPath.size + 100) entries = [...byPath.values()]
    },
    /** Yields the latest change of each path, in order, if its number is greater than `number`. */
    *after(number: number): Generator<LoggedChange> {
      let [low, high] = [0, entries.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((entries[middle]?.number ?? 0) <= number) low = middle + 1
        else high = middle
      }
      for (const entry of entries.slice(low)) if (byPath.get(canonicalPath(entry.path)) === entry) yield entry
    },
  }
}

type MountLog = ReturnType<typeof createMountLog>

interface Run {
  /** Random id. The numbers of another run mean nothing, unless this run continues it. */
  readonly id: string
  readonly key: string
  readonly seal: ReturnType<typeof createCursorSeal>
  readonly continued: KeptRun['continued']
  readonly logs: ReadonlyMap<Mounted, MountLog>
  end(): void
}

const maxContinued = 100

function runIdAt({ id, continued }: Run, number: number): string {
  return continued.find(({ last }) => number <= last)?.id ?? id
}

interface HistoryParts {
  readonly state: CatalogState
  readonly route: (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined
  readonly watches: ReadonlyMap<Mounted, MountWatch>
  /** Opens a share of the limits of subscriptions for a principal. */
  readonly openShare: (principal: string) => { close(): void }
}

function createKeeping({ state, watches }: Pick<HistoryParts, 'state' | 'watches'>, lastNumber: () => number) {
  let storedNumber: number | undefined
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()

  const load = async (): Promise<KeptRun | undefined> => {
    const text = await (await state.earlier()).lasting?.get(keptRunKey)
    return text === undefined ? undefined : (JSON.parse(text) as KeptRun)
  }
  const list = async (signal: AbortSignal) => {
    const listings = new Map<string, KeptMountChanges['listing']>()
    for (const [mount, watch] of watches) {
      const listing = await listingOf(mount, signal)
      // The log must have every change that the listing shows, so the watch looks at the source once more.
      const isWhole = listing !== undefined && (await watch.catchUp(signal).catch(() => false))
      listings.set(mount.address.text, isWhole ? [...listing] : undefined)
    }
    return listings
  }
  const keepNow = async ({ id, key, continued, logs }: Run, signal: AbortSignal, isLast: boolean): Promise<void> => {
    const { lasting, clean } = await state.earlier()
    const from = lastNumber()
    if (lasting === undefined || storedNumber === from) return
    const listings = await list(signal)
    if (signal.aborted) {
      const before = isLast ? await load() : undefined
      if (before?.id !== id) return
      // There was no time to list. The next run compares with the earlier listings: it finds some changes a second time, but misses none.
      for (const [address, { listing }] of Object.entries(before.mounts)) listings.set(address, listing)
    }
    const mountOf = ([{ address }, log]: readonly [Mounted, MountLog]) =>
      [address.text, { gap: log.gap, changes: log.changes(), listing: listings.get(address.text) }] as const
    const mounts = Object.fromEntries(Array.from(logs, mountOf))
    const text = JSON.stringify({ id, key, last: lastNumber(), continued, mounts } satisfies KeptRun)
    // Store nothing if a path contains a known secret. A path with the secret replaced would be wrong.
    if (clean(text) !== text) return
    await lasting.put(keptRunKey, text)
    storedNumber = from
  }
  const cancel = (): void => {
    clearTimeout(timer)
    timer = undefined
  }

  return {
    /** Returns the run that was kept last. Undefined if there is none that can be read. */
    load: async (): Promise<KeptRun | undefined> => {
      storedNumber = undefined
      try {
        return await load()
      } catch (error) {
        state.log('warn', 'the log of changes before this start could not be read', { error })
        return undefined
      }
    },
    /**
     * Stores a run, once an earlier call has stored its own.
     * @param isLast Whether the run has ended: if its mounts are not listed in time, it is stored with their earlier
     * listings.
     */
    keep: (run: Run, signal: AbortSignal, isLast = false): Promise<void> => {
      cancel()
      running = running
        .then(() => keepNow(run, signal, isLast))
        .catch((error: unknown) => state.log('warn', 'the log of changes could not be stored', { error }))
      return running
    },
    /** Keeps a run some time after the first of many changes. */
    later: (keep: () => Promise<void>): void => {
      timer ??= setTimeout(() => void keep(), keepMs).unref()
    },
    cancel,
  }
}

/** The runs of the log, one after the other: each begins with its first reader, and ends when nobody has read it for some time. */
function createRuns({ state, watches }: Pick<HistoryParts, 'state' | 'watches'>) {
  let last = 0
  let run: Promise<Run> | undefined
  let idle: NodeJS.Timeout | undefined
  const followers = new Set<(mount: Mounted, changes: readonly Change[]) => void>()

  const keeping = createKeeping({ state, watches }, () => last)
  let stopping = new AbortController()
  const end = async (): Promise<void> => {
    clearTimeout(idle)
    const end = run
    run = undefined
    if (end === undefined) return
    stopping.abort()
    const current = await end
    await keeping.keep(current, AbortSignal.timeout(lastKeepMs), true)
    current.end()
  }
  const touch = (): void => {
    clearTimeout(idle)
    idle = setTimeout(() => (followers.size === 0 ? void end() : touch()), idleMs)
    idle.unref()
  }
  /** Adds the changes in a mount since a run was kept, or a gap if they are unknown. */
  const addMissed = async (
    mount: Mounted,
    log: MountLog,
    before: KeptMountChanges | undefined,
    signal: AbortSignal,
  ) => {
    const now = before?.listing === undefined ? undefined : await listingOf(mount, signal)
    const missed = now === undefined ? [{}] : changesBetween(new Map(before?.listing), now)
    for (const change of missed) log.add(++last, change, Date.now())
  }
  const start = async (): Promise<Run> => {
    const before = await keeping.load()
    const keptOf = (mount: Mounted) => before?.mounts[mount.address.text]
    const logOf = (mount: Mounted) => createMountLog(keptOf(mount) ?? { gap: 0, changes: [] })
    const logs = new Map(Array.from(watches.keys(), (mount) => [mount, logOf(mount)] as const))
    last = Math.max(last, before?.last ?? 0)
    stopping = new AbortController()
    const { signal } = stopping
    // A watch that was not armed first would report everything as changed when it begins.
    await Promise.all(Array.from(watches.values(), (watch) => watch.arm(signal)))
    const stops = Array.from(watches, ([mount, watch]) =>
      watch.addWhole((changes) => {
        const time = Date.now()
        for (const change of changes) logs.get(mount)?.add(++last, change, time)
        for (const hear of followers) hear(mount, changes)
        keeping.later(() => keeping.keep(started, signal))
      }),
    )
    const stopAll = () => {
      keeping.cancel()
      for (const stop of stops) stop()
    }
    if (before !== undefined)
      await Promise.all(Array.from(logs, ([mount, log]) => addMissed(mount, log, keptOf(mount), signal)))
    const key = before?.key ?? randomBytes(32).toString('base64')
    const started: Run = {
      ...{ id: randomBytes(16).toString('base64url'), key, logs, end: stopAll },
      seal: createCursorSeal(Buffer.from(key, 'base64')),
      continued: [...(before?.continued ?? []), ...(before === undefined ? [] : [before])]
        .map(({ id, last }) => ({ id, last }))
        .slice(-maxContinued),
    }
    void keeping.keep(started, signal)
    return started
  }
  /**
   * Returns the run, once each mount that can be watched now is watched. Another mount gets a gap when its watch
   * begins.
   */
  const begin = async (signal: AbortSignal): Promise<Run> => {
    touch()
    run ??= start().catch((error: unknown) => {
      run = undefined
      throw error
    })
    return untilAborted(run, signal)
  }

  return {
    begin,
    end,
    get last() {
      return last
    },
    followers,
  }
}

/**
 * Creates the log of the changes of all mounts, from which clients read what they have missed. A position is a number
 * of the log. Clients get it sealed and with random bytes, so that it does not reveal whether anything changed that
 * they may not see.
 * With a store, the log and the listings of the mounts are kept. The next run, also of another process, continues the
 * log and adds the changes in between that a listing shows. A mount whose listings do not show each change has a gap.
 */
export function createHistory({ state, route, watches, openShare }: HistoryParts) {
  const runs = createRuns({ state, watches })

  const open = (principal: Principal, filter: ChangeFilter): ChangeReader => {
    const isRelevant = compileFilter(filter, route)
    const scope = ['changes', principal.id]
    const seal = (current: Run, number: number) =>
      current.seal.seal(scope, JSON.stringify([current.id, number, randomBytes(6).toString('base64url')]))
    /** Returns the number of a position. Undefined for one of another run or principal, and for any other text. */
    const numberOf = ({ id, continued, seal }: Run, position: string): number | undefined => {
      const text = valueOr(() => seal.open(scope, position), undefined, 'invalid')
      const [of, number = 0] = text === undefined ? [] : (JSON.parse(text) as readonly [string, number])
      if (of === id) return number
      // The next process does not know the changes that an earlier run reported after it was last stored.
      return continued.some((one) => one.id === of && number <= one.last) ? number : undefined
    }
    const sees = (mount: Mounted, { path, aliases }: LoggedChange) =>
      [path, ...aliases].every((one) =>
        one === '' || one.endsWith('/') ? mount.reach(principal, one) !== 'none' : mount.access(principal, one),
      )

    return {
      now: async ({ signal = new AbortController().signal } = {}) => {
        const current = await runs.begin(signal)
        return seal(current, runs.last)
      },
      since: async (position, { limit, maxAgeMs }: ChangePageQuery, options: CallOptions = {}): Promise<ChangePage> => {
        const current = await runs.begin(options.signal ?? new AbortController().signal)
        const from = numberOf(current, position)
        if (from === undefined) return { changes: [], position: seal(current, runs.last), gap: true, more: false }
        const oldest = maxAgeMs === undefined ? Number.NEGATIVE_INFINITY : Date.now() - maxAgeMs
        let gap = false
        const changes: { readonly mount: Mounted; readonly noticed: LoggedChange }[] = []
        for (const [mount, log] of current.logs) {
          if (mount.isHidden(principal) || !isRelevant.mount(mount)) continue
          if (log.gap > from) gap = true
          let count = 0
          for (const noticed of log.after(from)) {
            if (!isRelevant.path(mount, noticed.path) || !sees(mount, noticed)) continue
            if (noticed.time < oldest) gap = true
            else if (changes.push({ mount, noticed }) && ++count > limit) break
          }
        }
        changes.sort((a, b) => a.noticed.number - b.noticed.number)
        const more = changes.length > limit
        const page = changes.slice(0, limit)
        return {
          changes: page.map(({ mount, noticed: { number, path, listed, time } }) => ({
            id: createHash('sha256')
              .update(`${runIdAt(current, number)} ${number}`)
              .digest('base64url')
              .slice(0, 22),
            uri: mount.uriOf(path),
            listed,
            time,
            records: mount.provider.put !== undefined,
            position: () => seal(current, number),
          })),
          position: seal(current, more ? (page.at(-1)?.noticed.number ?? from) : runs.last),
          gap,
          more,
        }
      },
      follow: (hear) => {
        const share = openShare(principal.id)
        // Wake only the readers that a change concerns: a woken reader decrypts its position, which is costly.
        const follower = (mount: Mounted, changes: readonly Change[]) => {
          const concerns = ({ path }: Change) => path === undefined || isRelevant.path(mount, path)
          if (isRelevant.mount(mount) && changes.some(concerns)) hear()
        }
        runs.followers.add(follower)
        return () => {
          if (runs.followers.delete(follower)) share.close()
        }
      },
    }
  }

  return {
    of: (principal: Principal): ChangeHistory => ({ open: async (filter) => open(principal, filter) }),
    close: runs.end,
  }
}

/**
 * Compiles a filter: `uri` is a resource, a directory with everything in it, or the beginning of the addresses of mounts. A change of
 * a directory concerns everything in it.
 *
 * @throws ResourceError `invalid` for a malformed URI or glob.
 */
function compileFilter({ uri, glob, records = false }: ChangeFilter, route: HistoryParts['route']) {
  const matches: PathTest = glob === undefined ? () => true : compileGlob(glob)
  const isGlobbed = (path: string) => path === '' || path.endsWith('/') || matches(path)
  const parsedUri = uri === undefined ? undefined : parseUri(uri)
  const target = parsedUri && route(parsedUri)
  const isKind = (mount: Mounted) => !records || mount.provider.put !== undefined
  if (parsedUri === undefined || target === undefined)
    return {
      mount: (mount: Mounted) => isKind(mount) && (parsedUri === undefined || isAbove(parsedUri, mount)),
      path: (_: Mounted, path: string) => isGlobbed(path),
    }
  const targetPath = canonicalPath(withoutFinalSlash(target.path))
  return {
    mount: (mount: Mounted) => isKind(mount) && mount === target.mount,
    path: (_: Mounted, path: string) => {
      const at = canonicalPath(withoutFinalSlash(path))
      const isWithin = targetPath === '' || at === targetPath || at.startsWith(`${targetPath}/`)
      return (isWithin && isGlobbed(path)) || (path.endsWith('/') && targetPath.startsWith(`${at}/`)) || path === ''
    },
  }
}

function isAbove({ scheme, authority, segments }: ParsedUri, { address }: Mounted): boolean {
  return (
    address.scheme === scheme &&
    address.authority === authority &&
    segments.every((segment, index) => address.segments[index] === segment)
  )
}
