import type { Catalog } from '../core/catalog.ts'
import type { Principal } from '../core/provider.ts'
import type { View } from '../core/view.ts'
import type { ClientsConfig } from './clients.ts'

/**
 * Hosts that show a model no resources, or none that it can choose by itself, by what they call themselves. The source of each
 * is in docs/tools.md.
 */
export const withoutResources: readonly string[] = [
  'Zed',
  'cursor*',
  'claude-ai',
  'ChatGPT',
  'openai-mcp*',
  '@n8n/*',
  'com.raycast.*',
  'dust-mcp-client',
  'Mistral',
  'Jan-*',
  'lobehub-mcp-client',
  'JetBrains-*',
  'Xcode-copilot-xcode',
]

/** The explorer asks by tools for what resources alone do not tell: tokens, suggestions, what a search found. */
const explorer = 'hikidashi-explorer'

interface Profile {
  readonly tools: boolean
  readonly view?: (principal: Principal) => View
}

/** What a client is given, by its name and version. */
export function profilesOf(
  config: ClientsConfig | undefined,
  catalog: Pick<Catalog, 'narrowed'>,
): (client: { readonly name: string; readonly version: string } | undefined) => Profile {
  const { tools = 'auto', profiles = [] } = config ?? {}
  const isKnown = matcher(withoutResources)
  const on: Profile = { tools: true }
  const off: Profile = { tools: false }
  const own = profiles.map(({ name, version, tools: wants, list }) => {
    const { match, ...rest } = list ?? {}
    const view = list && catalog.narrowed({ ...rest, ...(match === undefined ? {} : { match: [match].flat() }) })
    const made = (has: boolean): Profile => (view === undefined ? { tools: has } : { tools: has, view })
    return {
      isIt: matcher([name].flat()),
      isVersion: version === undefined ? () => true : matcher([version].flat()),
      with: made(true),
      without: made(false),
      wants,
    }
  })
  return (client) => {
    const isExplorer = client?.name === explorer
    const isOn = isExplorer || tools === 'on' || (tools === 'auto' && client !== undefined && isKnown(client.name))
    const found = client && own.find(({ isIt, isVersion }) => isIt(client.name) && isVersion(client.version))
    if (found !== undefined) return isExplorer || (found.wants ?? isOn) ? found.with : found.without
    return isOn ? on : off
  }
}

/** Whether a text is one of these, in which `*` stands for anything. In linear time: names are a stranger's. */
function matcher(patterns: readonly string[]): (text: string) => boolean {
  const compiled = patterns.map((pattern) => pattern.toLowerCase().split('*'))
  return (given) => {
    const name = given.toLowerCase()
    return compiled.some((parts) => matches(name, parts))
  }
}

function matches(name: string, parts: readonly string[]): boolean {
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at <= name.length - last.length
}
