import type { RemoteView } from '../../client/index.ts'
import { capClaimedPriority } from '../../core/entry.ts'
import { ResourceError, valueOr } from '../../core/errors.ts'
import { pathOfForeign, templateOfForeign } from '../../core/foreign.ts'
import { createSlices } from '../../core/kit/event-loop-yield.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { metaKeys } from '../../core/meta.ts'
import { baseName } from '../../core/path.ts'
import type { Content, Context, Description, Entry, Template } from '../../core/provider.ts'
import { type FoundHit, foundMimeType, parseSearchAnswer, type SearchAnswer } from '../../core/search-answer.ts'
import { compileTemplate } from '../../core/template.ts'
import { formatUri, parseAddress } from '../../core/uri.ts'
import type { Page, Resource, ResourceTemplate } from '../../core/view.ts'
import { shorten } from '../../text/excerpt.ts'

/** Maximum length of the texts of one resource, in characters: a longer one is cut, or left out. */
export const maxTextLengths = {
  name: 1024,
  title: 1024,
  description: 32 * 1024,
  icon: 64 * 1024,
  meta: 16 * 1024,
  version: 1024,
} as const
const maxIcons = 16
/** Maximum nesting depth of a value of `_meta`. A deeper value is left out. */
const deepestMeta = 16

export interface RemoteEntry {
  readonly uri: string
  readonly entry: Entry
}

/**
 * Converts a listed resource of a server to an entry with the mark of this process. `undefined`: it came from this process.
 *
 * @param mark Mark of what this process relays.
 */
export function toRemoteEntry(
  { uri, name, size, modified, version, ...facts }: Resource,
  mark: string,
): RemoteEntry | undefined {
  const described = describeEntry(facts, mark)
  if (described === undefined) return undefined
  const path = pathOfForeign(uri)
  const shortName = shorten(name, maxTextLengths.name)
  return {
    uri,
    entry: {
      path,
      ...(shortName === baseName(path) ? {} : { name: shortName }),
      ...defined({ size, modified }),
      ...(version === undefined || version.length > maxTextLengths.version ? {} : { version }),
      ...described,
    },
  }
}

function describeTemplate({ uriTemplate: _, name, ...facts }: ResourceTemplate, mark: string) {
  const described = describeEntry(facts, mark)
  return described && { name: shorten(name, maxTextLengths.name), ...described }
}

/** Returns a description from a server, shortened and with the mark of this process. Undefined: it came from this process. */
export function describeEntry(facts: Description, mark: string): Description | undefined {
  const { title, description, mimeType, priority, audience, icons, meta = {} } = facts
  const via = viaOf(meta)
  if (via.includes(mark)) return undefined
  return {
    ...(title === undefined ? {} : { title: shorten(title, maxTextLengths.title) }),
    ...(description === undefined ? {} : { description: shorten(description, maxTextLengths.description) }),
    ...defined({ mimeType, audience }),
    ...(priority === undefined ? {} : { priority: capClaimedPriority(priority) }),
    ...(icons === undefined
      ? {}
      : { icons: icons.filter(({ src }) => src.length <= maxTextLengths.icon).slice(0, maxIcons) }),
    meta: { ...relayableMeta(meta), [metaKeys.via]: [...via, mark] },
  }
}

function viaOf({ [metaKeys.via]: via }: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(via)
    ? via.filter((mark) => typeof mark === 'string' && /^[\w-]{1,64}$/.test(mark)).slice(0, 32)
    : []
}

/** Keys that MCP reserves for a server and its own client (MCP, basic: `_meta`). */
const protocolKey = /^(?:[\w-]+\.)?(?:modelcontextprotocol|mcp)[./]/i
const ownKey = /^dev\.hikidashi(?:[./]|$)/i

/**
 * Returns the server's `_meta` without the keys of the protocol and, at any depth, without keys of hikidashi and URIs of resources. A
 * client would take such a URI for one of this process, and access rules do not apply to it. Addresses of web pages are kept. Values that
 * are nested too deeply are left out; the result is empty if the rest is too long.
 */
export function relayableMeta(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const members = Object.entries(meta).filter(([key, value]) => !protocolKey.test(key) && depthOf(value) <= deepestMeta)
  const all = relayedValue(Object.fromEntries(members)) as Readonly<Record<string, unknown>> | undefined
  return all === undefined || JSON.stringify(all).length > maxTextLengths.meta ? {} : all
}

/** Undefined when nothing of the value is left. */
function relayedValue(value: unknown): unknown {
  if (typeof value === 'string') return isResourceUri(value) ? undefined : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(relayedValue).filter((one) => one !== undefined)
    return items.length === 0 && value.length > 0 ? undefined : items
  }
  const members = Object.entries(value)
  const others = members.filter(([key]) => !ownKey.test(key) && !isResourceUri(key))
  const relayedMembers = others
    .map(([key, one]) => [key, relayedValue(one)] as const)
    .filter(([, one]) => one !== undefined)
  return relayedMembers.length === 0 && members.length > 0 ? undefined : Object.fromEntries(relayedMembers)
}

