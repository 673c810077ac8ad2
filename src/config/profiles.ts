import type { Catalog } from '../core/catalog.ts'
import { defined } from '../core/kit/object.ts'
import type { Principal } from '../core/provider.ts'
import type { View } from '../core/view.ts'
import type { ClientsConfig } from './schema.ts'

/**
 * Names that hosts send as clients, with a model that lists, reads and searches resources by itself. A host is added
 * after a test run has shown all three (docs/hosts.md). `hikidashi` is the client of this project.
 */
const withResources: readonly string[] = ['codex-mcp-client*', 'hikidashi']

/** Hosts that look for tools named `search` and `fetch`. */
const withConnectors: readonly string[] = ['ChatGPT*', 'openai-mcp*']

/** The explorer calls tools for information that resources do not carry, such as token counts and suggestions. */
const explorer = 'hikidashi-explorer'

/** docs/hosts.md describes how the limits were found. */
interface HostLimit {
  readonly name: string
  /** Maximum number of resources that the host accepts in a list. */
  readonly most?: number
  /** Maximum number of pages of a list that the host requests. */
  readonly pages?: number
}

export const hostLimits: readonly HostLimit[] = [
  { name: 'codex-mcp-client*', most: 2000 },
  { name: 'gemini-cli-mcp-client*', most: 300 },
  { name: 'claude-code*', pages: 20 },
]

interface Profile {
  readonly tools: boolean
  readonly chatgpt?: true
  readonly view?: (principal: Principal) => View
  readonly note?: string
}

function noteOf({ most, pages }: { readonly most?: number | undefined; readonly pages?: number | undefined }): string {
  const extent = most === undefined ? `${pages} pages of` : `the ${most} most important`
  return `Your list holds ${extent} resources at most; search and templates reach the others.`
}

export function createProfileFinder(
  config: ClientsConfig | undefined,
  catalog: Pick<Catalog, 'narrowed'>,
): (client: { readonly name: string; readonly version: string } | undefined) => Profile {
  const { tools = 'auto', profiles = [] } = config ?? {}
  const usesResources = matcher(withResources)
  const wantsConnectors = matcher(withConnectors)
  const own = profiles.map((profile) => ({
    ...profile,
    isIt: matcher([profile.name].flat()),
    isVersion: profile.version === undefined ? () => true : matcher([profile.version].flat()),
  }))
  const hosts = hostLimits.map((limit) => ({ ...limit, isIt: matcher([limit.name]) }))
  const profilesByKey = new Map<string, Profile>()
  const profileWith = (host: number, at: number, tools: boolean, chatgpt: boolean): Profile => {
    const key = `${host} ${at} ${tools} ${chatgpt}`
    const cachedProfile = profilesByKey.get(key)
    if (cachedProfile !== undefined) return cachedProfile
    const { match, mounts, most: listLimit } = own[at]?.list ?? {}
    const limit = listLimit === undefined ? hosts[host] : undefined
    const most = listLimit === 'all' ? undefined : (listLimit ?? limit?.most)
    const bounds = defined({ most, pages: limit?.pages })
    const narrowing = { ...bounds, ...defined({ mounts, match: match === undefined ? undefined : [match].flat() }) }
    const profile: Profile = {
      tools,
      ...(chatgpt ? { chatgpt: true as const } : {}),
      ...(Object.keys(narrowing).length === 0 ? {} : { view: catalog.narrowed(narrowing) }),
      ...(Object.keys(bounds).length === 0 ? {} : { note: noteOf(bounds) }),
    }
    profilesByKey.set(key, profile)
    return profile
  }
  return (client) => {
    const isExplorer = client?.name === explorer
    const at =
      client === undefined ? -1 : own.findIndex((one) => one.isIt(client.name) && one.isVersion(client.version))
    const host = client === undefined ? -1 : hosts.findIndex((one) => one.isIt(client.name))
    const mode = isExplorer ? 'on' : (own[at]?.tools ?? tools)
    if (mode !== 'auto') return profileWith(host, at, mode === true || mode === 'on', mode === 'chatgpt')
    const isConnector = client !== undefined && wantsConnectors(client.name)
    const isKnown = client !== undefined && usesResources(client.name)
    return profileWith(host, at, !isKnown, isConnector)
  }
}

/**
 * In a pattern, `*` is any text. Clients choose their names, so this is no regular expression, which could backtrack.
 */
function matcher(patterns: readonly string[]): (text: string) => boolean {
  const compiled = patterns.map((pattern) => pattern.toLowerCase().split('*'))
  return (clientName) => {
    const name = clientName.toLowerCase()
    return compiled.some((parts) => isPatternMatch(name, parts))
  }
}

function isPatternMatch(name: string, parts: readonly string[]): boolean {
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let at = first.length
  for (const part of rest) {
    const index = name.indexOf(part, at)
    if (index === -1) return false
    at = index + part.length
  }
  return at <= name.length - last.length
}
