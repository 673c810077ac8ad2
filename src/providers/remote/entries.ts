import { pathOfForeign } from '../../core/foreign.ts'
import { metaKeys } from '../../core/meta.ts'
import { baseName } from '../../core/path.ts'
import type { Description, Entry } from '../../core/provider.ts'
import type { Resource, ResourceTemplate } from '../../core/view.ts'

/** The longest of what a server may say of one resource, in characters: what is longer is cut, or left out. */
const longest = {
  name: 1024,
  title: 1024,
  description: 32 * 1024,
  icon: 64 * 1024,
  meta: 16 * 1024,
  version: 1024,
} as const
const maxIcons = 16

/** An entry with the URI that the server knows it by. */
export interface Known {
  readonly uri: string
  readonly entry: Entry
}

/**
 * What a server lists, as an entry with the mark of this process. `undefined`: it came from here.
 *
 * @param mark What this process puts on everything that it relays.
 */
export function knownOf({ uri, name, size, modified, version, ...facts }: Resource, mark: string): Known | undefined {
  const described = describe(facts, mark)
  if (described === undefined) return undefined
  const path = pathOfForeign(uri)
  const shown = cut(name, longest.name)
  return {
    uri,
    entry: {
      path,
      ...(shown === baseName(path) ? {} : { name: shown }),
      ...(size === undefined ? {} : { size }),
      ...(modified === undefined ? {} : { modified }),
      ...(version === undefined || version.length > longest.version ? {} : { version }),
      ...described,
    },
  }
}

/** The same of what is said of a template. */
export function describeTemplate({ uriTemplate: _, name, ...facts }: ResourceTemplate, mark: string) {
  const described = describe(facts, mark)
  return described && { name: cut(name, longest.name), ...described }
}

function describe(facts: Description, mark: string): Description | undefined {
  const { title, description, mimeType, priority, audience, icons, meta = {} } = facts
  const via = viaOf(meta)
  if (via.includes(mark)) return undefined
  return {
    ...(title === undefined ? {} : { title: cut(title, longest.title) }),
    ...(description === undefined ? {} : { description: cut(description, longest.description) }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(priority === undefined ? {} : { priority }),
    ...(audience === undefined ? {} : { audience }),
    ...(icons === undefined ? {} : { icons: icons.filter(({ src }) => src.length <= longest.icon).slice(0, maxIcons) }),
    meta: { ...relayed(meta), [metaKeys.via]: [...via, mark] },
  }
}

/** The marks of those that it was relayed by, so far. */
function viaOf({ [metaKeys.via]: via }: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(via) ? via.filter((mark) => typeof mark === 'string').slice(0, 32) : []
}

/** What a server says in `_meta`, without keys that mean something between it and its own client (MCP, basic: `_meta`). */
export function relayed(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const kept = Object.entries(meta).filter(([key]) => !/^(?:[\w-]+\.)?(?:modelcontextprotocol|mcp)[./]/i.test(key))
  const all = Object.fromEntries(kept)
  return kept.length === 0 || JSON.stringify(all).length > longest.meta ? {} : all
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