/** Whether a text is a URI other than that of a web page, as URL parsers read it: they ignore line breaks, tabs, and spaces before it. */
function isResourceUri(text: string): boolean {
  const bare = text.replace(/^[\0- ]+|[\t\n\r]+/g, '')
  return /^(?:[a-z][a-z0-9+.-]*:\/\/|file:)/i.test(bare) && !/^https?:/i.test(bare)
}

function depthOf(value: unknown, remainingDepth = deepestMeta + 1): number {
  if (remainingDepth === 0 || typeof value !== 'object' || value === null) return 0
  return 1 + Object.values(value).reduce<number>((most, one) => Math.max(most, depthOf(one, remainingDepth - 1)), 0)
}

const maxTemplates = 5000
const maxPages = 1000

/** Fetches the templates of a server. Templates that cannot be mapped to a path of the mount are left out and logged. */
export async function fetchTemplates(
  view: RemoteView,
  { mark, log, signal }: { readonly mark: string; readonly log: Log; readonly signal: AbortSignal },
): Promise<readonly { readonly template: Template; readonly uriTemplate: string }[]> {
  return collectPages(
    'templates',
    maxTemplates,
    (query) => view.templates(query, { signal }),
    (item) => {
      const { uriTemplate } = item
      const template = templateOfForeign(uriTemplate)
      const described = describeTemplate(item, mark)
      if (described === undefined) return undefined
      if (template !== undefined && isTemplate(template))
        return [template, { template: { template, ...described }, uriTemplate }]
      log('warn', 'a template of the server cannot be relayed', { template: uriTemplate.slice(0, 200) })
      return undefined
    },
  )
}

/**
 * Collects the items that a server lists: of items with the same key the first one, and none for which `keyed` returns undefined.
 *
 * @throws ResourceError `too-large` for a list of more than `max` items or 1000 pages.
 */
export async function collectPages<T, Kept>(
  what: string,
  max: number,
  fetch: (query: { readonly cursor?: string }) => Promise<Pick<Page<T>, 'items' | 'nextCursor'>>,
  keyed: (item: T) => readonly [key: string, kept: Kept] | undefined,
): Promise<Kept[]> {
  const contentsByKey = new Map<string, Kept>()
  const slices = createSlices()
  let isWhole = false
  for await (const { items, nextCursor } of iteratePages(fetch, { maxPages })) {
    for (const item of items) {
      const keyedItem = keyed(item)
      if (keyedItem !== undefined && !contentsByKey.has(keyedItem[0])) contentsByKey.set(...keyedItem)
      if (contentsByKey.size > max) throw new ResourceError('too-large', `The server has over ${max} ${what}.`)
      if (slices.due()) await slices.rest()
    }
    isWhole = nextCursor === undefined
  }
  if (!isWhole) throw new ResourceError('too-large', `The ${what} of the server have over ${maxPages} pages.`)
  return [...contentsByKey.values()]
}

function isTemplate(text: string): boolean {
  return valueOr(() => compileTemplate(text), undefined) !== undefined
}

/**
 * Rewrites the URIs in search results, so that they can be read here. Other content stays unchanged. With `allows`, hits in hidden
 * documents are left out, and so are the total and the notes about mounts; the scores are scaled again.
 *
 * @param allows Whether the caller may see a path. When undefined, the caller may see all of them.
 */
export function rewriteSearchResults(
  content: Content,
  address: string | undefined,
  allows: Context['allows'],
): Content {
  if (content.mimeType !== foundMimeType || !('text' in content)) return content
  const searchAnswer = parseSearchAnswer(content.text)
  if (searchAnswer === undefined) return content
  const answer = allows === undefined ? searchAnswer : visibleIn(searchAnswer, allows)
  if (address === undefined) return allows === undefined ? content : { ...content, text: JSON.stringify(answer) }
  const here = parseAddress(address)
  const uriOf = (uri: string) => formatUri(here, pathOfForeign(uri))
  const hitOf = (hit: FoundHit): FoundHit => {
    const query = /\?.*$/s.exec(hit.uri)?.[0] ?? ''
    // The query selects the found part at the server, so it stays unchanged.
    const uri = hit.uri === `${hit.document}${query}` ? `${uriOf(hit.document)}${query}` : uriOf(hit.uri)
    return { ...hit, uri, document: uriOf(hit.document), mount: uriOf(hit.mount) }
  }
  return { ...content, text: JSON.stringify({ ...answer, hits: answer.hits.map(hitOf) }) }
}

function visibleIn({ total: _, ...found }: SearchAnswer, allows: (path: string) => boolean): SearchAnswer {
  const hits = found.hits.filter(({ document }) => allows(pathOfForeign(document)))
  const best = hits[0]?.score || 1
  return {
    ...found,
    hits: hits.map((hit) => ({ ...hit, score: Math.min(1, hit.score / best) })),
    notes: found.notes.filter((note) => !note.includes('://')),
  }
}
