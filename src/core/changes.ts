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
    /** How many URIs have a place: what is told, and what is just being added. */
    let places = 0
    let closed = false

    const take = (change: number): void => {
      places += change
      share.uris += change
      total += change
    }

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
      // A directory may be listened to where something in it is visible, as far as one looks.
      const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
      let looked = 0
      for await (const entry of mount.provider.list({ prefix }, context)) {
        if (mount.access(principal, entry.path)) return true
        if (++looked >= state.paging.scan) break
      }
      return false
    }

    /** Adds a URI, which has a place. `undefined`: it is left out. */
    const addOne = async (uri: string, context: Context): Promise<'added' | 'known' | undefined> => {
      try {
        const found = route(parseUri(uri))
        const watch = found === undefined ? undefined : watches.get(found.mount)
        if (found === undefined || watch === undefined) return undefined
        if (!(await allowed(found.mount, found.path, context))) return undefined
        if (!(await watch.arm(context.signal)) || closed) return undefined
        if (told.has(uri)) return 'known'
        told.set(uri, { watch, path: found.path })
        watch.add(listenerOf(watch), found.path, uri)
        return 'added'
      } catch (error) {
        if (isResourceError(error, 'invalid') || isResourceError(error, 'unavailable')) return undefined
        throw error
      }
    }

    return {
      get uris() {
        return [...told.keys()]
      },
      add: async (uris, options) => {
        const context = { principal, signal: options?.signal ?? new AbortController().signal }
        const fresh = new Set(uris.filter((uri) => !told.has(uri)))
        if (places + fresh.size > most.perSubscription) throw refuse('URIs in one subscription', most.perSubscription)
        if (share.uris + fresh.size > most.perPrincipal) throw refuse('URIs of one client', most.perPrincipal)
        if (total + fresh.size > most.total) throw refuse('URIs in all', most.total)
        // Their places are taken before the first wait: others ask meanwhile.
        take(fresh.size)
        let unused = fresh.size
        const honoured: string[] = []
        try {
          for (const uri of new Set(uris)) {
            const answer = fresh.has(uri) ? await addOne(uri, context) : 'known'
            if (answer === 'added') unused--
            if (answer !== undefined) honoured.push(uri)
          }
        } finally {
          take(-unused)
        }
        return honoured
      },
      addList: async (options) => {
        const context = { principal, signal: options?.signal ?? new AbortController().signal }
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
        take(-1)
        entry.watch.remove(listenerOf(entry.watch), entry.path, uri)
      },
      close: () => {
        if (closed) return
        closed = true
        for (const [uri, { watch, path }] of told) watch.remove(listenerOf(watch), path, uri)
        for (const [watch, known] of listeners) watch.removeList(known)
        take(-told.size)
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
