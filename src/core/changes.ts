import type { Listener } from './change-listeners.ts'
import { invalid, isResourceError } from './errors.ts'
import { createKindListeners } from './kind-listeners.ts'
import { type Clock, createThrottle, systemClock } from './kit/throttle.ts'
import { isVisible } from './listing.ts'
import type { Mounted } from './mount.ts'
import { createMountWatch, type MountWatch } from './mount-watch.ts'
import type { CatalogState } from './paging.ts'
import type { Context, Degradation, Principal } from './provider.ts'
import type { ParsedUri } from './uri.ts'
import { parseUri } from './uri.ts'
import type { CallOptions, ChangeListener, Subscription, ViewChange } from './view.ts'

/** Limits of subscriptions. */
export interface ChangeLimits {
  /** Maximum number of URIs of one subscription. */
  readonly perSubscription: number
  /** Maximum number of URIs of one principal, over all of its subscriptions. */
  readonly perPrincipal: number
  /** Maximum number of URIs of all principals. */
  readonly total: number
  /** Maximum number of subscriptions of one principal: streams, sessions, pipes. */
  readonly subscriptions: number
  /** Maximum number of subscriptions of all principals. */
  readonly totalSubscriptions: number
  /** Throttle: minimum time between two notifications of one client that the list of resources, or of prompts, has changed, in milliseconds. */
  readonly listIntervalMs: number
}

const defaults: ChangeLimits = {
  perSubscription: 1000,
  perPrincipal: 20_000,
  total: 200_000,
  subscriptions: 1000,
  totalSubscriptions: 10_000,
  listIntervalMs: 2000,
}

/** A mount whose notifications of changes are currently degraded. */
export interface DegradedMount {
  readonly address: string
  readonly degradation: Degradation
}

/** The subscriptions of all principals. Each mount has one watch, which runs while anyone listens. */
export interface Changes {
  /** Whether any mount can notify about changes. */
  readonly possible: boolean
  /** Whether any mount with prompts can notify about changes of them. */
  readonly ofPrompts: boolean
  /** The same for tools. */
  readonly ofTools: boolean
  open(listener: ChangeListener, principal: Principal): Subscription
  /** Returns the watch of a mount; undefined when its source cannot notify about changes. */
  watchOf(mount: Mounted): MountWatch | undefined
  degraded(): readonly DegradedMount[]
  close(): Promise<void>
}

