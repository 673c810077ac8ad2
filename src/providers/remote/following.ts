import type { RemoteView } from '../../client/index.ts'
import { isResourceError } from '../../core/errors.ts'
import { foreignUriOf, pathOfForeign } from '../../core/foreign.ts'
import { sleep, untilAborted } from '../../core/kit/abort.ts'
import { coalesceRuns } from '../../core/kit/once.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import type { Subscription } from '../../core/view.ts'
import { createPendingChanges } from '../files/watch.ts'
import { toListError } from './session.ts'
import { diffServerSnapshots, entriesIn, entryAt, type ServerSnapshot, type SnapshotKeeper } from './snapshot.ts'
import type { SideList } from './tools.ts'

/** Maximum number of subscriptions for a followed directory, at a server that accepts none for a directory. */
const maxInDirectory = 1000

/**
 * Pauses after failed attempts to subscribe, in milliseconds. The first failure is often that of a kept connection which the server has
 * closed meanwhile.
 */
const retryPausesMs = [0, 300, 1000, 2000]

interface FollowingOptions {
  readonly open: (signal: AbortSignal) => Promise<RemoteView>
  readonly listing: SnapshotKeeper<ServerSnapshot>
  readonly sideLists: readonly SideList[]
  readonly isSpelled: (path: string) => Promise<boolean>
  /** Interval at which the listing is compared if the server does not report changes, in milliseconds. */
  readonly refreshIntervalMs: number
  /** Resolves once the server has answered: true if a list without its entries was returned before. */
  readonly isLate: (signal: AbortSignal) => Promise<boolean>
  readonly onListed: () => void
  readonly log: Log
}

interface FollowingRun {
  readonly view: RemoteView
  add(uris: readonly string[]): Promise<boolean>
  remove(uri: string): void
}

/** Creates the table of followed paths and their URIs at the server. It outlives each watch. */
function createFollowed({ listing, isSpelled }: Pick<FollowingOptions, 'listing' | 'isSpelled'>) {
  const followed = new Map<string, readonly string[]>()
  const paths = new Map<string, Set<string>>()

  /** Returns the URIs at the server to subscribe to for a path: its own, or those in its directory. */
  const urisFor = async (path: string, view: RemoteView): Promise<readonly string[]> => {
    const { last } = listing
    const entry = last === undefined ? undefined : entryAt(last, path)
    if (entry !== undefined) return [entry.uri]
    const directory = path === '' || path.endsWith('/') ? path : `${path}/`
    const inIt = last === undefined ? [] : [...take(entriesIn(last, { prefix: directory }), maxInDirectory)]
    if (inIt.length === 0) {
      const uri = (await isSpelled(path)) ? foreignUriOf(path) : undefined
      return uri === undefined ? [] : [uri]
    }
    if (!view.isOurs) return inIt.map(({ uri }) => uri)
    // A hikidashi server accepts a directory as a subscription to everything below it.
    if (path === '') return (await view.mounts()).map(({ uri }) => uri)
    const uri = foreignUriOf(directory)
    return uri === undefined ? [] : [uri]
  }

  /** Follows a path in a watch. Resolves to whether the server will notify its changes. */
  const follow = async (path: string, run: FollowingRun | undefined): Promise<boolean> => {
    if (run === undefined) return false
    const uris = await urisFor(path, run.view)
    if (uris.length === 0) return false
    followed.set(path, uris)
    for (const uri of uris) paths.set(uri, (paths.get(uri) ?? new Set()).add(path))
    return run.add(uris)
  }

  const unfollow = (path: string, run: FollowingRun | undefined): void => {
    for (const uri of followed.get(path) ?? []) {
      const of = paths.get(uri)
      of?.delete(path)
      if (of?.size !== 0) continue
      paths.delete(uri)
      run?.remove(uri)
    }
    followed.delete(path)
  }

  const pathsOf = (uri: string): readonly string[] => {
    const own = pathOfForeign(uri)
    return [...(paths.get(uri) ?? [])].map((path) => {
      const isIt = path === own || (listing.last !== undefined && entryAt(listing.last, path) !== undefined)
      if (isIt) return path
      // The followed path is a directory: report the listed entry in it, or else the notified directory.
      return listing.last !== undefined && entryAt(listing.last, own) !== undefined
        ? own
        : `${own.replace(/\/=?$/, '')}/`
    })
  }

  return { follow, unfollow, pathsOf, paths: (): readonly string[] => [...followed.keys()] }
}

