import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { View } from '../core/view.ts'
import { bind, type Identity } from './bind.ts'
import { type Channel, openChannel } from './channel.ts'

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

/** Opens a channel to the view of a principal. */
export function openView(options: ServeOptions, principal: Principal, era: 'modern' | 'legacy'): Promise<Channel> {
  const { view, log, timeout = 120_000 } = options
  return openChannel(bind(view(principal), options, log), era, { log, timeout })
}
