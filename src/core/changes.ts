import type { Mounted } from './mount.ts'
import { createMountWatch, type MountWatch } from './mount-watch.ts'
import type { CatalogState } from './paging.ts'
import type { Degradation, Principal } from './provider.ts'
import { type ChangeLimits, type Clock, createQuota, defaultLimits, systemClock } from './quota.ts'
import { openSubscription, type Route } from './subscription.ts'
import type { ChangeListener, Subscription } from './view.ts'

export type { ChangeLimits } from './quota.ts'

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

export function createChanges(
  state: CatalogState,
  route: Route,
  limits: Partial<ChangeLimits> = {},
  clock: Clock = systemClock,
): Changes {
  const most = { ...defaultLimits, ...limits }
  const watches = new Map<Mounted, MountWatch>()
  for (const mount of state.mounts) {
    const watch = createMountWatch(mount, state.log)
    if (watch !== undefined) watches.set(mount, watch)
  }
  const parts = { state, route, watches, quota: createQuota(most), listIntervalMs: most.listIntervalMs, clock }

  return {
    possible: watches.size > 0,
    ofPrompts: [...watches.keys()].some(({ provider }) => provider.prompts !== undefined),
    ofTools: [...watches.keys()].some(({ provider }) => provider.tools !== undefined),
    open: (listener, principal) => openSubscription(parts, listener, principal),
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
