import { pathOfForeign } from '../../core/foreign.ts'
import { defined } from '../../core/kit/defined.ts'
import { metaKeys } from '../../core/meta.ts'
import { baseName } from '../../core/path.ts'
import { claimedPriority } from '../../core/priority.ts'
import type { Description, Entry } from '../../core/provider.ts'
import type { Resource, ResourceTemplate } from '../../core/view.ts'

/** Maximum length of the texts of one resource, in characters: a longer one is cut, or left out. */
export const longest = {
  name: 1024,
  title: 1024,
  description: 32 * 1024,
  icon: 64 * 1024,
  meta: 16 * 1024,
  version: 1024,
} as const
const maxIcons = 16
/** A value of `_meta` that is nested deeper is left out. */
const deepestMeta = 16

/** An entry with the URI that the server knows it by. */
export interface Known {
  readonly uri: string
  readonly entry: Entry
}

/**
 * Converts a listed resource of a server to an entry with the mark of this process. `undefined`: it came from this process.
 *
 * @param mark Mark that this process puts on everything it relays.
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
      ...defined({ size, modified }),
      ...(version === undefined || version.length > longest.version ? {} : { version }),
      ...described,
    },
  }
}

/** The same limits for a template. */
export function describeTemplate({ uriTemplate: _, name, ...facts }: ResourceTemplate, mark: string) {
  const described = describe(facts, mark)
  return described && { name: cut(name, longest.name), ...described }
}

export function describe(facts: Description, mark: string): Description | undefined {
  const { title, description, mimeType, priority, audience, icons, meta = {} } = facts
  const via = viaOf(meta)
  if (via.includes(mark)) return undefined
  return {
    ...(title === undefined ? {} : { title: cut(title, longest.title) }),
    ...(description === undefined ? {} : { description: cut(description, longest.description) }),
    ...defined({ mimeType }),
    ...(priority === undefined ? {} : { priority: claimedPriority(priority) }),
    ...defined({ audience }),
    ...(icons === undefined ? {} : { icons: icons.filter(({ src }) => src.length <= longest.icon).slice(0, maxIcons) }),
    meta: { ...relayed(meta), [metaKeys.via]: [...via, mark] },
  }
}

/** The marks of those that it was relayed by, so far. They are the only claim of another server's that is read, to find loops. */
function viaOf({ [metaKeys.via]: via }: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(via)
    ? via.filter((mark) => typeof mark === 'string' && /^[\w-]{1,64}$/.test(mark)).slice(0, 32)
    : []
}

/** Keys that mean something between a server and its own client (MCP, basic: `_meta`). */
const protocolKey = /^(?:[\w-]+\.)?(?:modelcontextprotocol|mcp)[./]/i
/** Keys by which this server says something: another one cannot say it in its place. */
const ownKey = /^dev\.hikidashi(?:[./]|$)/i

/** Returns the server's `_meta` without the keys of the protocol and of hikidashi, at any depth. */
export function relayed(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const kept = Object.entries(meta).filter(([key, value]) => !protocolKey.test(key) && depthOf(value) <= deepestMeta)
  const all = withoutOwnKeys(Object.fromEntries(kept)) as Readonly<Record<string, unknown>>
  return JSON.stringify(all).length > longest.meta ? {} : all
}

function withoutOwnKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(withoutOwnKeys)
  const kept = Object.entries(value).filter(([key]) => !ownKey.test(key))
  return Object.fromEntries(kept.map(([key, one]) => [key, withoutOwnKeys(one)]))
}

/** The nesting of objects and arrays, counted only up to the limit. */
function depthOf(value: unknown, left = deepestMeta + 1): number {
  if (left === 0 || typeof value !== 'object' || value === null) return 0
  return 1 + Object.values(value).reduce<number>((most, one) => Math.max(most, depthOf(one, left - 1)), 0)
}

export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
