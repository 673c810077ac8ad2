import { invalid, isResourceError, valueOr } from './errors.ts'
import { createHistory } from './history.ts'
import { isVisible } from './listing.ts'
import type { Mounted } from './mount.ts'
import { createMountWatch, type Listener, type MountWatch } from './mount-watch.ts'
import type { CatalogState } from './paging.ts'
import type { ChangedKind, Context, Degradation, Principal } from './provider.ts'
import { type ParsedUri, parseUri } from './uri.ts'
import type { CallOptions, ChangeListener, Subscription, ViewChange } from './view.ts'

export interface ChangeLimits {
  /** Maximum number of URIs of one subscription. */
  readonly perSubscription: number
  /** Maximum number of URIs of one principal, over all of its subscriptions. */
  readonly perPrincipal: number
  /** Maximum number of URIs of all principals. */
  readonly total: number
  /** Maximum number of subscriptions of one principal. */
  readonly subscriptions: number
  /** Maximum number of subscriptions of all principals. */
  readonly totalSubscriptions: number
  /**
   * Minimum time between two notifications of the same changed list (resources, prompts or tools) to a subscription, in
   * milliseconds.
   */
  readonly listIntervalMs: number
}

export const defaultChangeLimits: ChangeLimits = {
  perSubscription: 1000,
  perPrincipal: 20_000,
  total: 200_000,
  subscriptions: 1000,
  totalSubscriptions: 10_000,
  listIntervalMs: 2000,
}

/** Counts subscriptions and their URIs towards the limits. */
export function createQuota(most: ChangeLimits) {
  const shares = new Map<string, { uris: number; subscriptions: number }>()
  let total = 0
  let totalSubscriptions = 0

  const refuse = (what: string, limit: number, of: 'subscription' | 'client' | 'all') =>
    invalid(`The limit of ${limit} ${what} is reached. Unsubscribe from some.`, 'too-many', { limit, of })

  return {
    /** @throws ResourceError `invalid` (reason `too-many`) for one subscription too many. */
    open: (principal: string) => {
      const share = shares.get(principal) ?? { uris: 0, subscriptions: 0 }
      if (share.subscriptions >= most.subscriptions)
        throw refuse('subscriptions of one client', most.subscriptions, 'client')
      if (totalSubscriptions >= most.totalSubscriptions)
        throw refuse('subscriptions of all clients', most.totalSubscriptions, 'all')
      share.subscriptions++
      totalSubscriptions++
      shares.set(principal, share)
      let own = 0
      const count = (change: number): void => {
        own += change
        share.uris += change
        total += change
      }
      return {
        /** @throws ResourceError `invalid` (reason `too-many`) when a limit has no room for the URIs. */
        take: (uris: number): void => {
          if (own + uris > most.perSubscription)
            throw refuse('URIs in one subscription', most.perSubscription, 'subscription')
          if (share.uris + uris > most.perPrincipal) throw refuse('URIs of one client', most.perPrincipal, 'client')
          if (total + uris > most.total) throw refuse('URIs of all clients', most.total, 'all')
          count(uris)
        },
        release: (uris: number) => count(-uris),
        /** Ends the subscription, all URIs of which must have been released. */
        close: () => {
          share.subscriptions--
          totalSubscriptions--
          if (share.subscriptions === 0) shares.delete(principal)
        },
      }
    },
  }
}

