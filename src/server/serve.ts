import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Tool } from '../core/tool.ts'
import type { Subscription, View } from '../core/view.ts'
import { type Audit, audited, auditedTool } from './audit.ts'
import { bind, type Identity } from './bind.ts'
import { type ClientName, type ClientProfile, createGiven } from './clients.ts'
import { createEgress } from './egress.ts'
import type { Notification } from './messages.ts'
import type { ServedOpening } from './opening.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { type Channel, openChannel } from './protocol/channel.ts'
import type { TurnedAway } from './refused.ts'

/** What every transport serves: a view for each principal. */
export interface ServeOptions extends Identity {
  readonly view: (principal: Principal) => View
  readonly log: Log
  /** Who asks, where nobody is asked to say: one fixed principal. */
  readonly principal?: Principal
  /** Values that are known to be secret: they are taken out of every answer, whatever it is. */
  readonly scrubber?: Scrubber
  /** Takes a record of every request. */
  readonly audit?: Audit
  /** The tools that a principal has, just now. By default nobody has any. */
  readonly tools?: (principal: Principal) => readonly Tool[]
  /** What a client is given, by what it calls itself. By default all are given the same: no tools to read with. */
  readonly profileOf?: (client: ClientName | undefined) => ClientProfile
  /** What a principal is told of the server where there are no `instructions`: what is mounted, and how to use it. */
  readonly guide?: (principal: Principal) => string
  /** What whoever is given the tools to read with has beside them, over the view that it is shown. */
  readonly readingTools?: (view: View) => readonly Tool[]
  /** How long a request may take, in milliseconds. Then it is cancelled, and its client told so. By default 120,000. */
  readonly timeout?: number
  /**
   * Where the mounts are still being opened: requests that need them wait until they are; `initialize`, `server/discover` and `ping`
   * do not. Left out: the mounts are open.
   */
  readonly opening?: ServedOpening
}

/** What a transport adds to it. */
export interface ServedOptions extends ServeOptions {
  /** As the audit log has it. By default `stdio`. */
  readonly transport?: 'http' | 'stdio'
  /** Takes a record of what a limit turns away. */
  readonly onRefused?: (refusal: TurnedAway) => void
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
export async function openView(
  options: ServedOptions,
  principal: Principal,
  era: 'modern' | 'legacy',
  announcements?: Announcements,
): Promise<Channel> {
  const { log, timeout = 120_000, audit, transport = 'stdio' } = options
  const egress = createEgress(options.scrubber)
  let channel: Channel | undefined
  const revision = () => channel?.revision
  const seen = options.view(principal)
  const facts = { principal, transport, revision }
  const view = audit === undefined ? seen : audited(seen, audit, facts)
  const { tools: toolsOf, profileOf } = options
  const given =
    profileOf === undefined
      ? undefined
      : createGiven({
          profileOf,
          principal,
          whole: view,
          wrap: (narrow) => (audit === undefined ? narrow : audited(narrow, audit, facts)),
          ...(options.readingTools === undefined ? {} : { readingTools: options.readingTools }),
        })
  const tools = (client: ClientName | undefined) => {
    const own = [...(toolsOf?.(principal) ?? []), ...(given?.tools(client) ?? [])]
    return audit === undefined ? own : own.map((tool) => auditedTool(tool, audit, facts))
  }
  const toolbox = toolsOf === undefined && given === undefined ? undefined : { principal, tools }
  const outbox = era === 'legacy' && announcements !== undefined ? createOutbox(announcements) : undefined
  outbox?.open()
  const subscription = outbox === undefined ? undefined : subscribe(view, outbox, log)
  // Whoever is told of nothing is not promised it either.
  const promised = outbox !== undefined && subscription === undefined ? silent(view) : view
  const onClose = () => {
    subscription?.close()
    outbox?.close()
  }
  const retell = () => {
    const prompts = promised.prompts?.live === true
    outbox?.push({ uris: subscription?.uris ?? [], listed: subscription !== undefined, prompts })
  }
  const instructions = options.instructions ?? options.guide?.(principal)
  const identity = { ...options, ...(instructions === undefined ? {} : { instructions }) }
  channel = openChannel(bind(promised, identity, log, { subscription, toolbox }), {
    ...{ era, log, egress, timeoutMs: timeout, onClose, retell },
    view,
    opening: options.opening,
    ...(given === undefined ? {} : { viewOf: given.view, noteOf: given.note }),
  })
  return channel
}

/** A view that tells of no changes. */
function silent(view: View): View {
  return { ...view, live: false, ...(view.prompts === undefined ? {} : { prompts: { ...view.prompts, live: false } }) }
}

/**
 * Listens for one client. Of what it does not want any more, it is not told what waits for it either. `undefined`: nothing
 * can be told, or so many listen already that it cannot; it can read all the same.
 */
function subscribe(view: View, outbox: Outbox, log: Log): Subscription | undefined {
  const subscription = openSubscription(view, outbox, log)
  if (subscription === undefined) return undefined
  return {
    get uris() {
      return subscription.uris
    },
    add: subscription.add,
    addList: subscription.addList,
    ...(subscription.addPrompts === undefined ? {} : { addPrompts: subscription.addPrompts }),
    remove: (uri) => {
      const before = subscription.uris
      subscription.remove(uri)
      const left = new Set(subscription.uris)
      for (const spelled of before) if (!left.has(spelled)) outbox.drop(spelled)
    },
    close: subscription.close,
  }
}

function openSubscription(view: View, outbox: Outbox, log: Log): Subscription | undefined {
  try {
    return view.subscribe?.((change) => outbox.push(change))
  } catch (error) {
    if (!isResourceError(error, 'invalid')) throw error
    log('debug', 'a client is told of no changes: too many listen already', { error })
    return undefined
  }
}
