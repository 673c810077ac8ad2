import { invalid, isResourceError } from './errors.ts'
import { isVisible } from './listing.ts'
import type { Mounted } from './mount.ts'
import { createMountWatch, type Listener, type MountWatch } from './mount-watch.ts'
import type { Context, Principal } from './provider.ts'
import type { CatalogState } from './state.ts'
import type { ParsedUri } from './uri.ts'
import { parseUri } from './uri.ts'
import type { ChangeListener, Subscription } from './view.ts'

/** How much may be listened to. */
export interface ChangeLimits {
  /** URIs of one subscription. */
  readonly perSubscription: number
  /** URIs of one principal, over all its subscriptions. */
  readonly perPrincipal: number
  /** URIs of all principals. */
  readonly total: number
  /** Subscriptions of one principal. */
  readonly subscriptions: number
}

const defaults: ChangeLimits = { perSubscription: 1000, perPrincipal: 20_000, total: 200_000, subscriptions: 1000 }

/** Who listens to what. One watch per mount runs while anybody does. */
export interface Changes {
  /** Whether any mount can tell of changes. */
  readonly possible: boolean
  open(listener: ChangeListener, principal: Principal): Subscription
  close(): Promise<void>
}

const never = new AbortController().signal

type Route = (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined

interface Share {
  uris: number
  subscriptions: number
}

export function createChanges(state: CatalogState, route: Route, limits: Partial<ChangeLimits> = {}): Changes {
  const most = { ...defaults, ...limits }
  const watches = new Map<Mounted, MountWatch>()
  for (const mount of state.mounts) {
    const watch = createMountWatch(mount, state.log)
    if (watch !== undefined) watches.set(mount, watch)
  }
  const shares = new Map<string, Share>()
  let total = 0

  const count = (principal: Principal, change: number): void => {
    const share = shares.get(principal.id)
    if (share === undefined) return
    share.uris += change
    total += change
  }
  const refuse = (what: string, limit: number) =>
    invalid(`There may be at most ${limit} ${what}.`, 'too-many-subscriptions', { limit })

  const open: Changes['open'] = (listener, principal) => {
    const share = shares.get(principal.id) ?? { uris: 0, subscriptions: 0 }
    if (share.subscriptions >= most.subscriptions) throw refuse('subscriptions of one client', most.subscriptions)
    share.subscriptions++
    shares.set(principal.id, share)
    /** What is told, by the URI as it was spelled. */
    const told = new Map<string, { readonly watch: MountWatch; readonly path: string }>()
    const listeners = new Map<MountWatch, Listener>()
    let closed = false

    const listenerOf = (watch: MountWatch): Listener => {
      let known = listeners.get(watch)
      if (known === undefined) {
        known = { principal, notify: (change) => void (closed || listener(change)) }
        listeners.set(watch, known)
      }
      return known
    }

    /** Whether the principal may hear of a URI: decided by the rules alone, never by what is there. */
    const allowed = async (mount: Mounted, path: string, context: Context): Promise<boolean> => {
      if (!mount.restricted || mount.access(principal, path)) return true
      // A directory may be listened to where something in it is visible.
      const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
      for await (const _ of mount.list(context)({ prefix })) return true
      return false
    }

    const addOne = async (uri: string, context: Context): Promise<boolean> => {
      if (told.has(uri)) return true
      let found: ReturnType<Route>
      try {
        found = route(parseUri(uri))
      } catch (error) {
        if (isResourceError(error, 'invalid')) return false
        throw error
      }
      const watch = found === undefined ? undefined : watches.get(found.mount)
      if (found === undefined || watch === undefined) return false
      if (!(await allowed(found.mount, found.path, context))) return false
      if (!(await watch.arm(context.signal)) || closed || told.has(uri)) return told.has(uri)
      told.set(uri, { watch, path: found.path })
      count(principal, 1)
      watch.add(listenerOf(watch), found.path, uri)
      return true
    }

    return {
      get uris() {
        return [...told.keys()]
      },
      add: async (uris, options) => {
        const context = { principal, signal: options?.signal ?? never }
        const fresh = new Set(uris.filter((uri) => !told.has(uri))).size
        if (told.size + fresh > most.perSubscription) throw refuse('URIs in one subscription', most.perSubscription)
        if (share.uris + fresh > most.perPrincipal) throw refuse('URIs of one client', most.perPrincipal)
        if (total + fresh > most.total) throw refuse('URIs in all', most.total)
        const honoured: string[] = []
        for (const uri of new Set(uris)) if (await addOne(uri, context)) honoured.push(uri)
        return honoured
      },
      addList: async (options) => {
        const context = { principal, signal: options?.signal ?? never }
        let armed = false
        for (const [mount, watch] of watches) {
          // A mount in which nothing is to be seen may not be heard of either; one that fills later is, from then on.
          if (!(await isVisible(mount, state, context).catch(() => true))) continue
          if (!(await watch.arm(context.signal)) || closed) continue
          watch.addList(listenerOf(watch))
          armed = true
        }
        return armed
      },
      remove: (uri) => {
        const entry = told.get(uri)
        if (entry === undefined) return
        told.delete(uri)
        count(principal, -1)
        entry.watch.remove(listenerOf(entry.watch), entry.path, uri)
      },
      close: () => {
        if (closed) return
        closed = true
        for (const [uri, { watch, path }] of told) watch.remove(listenerOf(watch), path, uri)
        for (const [watch, known] of listeners) watch.removeList(known)
        count(principal, -told.size)
        told.clear()
        share.subscriptions--
        if (share.subscriptions === 0) shares.delete(principal.id)
      },
    }
  }

  return {
    possible: watches.size > 0,
    open,
    close: async () => {
      await Promise.all([...watches.values()].map((watch) => watch.close()))
    },
  }
}
