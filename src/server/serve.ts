import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Subscription, View } from '../core/view.ts'
import { bind, type Identity } from './bind.ts'
import { type Channel, openChannel } from './channel.ts'
import type { Notification } from './messages.ts'
import { createOutbox, type Outbox } from './outbox.ts'

/** What every transport serves: a view for each principal. */
export interface ServeOptions extends Identity {
  readonly view: (principal: Principal) => View
  readonly log: Log
  /** Who asks, where nobody is asked to say: one fixed principal. */
  readonly principal?: Principal
  /** How long a request may take, in milliseconds. Then it is cancelled, and its client told so. By default 120,000. */
  readonly timeout?: number
}

export const localPrincipal: Principal = { id: 'local', roles: [] }

/** A client that can be spoken to unasked: the other end of a pipe, or of a session. */
export interface Announcements {
  /** Writes one notification; resolves when there is room for the next. Rejects when the client is gone. */
  readonly write: (notification: Notification) => Promise<void>
  /** Called once when it is gone or too slow. */
  readonly onLost: () => void
}

/** Opens a channel to the view of a principal. */
export function openView(
  options: ServeOptions,
  principal: Principal,
  era: 'modern' | 'legacy',
  announcements?: Announcements,
): Promise<Channel> {
  const { log, timeout = 120_000 } = options
  const view = options.view(principal)
  const outbox = era === 'legacy' && announcements !== undefined ? createOutbox(announcements) : undefined
  outbox?.open()
  const subscription = outbox === undefined ? undefined : subscribe(view, outbox)
  const onClose = () => {
    subscription?.close()
    outbox?.close()
  }
  const retell = () => outbox?.push({ uris: subscription?.uris ?? [], listed: subscription !== undefined })
  return openChannel(bind(view, options, log, subscription), era, { view, log, timeout, onClose, retell })
}

/** Listens for one client. Of what it does not want any more, it is not told what waits for it either. */
function subscribe(view: View, outbox: Outbox): Subscription | undefined {
  const subscription = view.subscribe?.((change) => outbox.push(change))
  if (subscription === undefined) return undefined
  return {
    get uris() {
      return subscription.uris
    },
    add: subscription.add,
    addList: subscription.addList,
    remove: (uri) => {
      subscription.remove(uri)
      outbox.drop(uri)
    },
    close: subscription.close,
  }
}
