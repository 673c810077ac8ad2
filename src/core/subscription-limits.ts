import type { Listener } from './change-listeners.ts'
import { invalid } from './errors.ts'
import type { MountWatch } from './mount-watch.ts'
import type { ChangedKind, Principal } from './provider.ts'
import type { ChangeListener } from './view.ts'

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
  /** Throttle: minimum time between two notifications of one client that a list (of resources, prompts or tools) has changed, in milliseconds. */
  readonly listIntervalMs: number
}

export const defaultLimits: ChangeLimits = {
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

  /** Returns the error for a limit that is reached. `of` is its owner: the limit of one subscription is permanent, the others may have room later. */
  const refuse = (what: string, limit: number, of: 'subscription' | 'client' | 'all') =>
    invalid(`There may be no more than ${limit} ${what}.`, 'too-many', { limit, of })

  return {
    /**
     * Opens a subscription, and returns its share of the limits.
     *
     * @throws ResourceError `invalid` for one subscription too many.
     */
    open: (principal: string) => {
      const share = shares.get(principal) ?? { uris: 0, subscriptions: 0 }
      if (share.subscriptions >= most.subscriptions)
        throw refuse('subscriptions of one client', most.subscriptions, 'client')
      if (totalSubscriptions >= most.totalSubscriptions)
        throw refuse('subscriptions in all', most.totalSubscriptions, 'all')
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
        /** Counts more URIs. Throws ResourceError `invalid` when a limit has no room for them. */
        take: (uris: number): void => {
          if (own + uris > most.perSubscription)
            throw refuse('URIs in one subscription', most.perSubscription, 'subscription')
          if (share.uris + uris > most.perPrincipal) throw refuse('URIs of one client', most.perPrincipal, 'client')
          if (total + uris > most.total) throw refuse('URIs in all', most.total, 'all')
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
  /** Runs a function later. Returns a function that cancels it. */
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
 * Creates a throttle: at most one action in `intervalMs`. The first is admitted at once. Those within the interval are replaced
 * by one call of `act` at its end, so an action always follows the last event.
 */
export function createThrottle(intervalMs: number, act: () => void, clock: Clock) {
  let last = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined
  return {
    /** Whether the caller may act now. When false, `act` is called once at the end of the interval. */
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
    /** Cancels a waiting action. */
    close: () => {
      cancel?.()
      cancel = undefined
    },
  }
}

/** Creates a subscription's listeners for changes of prompts, or of tools. A throttle limits how often they notify. */
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
    /** Returns the listener for a mount. */
    of: (watch: MountWatch): Listener => {
      const known = own.get(watch)
      if (known !== undefined) return known
      // Prompts that are files change together with the list of entries.
      const isSeparate = kind === 'tools' || watch.hasSeparatePrompts
      const notify: Listener['notify'] = (change) => {
        if (!closed && (change[kind] === true || !isSeparate) && throttle.admit()) tell()
      }
      const made = { principal, notify }
      own.set(watch, made)
      return made
    },
    close: () => {
      closed = true
      throttle.close()
      for (const [watch, known] of own) watch.removeList(known)
    },
  }
}