/** The clock of a throttle. Times are in milliseconds. */
export interface Clock {
  /** Returns a monotonic time. */
  now(): number
  /** Returns a function that cancels the run. */
  after(ms: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/**
 * Creates a throttle. One action is admitted at once; those within `intervalMs` of it are replaced by one call of `act`
 * at the end.
 */
export function createThrottle(intervalMs: number, act: () => void, clock: Clock) {
  let last = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined
  return {
    /** Whether the caller may act now. When false, `act` is called at the end of the interval. */
    admit: () => {
      if (cancel !== undefined) return false
      const waitMs = last + intervalMs - clock.now()
      if (waitMs <= 0) {
        last = clock.now()
        return true
      }
      cancel = clock.after(waitMs, () => {
        cancel = undefined
        last = clock.now()
        act()
      })
      return false
    },
    close: () => {
      cancel?.()
      cancel = undefined
    },
  }
}

/** Creates the listeners of a subscription for changes of prompts, or of tools. */
export function createKindListeners(
  kind: ChangedKind,
  principal: Principal,
  listener: ChangeListener,
  intervalMs: number,
  clock: Clock,
) {
  const own = new Map<MountWatch, Listener>()
  let closed = false
  const tell = () => listener({ uris: [], listed: false, [kind]: true })
  const throttle = createThrottle(intervalMs, tell, clock)
  return {
    of: (watch: MountWatch): Listener => {
      const listener = own.get(watch)
      if (listener !== undefined) return listener
      // Prompts that are entries have no changes of their own: any change of the list of entries may be one of prompts.
      const isSeparate = kind === 'tools' || watch.hasSeparatePrompts
      const notify: Listener['notify'] = (change) => {
        if (!closed && (change[kind] === true || !isSeparate) && throttle.admit()) tell()
      }
      const client = { principal, notify }
      own.set(watch, client)
      return client
    },
    close: () => {
      closed = true
      throttle.close()
      for (const [watch, listener] of own) watch.removeList(listener)
    },
  }
}

type FindMount = (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined

interface AddState {
  readonly context: Context
  /** Watches that could not be started: the other URIs do not wait for them again. */
  readonly mute: Set<MountWatch>
  /** Number of entries that may still be read to decide visibility. */
  looks: number
}

interface SubscriptionParts {
  readonly state: CatalogState
  readonly route: FindMount
  readonly watches: ReadonlyMap<Mounted, MountWatch>
  readonly quota: ReturnType<typeof createQuota>
  readonly listIntervalMs: number
  readonly clock: Clock
}

function openSubscription(
  { state, route, watches, quota, listIntervalMs, clock }: SubscriptionParts,
  listener: ChangeListener,
  principal: Principal,
): Subscription {
  const share = quota.open(principal.id)
  /** The keys are URIs as the client spelled them. */
  const watchesByUri = new Map<string, { readonly watch: MountWatch; readonly path: string }>()
  let closed = false
  const lists = createThrottle(listIntervalMs, () => listener({ uris: [], listed: true }), clock)
  const prompts = createKindListeners('prompts', principal, listener, listIntervalMs, clock)
  const tools = createKindListeners('tools', principal, listener, listIntervalMs, clock)
  const tell = ({ listed, ...change }: ViewChange): void => {
    if (closed) return
    const now = listed && lists.admit()
    if (now || change.uris.length > 0) listener({ ...change, listed: now })
  }

  const own: Listener = { principal, notify: tell }

  /** Adds a URI that counts towards the limits already. Undefined when it cannot be listened to. */
  const addOne = async (uri: string, adding: AddState): Promise<'added' | 'known' | undefined> => {
    const location = locateUri(uri, route)
    const watch = location && watches.get(location.mount)
    if (location === undefined || watch === undefined) return undefined
    if (!(await isFollowed(location.mount, watch, location.path, adding, () => closed))) return undefined
    if (watchesByUri.has(uri)) return 'known'
    watchesByUri.set(uri, { watch, path: location.path })
    watch.add(own, location.path, uri)
    return 'added'
  }

  /** Returns the spellings under which the subscription listens to the path of a URI. */
  const spelledElse = (uri: string): readonly string[] => {
    const target = locateUri(uri, route)
    const watch = target && watches.get(target.mount)
    if (target === undefined || watch === undefined) return []
    return [...watchesByUri].flatMap(([spelled, one]) =>
      one.watch === watch && one.path === target.path ? [spelled] : [],
    )
  }

  /** The function resolves to whether the principal may listen to at least one of the mounts. */
  const hear =
    (mounts: Iterable<readonly [Mounted, MountWatch]>, whoHears: (watch: MountWatch) => Listener) =>
    async (options?: CallOptions): Promise<boolean> => {
      const { signal = new AbortController().signal } = options ?? {}
      const context = { principal, signal: new AbortController().signal }
      let isHeard = false
      for (const [mount, watch] of mounts) {
        // A mount without visible entries counts too, since some may appear.
        if (mount.isHidden(principal)) continue
        await watch.arm(signal)
        if (closed || signal.aborted) return false
        watch.addList(whoHears(watch), () => isVisible(mount, state, context).catch(() => true))
        isHeard = true
      }
      return isHeard
    }

  return {
    get uris() {
      return [...watchesByUri.keys()]
    },
    add: async (uris, options) => {
      const signal = options?.signal ?? new AbortController().signal
      const adding = { context: { principal, signal }, mute: new Set<MountWatch>(), looks: state.paging.scan }
      const fresh = new Set(uris.filter((uri) => !watchesByUri.has(uri)))
      // Count the URIs before the first await: other calls may run meanwhile.
      share.take(fresh.size)
      let unused = fresh.size
      const honoured: string[] = []
      try {
        for (const uri of new Set(uris)) {
          const answer = fresh.has(uri) ? await addOne(uri, adding) : 'known'
          if (answer === 'added') unused--
          if (answer !== undefined) honoured.push(uri)
        }
      } finally {
        share.release(unused)
      }
      return honoured
    },
    addList: hear(watches, () => own),
    addPrompts: hear(
      [...watches].filter(([{ provider }]) => provider.prompts !== undefined),
      prompts.of,
    ),
    addTools: hear(
      [...watches].filter(([{ provider }]) => provider.tools !== undefined),
      tools.of,
    ),
    remove: (uri) => {
      for (const spelled of watchesByUri.has(uri) ? [uri] : spelledElse(uri)) {
        const entry = watchesByUri.get(spelled)
        if (entry === undefined) continue
        watchesByUri.delete(spelled)
        share.release(1)
        entry.watch.remove(own, entry.path, spelled)
      }
    },
    close: () => {
      if (closed) return
      closed = true
      lists.close()
      prompts.close()
      tools.close()
      for (const [uri, { watch, path }] of watchesByUri) watch.remove(own, path, uri)
      for (const watch of watches.values()) watch.removeList(own)
      share.release(watchesByUri.size)
      watchesByUri.clear()
      share.close()
    },
  }
}

/** Resolves to whether changes of the path are reported from now on. */
async function isFollowed(
  mount: Mounted,
  watch: MountWatch,
  path: string,
  adding: AddState,
  isClosed: () => boolean,
): Promise<boolean> {
  const { mute, context } = adding
  try {
    if (!(await isAllowed(mount, path, adding)) || mute.has(watch)) return false
    if (!(await watch.arm(context.signal))) {
      mute.add(watch)
      return false
    }
    return !isClosed() && (await watch.follow(path)) && !isClosed()
  } catch (error) {
    if (isResourceError(error, 'invalid') || isResourceError(error, 'unavailable')) return false
    throw error
  }
}

/**
 * Whether the caller may see a path, or, for a directory, some entry in it. False when the search for such an entry
 * reaches its limit.
 */
async function isAllowed(mount: Mounted, path: string, adding: AddState): Promise<boolean> {
  const { principal } = adding.context
  if (!mount.restricted || mount.access(principal, path)) return true
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
  const reach = mount.reach(principal, prefix)
  if (reach !== 'some') return reach === 'all'
  if (adding.looks <= 0) return false
  for await (const entry of mount.provider.list({ prefix }, adding.context)) {
    if (mount.access(principal, entry.path)) return true
    if (--adding.looks <= 0) break
  }
  return false
}

function locateUri(uri: string, route: FindMount): ReturnType<FindMount> {
  return valueOr(() => route(parseUri(uri)), undefined, 'invalid')
}

export interface DegradedMount {
  readonly address: string
  readonly degradation: Degradation
}

/** Creates the subscriptions of a catalog. They share one watch for each mount whose source can report changes. */
export function createChangeSubscriptions(
  state: CatalogState,
  route: FindMount,
  limits: Partial<ChangeLimits> = {},
  clock: Clock = systemClock,
) {
  const most = { ...defaultChangeLimits, ...limits }
  const watches = new Map<Mounted, MountWatch>()
  for (const mount of state.mounts) {
    const watch = createMountWatch(mount, state.log)
    if (watch !== undefined) watches.set(mount, watch)
  }
  const quota = createQuota(most)
  const parts = { state, route, watches, quota, listIntervalMs: most.listIntervalMs, clock }
  const history = createHistory({ state, route, watches, openShare: quota.open })

  return {
    /** Whether any mount can notify about changes. */
    possible: watches.size > 0,
    /** Whether a mount with prompts can notify about changes. */
    ofPrompts: [...watches.keys()].some(({ provider }) => provider.prompts !== undefined),
    /** Whether a mount with tools can notify about changes. */
    ofTools: [...watches.keys()].some(({ provider }) => provider.tools !== undefined),
    open: (listener: ChangeListener, principal: Principal): Subscription =>
      openSubscription(parts, listener, principal),
    historyOf: history.of,
    /** Undefined when the source of the mount cannot notify about changes. */
    watchOf: (mount: Mounted): MountWatch | undefined => watches.get(mount),
    degraded: (): readonly DegradedMount[] =>
      [...watches].flatMap(([mount, watch]) => {
        const degradation = watch.degraded()
        return degradation === undefined ? [] : [{ address: mount.address.text, degradation }]
      }),
    close: async (): Promise<void> => {
      await history.close()
      await Promise.all([...watches.values()].map((watch) => watch.close()))
    },
  }
}

export type ChangeSubscriptions = ReturnType<typeof createChangeSubscriptions>