type Route = (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined

interface Share {
  uris: number
  subscriptions: number
}

/** State that the URIs of one call to `add` share. */
interface Adding {
  readonly context: Context
  /** Watches that could not be armed: the other URIs do not wait for them again. */
  readonly mute: Set<MountWatch>
  /** How many more entries may be read to decide visibility. */
  looks: number
}

export function createChanges(
  state: CatalogState,
  route: Route,
  limits: Partial<ChangeLimits> = {},
  clock: Clock = systemClock,
): Changes {
  const most = { ...defaults, ...limits }
  const watches = new Map<Mounted, MountWatch>()
  for (const mount of state.mounts) {
    const watch = createMountWatch(mount, state.log)
    if (watch !== undefined) watches.set(mount, watch)
  }
  const shares = new Map<string, Share>()
  let total = 0
  let totalSubscriptions = 0

  /** @param of The owner of the limit: the limit of one subscription is permanent, the others may have room later. */
  const refuse = (what: string, limit: number, of: 'subscription' | 'client' | 'all') =>
    invalid(`There may be no more than ${limit} ${what}.`, 'too-many-subscriptions', { limit, of })

  const open: Changes['open'] = (listener, principal) => {
    const share = shares.get(principal.id) ?? { uris: 0, subscriptions: 0 }
    if (share.subscriptions >= most.subscriptions)
      throw refuse('subscriptions of one client', most.subscriptions, 'client')
    if (totalSubscriptions >= most.totalSubscriptions)
      throw refuse('subscriptions in all', most.totalSubscriptions, 'all')
    share.subscriptions++
    totalSubscriptions++
    shares.set(principal.id, share)
    /** The path that each URI listens to, by the URI as the client spelled it. */
    const told = new Map<string, { readonly watch: MountWatch; readonly path: string }>()
    const listeners = new Map<MountWatch, Listener>()
    /** Number of URIs that count towards the limits: those listened to, and those being added. */
    let places = 0
    let closed = false
    const tellLists = () => listener({ uris: [], listed: true })
    const lists = createThrottle(most.listIntervalMs, tellLists, clock)
    const throttled = { principal, listener, intervalMs: most.listIntervalMs, clock }
    const prompts = createKindListeners('prompts', throttled)
    const tools = createKindListeners('tools', throttled)
    /** Passes on changed URIs at once, and a changed list only as often as the throttle allows. */
    const tell = ({ listed, ...change }: ViewChange): void => {
      if (closed) return
      const now = listed && lists.admit()
      if (now || change.uris.length > 0) listener({ ...change, listed: now })
    }

    const take = (change: number): void => {
      places += change
      share.uris += change
      total += change
    }

    const listenerOf = (watch: MountWatch): Listener => {
      let known = listeners.get(watch)
      if (known === undefined) {
        known = { principal, notify: tell }
        listeners.set(watch, known)
      }
      return known
    }

    /** Adds listeners to the lists of mounts. */
    const hearLists = async (
      mounts: readonly (readonly [Mounted, MountWatch])[],
      whoHears: (watch: MountWatch) => Listener,
      options: CallOptions | undefined,
    ): Promise<boolean> => {
      const signal = options?.signal ?? new AbortController().signal
      const context = { principal, signal: new AbortController().signal }
      let heard = false
      for (const [mount, watch] of mounts) {
        // A mount without visible entries counts too, since some may appear: the rules alone decide here.
        if (mount.isHidden(principal)) continue
        await watch.arm(signal)
        if (closed || signal.aborted) return false
        watch.addList(whoHears(watch), () => isVisible(mount, state, context).catch(() => true))
        heard = true
      }
      return heard
    }

    /**
     * Whether the principal may listen to a URI. Access decides; for a directory that it may not see itself, a bounded search for
     * a visible entry.
     */
    const allowed = async (mount: Mounted, path: string, adding: Adding): Promise<boolean> => {
      if (!mount.restricted || mount.access(principal, path)) return true
      // A directory may be listened to when something in it is visible, as far as the limit lets the search go.
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

    const arm = async (watch: MountWatch, { mute, context }: Adding): Promise<boolean> => {
      if (mute.has(watch)) return false
      const armed = await watch.arm(context.signal)
      if (!armed) mute.add(watch)
      return armed && !closed
    }

    /** Adds a URI that has been counted towards the limits. Undefined when it cannot be listened to. */
    const addOne = async (uri: string, adding: Adding): Promise<'added' | 'known' | undefined> => {
      try {
        const found = route(parseUri(uri))
        const watch = found === undefined ? undefined : watches.get(found.mount)
        if (found === undefined || watch === undefined) return undefined
        if (!(await allowed(found.mount, found.path, adding))) return undefined
        if (!(await arm(watch, adding))) return undefined
        if (!(await watch.follow(found.path)) || closed) return undefined
        if (told.has(uri)) return 'known'
        told.set(uri, { watch, path: found.path })
        watch.add(listenerOf(watch), found.path, uri)
        return 'added'
      } catch (error) {
        if (isResourceError(error, 'invalid') || isResourceError(error, 'unavailable')) return undefined
        throw error
      }
    }

    /** Returns the other spellings under which the same path is listened to. */
    const spelledElse = (uri: string): readonly string[] => {
      const place = placeOf(uri, route)
      const watch = place && watches.get(place.mount)
      if (place === undefined || watch === undefined) return []
      return [...told].flatMap(([spelled, one]) => (one.watch === watch && one.path === place.path ? [spelled] : []))
    }

    return {
      get uris() {
        return [...told.keys()]
      },
      add: async (uris, options) => {
        const signal = options?.signal ?? new AbortController().signal
        const adding = { context: { principal, signal }, mute: new Set<MountWatch>(), looks: state.paging.scan }
        const fresh = new Set(uris.filter((uri) => !told.has(uri)))
        if (places + fresh.size > most.perSubscription)
          throw refuse('URIs in one subscription', most.perSubscription, 'subscription')
        if (share.uris + fresh.size > most.perPrincipal) throw refuse('URIs of one client', most.perPrincipal, 'client')
        if (total + fresh.size > most.total) throw refuse('URIs in all', most.total, 'all')
        // Count them before the first await: other calls may run meanwhile.
        take(fresh.size)
        let unused = fresh.size
        const honoured: string[] = []
        try {
          for (const uri of new Set(uris)) {
            const answer = fresh.has(uri) ? await addOne(uri, adding) : 'known'
            if (answer === 'added') unused--
            if (answer !== undefined) honoured.push(uri)
          }
        } finally {
          take(-unused)
        }
        return honoured
      },
      addList: (options) => hearLists([...watches], listenerOf, options),
      addPrompts: (options) => {
        const ofPrompts = [...watches].filter(([{ provider }]) => provider.prompts !== undefined)
        return hearLists(ofPrompts, prompts.of, options)
      },
      addTools: (options) => {
        const ofTools = [...watches].filter(([{ provider }]) => provider.tools !== undefined)
        return hearLists(ofTools, tools.of, options)
      },
      remove: (uri) => {
        for (const spelled of told.has(uri) ? [uri] : spelledElse(uri)) {
          const entry = told.get(spelled)
          if (entry === undefined) continue
          told.delete(spelled)
          take(-1)
          entry.watch.remove(listenerOf(entry.watch), entry.path, spelled)
        }
      },
      close: () => {
        if (closed) return
        closed = true
        lists.close()
        prompts.close()
        tools.close()
        for (const [uri, { watch, path }] of told) watch.remove(listenerOf(watch), path, uri)
        for (const [watch, known] of listeners) watch.removeList(known)
        take(-told.size)
        told.clear()
        share.subscriptions--
        totalSubscriptions--
        if (share.subscriptions === 0) shares.delete(principal.id)
      },
    }
  }

  return {
    possible: watches.size > 0,
    ofPrompts: [...watches.keys()].some(({ provider }) => provider.prompts !== undefined),
    ofTools: [...watches.keys()].some(({ provider }) => provider.tools !== undefined),
    open,
    watchOf: (mount) => watches.get(mount),
    degraded: () =>
      [...watches].flatMap(([mount, watch]) => {
        const degradation = watch.degraded()
        return degradation === undefined ? [] : [{ address: mount.address.text, degradation }]
      }),
    close: async () => {
      await Promise.all([...watches.values()].map((watch) => watch.close()))
    },
  }
}

/** Returns the mount and path of a URI; undefined when it lies in no mount or is malformed. */
function placeOf(uri: string, route: Route): ReturnType<Route> {
  try {
    return route(parseUri(uri))
  } catch (error) {
    if (isResourceError(error, 'invalid')) return undefined
    throw error
  }
}
