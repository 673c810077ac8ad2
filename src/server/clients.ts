import type { Principal } from '../core/provider.ts'
import type { Tool } from '../core/tool.ts'
import type { View } from '../core/view.ts'
import { isObject } from './messages.ts'
import { protocolKeys } from './protocol/keys.ts'
import { connectorTools, resourceTools } from './resource-tools/index.ts'

/** What a client calls itself: in `initialize`, or with each request (2026-07-28). Nothing proves it: no right hangs on it. */
export interface ClientName {
  readonly name: string
  readonly version: string
}

/** What a client is given. */
export interface ClientProfile {
  /** The tools to read with: for hosts in which a model does not list, read and search resources by itself. */
  readonly tools: boolean
  /** The tools `search` and `fetch`, as ChatGPT connectors want them. */
  readonly chatgpt?: true
  /** What it is shown where things are listed. By default all that the principal may see. */
  readonly view?: (principal: Principal) => View
  /** What it is told behind the instructions of the server. */
  readonly note?: string
}

/** What the `_meta` of a request says of the client. */
export function clientIn(meta: unknown): ClientName | undefined {
  const info = isObject(meta) ? meta[protocolKeys.clientInfo] : undefined
  if (!isObject(info) || typeof info.name !== 'string' || typeof info.version !== 'string') return undefined
  return { name: info.name, version: info.version }
}

/** What the clients of one principal are given, each by its profile. */
export interface Given {
  view(client: ClientName | undefined): View
  tools(client: ClientName | undefined): readonly Tool[]
  /** What a client is told behind the instructions of the server. */
  note(client: ClientName | undefined): string | undefined
}

export interface Giving {
  readonly profileOf: (client: ClientName | undefined) => ClientProfile
  readonly principal: Principal
  readonly whole: View
  /** Wraps the view of a profile as the whole view is wrapped. */
  readonly wrap: (view: View) => View
  /** What goes with the tools to read with. */
  readonly readingTools?: (view: View) => readonly Tool[]
}

export function createGiven({ profileOf, principal, whole, wrap, readingTools = () => [] }: Giving): Given {
  // As many as there are profiles.
  const made = new Map<ClientProfile, { readonly view: View; readonly tools: readonly Tool[] }>()
  const of = (client: ClientName | undefined) => {
    const profile = profileOf(client)
    const known = made.get(profile)
    if (known !== undefined) return known
    const view = profile.view === undefined ? whole : wrap(profile.view(principal))
    const given = {
      view,
      tools: [
        ...(profile.chatgpt === true ? connectorTools(view) : []),
        ...(profile.tools ? [...resourceTools(view), ...readingTools(view)] : []),
      ],
    }
    made.set(profile, given)
    return given
  }
  return {
    view: (client) => of(client).view,
    tools: (client) => of(client).tools,
    note: (client) => profileOf(client).note,
  }
}
