import type { Listener } from './change-listeners.ts'
import { type Clock, createThrottle } from './kit/throttle.ts'
import type { MountWatch } from './mount-watch.ts'
import type { ChangedKind, Principal } from './provider.ts'
import type { ChangeListener } from './view.ts'

/** The listeners of one subscription for changes of prompts, or of tools. */
export interface KindListeners {
  /** Returns the listener for a mount. */
  of(watch: MountWatch): Listener
  close(): void
}

/** Creates them. They notify about changed lists only as often as the throttle allows. */
export function createKindListeners(
  kind: ChangedKind,
  options: {
    readonly principal: Principal
    readonly listener: ChangeListener
    readonly intervalMs: number
    readonly clock: Clock
  },
): KindListeners {
  const { principal, listener, intervalMs, clock } = options
  const own = new Map<MountWatch, Listener>()
  let closed = false
  const tell = () => listener({ uris: [], listed: false, [kind]: true })
  const throttle = createThrottle(intervalMs, tell, clock)
  return {
    of: (watch) => {
      const known = own.get(watch)
      if (known !== undefined) return known
      // Prompts that are files change with the list of entries.
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
