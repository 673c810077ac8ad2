import type { Listener } from './change-listeners.ts'
import { invalid, isResourceError } from './errors.ts'
import { isVisible } from './listing.ts'
import type { Mounted } from './mount.ts'
import { createMountWatch, type MountWatch } from './mount-watch.ts'
import type { Context, Degradation, Principal } from './provider.ts'
import type { CatalogState } from './state.ts'
import { type Clock, createThrottle, systemClock } from './throttle.ts'
import type { ParsedUri } from './uri.ts'
import { parseUri } from './uri.ts'
import type { CallOptions, ChangeListener, Subscription, ViewChange } from './view.ts'

/** How much may be listened to. */
export interface ChangeLimits {
  /** URIs of one subscription. */
  readonly perSubscription: number
  /** URIs of one principal, over all its subscriptions. */
  readonly perPrincipal: number
  /** URIs of all principals. */
  readonly total: number
  /** Subscriptions of one principal: streams, sessions, pipes. */
  readonly subscriptions: number
  /** Subscriptions of all principals. */
  readonly totalSubscriptions: number
  /** One client hears at most once in this time that the list of resources changed, and so of prompts, in milliseconds. */
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

/** A mount that tells less well of changes than it should, just now. */
export interface DegradedMount {
  readonly address: string
  readonly degradation: Degradation
}

/** Who listens to what. One watch per mount runs while anybody does. */
export interface Changes {
  /** Whether any mount can tell of changes. */
  readonly possible: boolean
  /** Whether any mount that has prompts can tell of their changes. */
  readonly ofPrompts: boolean
  open(listener: ChangeListener, principal: Principal): Subscription
  /** The watch of a mount. `undefined`: its source cannot tell of changes. */
  watchOf(mount: Mounted): MountWatch | undefined
  degraded(): readonly DegradedMount[]
  close(): Promise<void>
}

type Route = (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined

interface Share {
  uris: number
  subscriptions: number
}

/** What the URIs that are added together share: what is found out for one of them, and how much may be done for all. */
interface Adding {
  readonly context: Context
  /** What could not be armed: it is not waited for again. */
  readonly mute: Set<MountWatch>
  /** How many more entries may be looked at. */
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

  /** @param of Whose limit it is: what one subscription may not have at all, another may have later. */
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
    /** What is told, by the URI as it was spelled. */
    const told = new Map<string, { readonly watch: MountWatch; readonly path: string }>()
    const listeners = new Map<MountWatch, Listener>()
    /** Who hears of prompts, by the watch of the mount that has them. */
    const readers = new Map<MountWatch, Listener>()
    /** How many URIs have a place: what is told, and what is just being added. */
    let places = 0
    let closed = false
    const tellLists = () => listener({ uris: [], listed: true })
    const tellPrompts = () => listener({ uris: [], listed: false, prompts: true })
    const lists = createThrottle(most.listIntervalMs, tellLists, clock)
    const prompts = createThrottle(most.listIntervalMs, tellPrompts, clock)
    /** What changed is told at once; that the list did, not more often than a client can list. */
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

    const readerOf = (watch: MountWatch): Listener => {
      const notify = () => {
        if (!closed && prompts.admit()) tellPrompts()
      }
      const known = readers.get(watch) ?? { principal, notify }
      readers.set(watch, known)
      return known
    }

    /** Has somebody hear of what comes and goes in mounts. */
    const hearLists = async (
      mounts: readonly (readonly [Mounted, MountWatch])[],
      whoHears: (watch: MountWatch) => Listener,
      options: CallOptions | undefined,
    ): Promise<boolean> => {
      const signal = options?.signal ?? new AbortController().signal
      const context = { principal, signal: new AbortController().signal }
      let heard = false
      for (const [mount, watch] of mounts) {
        // A mount in which nothing is to be seen now is heard of as soon as something is: the rules alone decide here.
        if (mount.isHidden(principal)) continue
        await watch.arm(signal)
        if (closed || signal.aborted) return false
        watch.addList(whoHears(watch), () => isVisible(mount, state, context).catch(() => true))
        heard = true
      }
      return heard
    }

    /** Whether the principal may hear of a URI: decided by the rules alone, never by what is there. */
    const allowed = async (mount: Mounted, path: string, adding: Adding): Promise<boolean> => {
      if (!mount.restricted || mount.access(principal, path)) return true
      // A directory may be listened to where something in it is visible, as far as one looks.
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

    /** Adds a URI, which has a place. `undefined`: it is left out. */
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

    /** The other spellings in which what is at a URI is told. */
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
        // Their places are taken before the first wait: others ask meanwhile.
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
        return hearLists(ofPrompts, readerOf, options)
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
        for (const [uri, { watch, path }] of told) watch.remove(listenerOf(watch), path, uri)
        for (const [watch, known] of [...listeners, ...readers]) watch.removeList(known)
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

/** Where a URI lies. `undefined`: in no mount, or it is malformed. */
function placeOf(uri: string, route: Route): ReturnType<Route> {
  try {
    return route(parseUri(uri))
  } catch (error) {
    if (isResourceError(error, 'invalid')) return undefined
    throw error
  }
}
