import type { Principal } from '../../core/provider.ts'
import type { Tool, ToolApp } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { connectorTools, resourceTools } from '../tools/index.ts'
import { isObject } from './messages.ts'
import { protocolKeys } from './revisions.ts'

/** The name that a client declares: in `initialize`, or with each request (2026-07-28). Nothing proves it, so it grants no rights. */
export interface ClientName {
  readonly name: string
  readonly version: string
}

/** The tools and the view that a client gets. */
export interface ClientProfile {
  /** Whether it gets the reading tools: for hosts in which a model does not list, read and search resources by itself. */
  readonly tools: boolean
  /** The tools `search` and `fetch`, as ChatGPT connectors require them. */
  readonly chatgpt?: true
  /** Returns the view for its lists. Default: everything that the principal may see. */
  readonly view?: (principal: Principal) => View
  /** Text after the instructions of the server. */
  readonly note?: string
}

/** Returns the client that the `_meta` of a request declares. */
export function clientIn(meta: unknown): ClientName | undefined {
  const info = isObject(meta) ? meta[protocolKeys.clientInfo] : undefined
  if (!isObject(info) || typeof info.name !== 'string' || typeof info.version !== 'string') return undefined
  return { name: info.name, version: info.version }
}

/** The views, tools and notes for the clients of one principal, each by its profile. */
interface Given {
  view(client: ClientName | undefined): View
  tools(client: ClientName | undefined): readonly Tool[]
  /** Returns the text after the instructions of the server. */
  note(client: ClientName | undefined): string | undefined
}

interface Giving {
  readonly profileOf: (client: ClientName | undefined) => ClientProfile
  readonly principal: Principal
  readonly whole: View
  /** Wraps the view of a profile in the same way as the whole view. */
  readonly wrap: (view: View) => View
  /** Returns further tools for clients with the reading tools. */
  readonly readingTools?: (view: View) => readonly Tool[]
  /** The explorer as an app, for clients with the reading tools. */
  readonly explorerApp?: ToolApp
}

/** Maximum length of the name and version of a client that are remembered, in characters. */
const maxRememberedName = 256

interface Profiled {
  readonly view: View
  readonly tools: readonly Tool[]
}

export function createGiven({
  profileOf,
  principal,
  whole,
  wrap,
  readingTools = () => [],
  explorerApp,
}: Giving): Given {
  // One entry per profile.
  const made = new Map<ClientProfile, Profiled>()
  // Caches the profile of the last name, because most requests come from clients of the same name.
  let last: { readonly client: ClientName; readonly given: Profiled } | undefined
  const of = (client: ClientName | undefined) => {
    // Clients name themselves, in any length.
    if (client === undefined || client.name.length + client.version.length > maxRememberedName) return find(client)
    if (last?.client.name !== client.name || last.client.version !== client.version)
      last = { client, given: find(client) }
    return last.given
  }
  const find = (client: ClientName | undefined): Profiled => {
    const profile = profileOf(client)
    const known = made.get(profile)
    if (known !== undefined) return known
    const view = profile.view === undefined ? whole : wrap(profile.view(principal))
    const given = {
      view,
      tools: [
        ...(profile.chatgpt === true ? connectorTools(view) : []),
        ...(profile.tools ? [...resourceTools(view, explorerApp), ...readingTools(view)] : []),
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

/** Cache of the keys of principals, which are the same objects for all requests of most callers. */
const keys = new WeakMap<Principal, string>()

/** Returns a text that is the same for principals with the same id, roles and scopes. */
export function keyOfPrincipal(principal: Principal): string {
  const key = keys.get(principal) ?? JSON.stringify([principal.id, principal.roles, principal.scopes])
  keys.set(principal, key)
  return key
}