export function createRemoteWatch(options: FollowingOptions) {
  const { open, listing, sideLists, refreshIntervalMs, onListed, log } = options
  const followed = createFollowed(options)
  let running: FollowingRun | undefined
  let hears = true

  const follow = (path: string): Promise<boolean> => followed.follow(path, running)

  const watch = async (signal: AbortSignal): Promise<AsyncIterable<Change>> => {
    const view = await open(signal)
    const ending = new AbortController()
    const end = () => ending.abort()
    const pending = createPendingChanges()
    ending.signal.addEventListener('abort', () => pending.end(), { once: true })
    const renew = async (): Promise<void> => {
      onListed()
      try {
        const { before, now } = await listing.renew(ending.signal)
        if (before === undefined) pending.add({})
        else for await (const path of diffServerSnapshots(before, now)) pending.add({ path, listed: true })
        // Follow the directories again, so that changes of new entries in them are reported, too.
        const directories = followed.paths().filter((path) => entryAt(now, path) === undefined)
        await Promise.all(directories.map(follow))
      } catch (error) {
        if (!ending.signal.aborted) log('warn', 'the server cannot be listed after a change', { error })
      }
    }
    const renewSoon = coalesceRuns(renew, ending.signal)
    const sides = sideLists
      .filter((list) => list.isIn(view))
      .map((list) => {
        const renewList = async () => {
          try {
            for (const change of await list.renew(ending.signal)) pending.add(change)
          } catch (error) {
            if (!ending.signal.aborted)
              log('warn', `the ${list.what} of the server cannot be listed after a change`, { error })
          }
        }
        return { list, renew: coalesceRuns(renewList, ending.signal) }
      })
    const subscription = view.subscribe?.((change) => {
      const { uris, listed } = change
      if (listed) void renewSoon()
      for (const { list, renew: renewList } of sides) if (list.isChanged(change)) void renewList()
      for (const uri of uris) for (const path of followed.pathsOf(uri)) if (isTold(path)) pending.add({ path })
    })
    /** Whether to report a change. If the server relays our own resources, changes of unlisted paths may be our own. */
    const isTold = (path: string) =>
      listing.last?.circular !== true || path.endsWith('/') || entryAt(listing.last, path) !== undefined

    let timer: NodeJS.Timeout | undefined
    const stop = () => {
      end()
      clearInterval(timer)
      subscription?.close()
      if (running === run) running = undefined
      listing.told = false
      for (const { list } of sides) list.setTold(false)
    }
    const run: FollowingRun = {
      view,
      add: async (uris) => (subscription === undefined ? false : addUris(subscription, uris, ending.signal, log)),
      remove: (uri) => subscription?.remove(uri),
    }
    signal.addEventListener('abort', stop, { once: true })
    void view.over.then(stop)
    try {
      signal.throwIfAborted()
      await listing.current(signal)
      const hearsList = (await subscription?.addList({ signal })) ?? false
      hears = hearsList && subscription !== undefined
      if (hearsList) {
        // Changes between the two requests were not notified.
        await listing.renew(signal)
        listing.told = true
      }
      if (await options.isLate(signal)) pending.add({})
      const silent: (() => Promise<void>)[] = hearsList ? [] : [renewSoon]
      for (const { list, renew: renewList } of sides) {
        if (await list.listen(subscription, { signal })) {
          await renewList()
          list.setTold(true)
        } else silent.push(renewList)
      }
      if (silent.length > 0) {
        timer = setInterval(() => {
          for (const renewSilent of silent) void renewSilent()
        }, refreshIntervalMs)
        timer.unref()
      }
      running = run
      await Promise.all(followed.paths().map((path) => follow(path)))
    } catch (error) {
      stop()
      signal.throwIfAborted()
      throw toListError(error)
    }
    return (async function* () {
      for await (const batch of pending.batches()) yield* batch
    })()
  }

  const unfollow = (path: string): void => followed.unfollow(path, running)
  const degraded = (): Degradation | undefined => (running !== undefined && !hears ? 'limited' : undefined)
  return { watch, follow, unfollow, degraded }
}

/** Subscribes to changes of these URIs, with repeated attempts. False: the server accepts none of them. */
async function addUris(
  subscription: Subscription,
  uris: readonly string[],
  signal: AbortSignal,
  log: Log,
): Promise<boolean> {
  for (const pauseMs of retryPausesMs) {
    try {
      return (await untilAborted(subscription.add(uris), signal)).length > 0
    } catch (error) {
      if (signal.aborted) return false
      log('debug', 'the server cannot be asked for changes of a resource', { error })
      if (!isResourceError(error, 'unavailable')) return false
      await sleep(pauseMs, signal).catch(() => {})
    }
  }
  log('warn', 'the server reports no changes of a resource: it did not answer', { resources: uris.length })
  return false
}

function* take<T>(items: Iterable<T>, most: number): Generator<T> {
  let remaining = most
  for (const item of items) {
    if (remaining-- <= 0) return
    yield item
  }
}
