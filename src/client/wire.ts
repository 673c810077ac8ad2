import { ResourceError } from '../core/errors.ts'
import { defined, nonEmptyText, objectOf, parseIsoTime, stringItems } from '../core/kit/object.ts'
import { metaKeys } from '../core/meta.ts'
import type { Audience, Completion, FilledPrompt, Icon, PromptMessage } from '../core/provider.ts'
import { decodeIfValid } from '../core/uri.ts'
import {
  type CacheHint,
  directoryMimeType,
  type ListedArgument,
  type ListedPrompt,
  type Page,
  type PromptContent,
  type Resource,
  type ResourceContent,
  type ResourceTemplate,
} from '../core/view.ts'

/**
 * An object as a server sends it. The functions below convert it to core types. A bad date, priority or icon costs that field, and not the
 * page. A resource without a URI is left out.
 */
export type WireObject = Readonly<Record<string, unknown>>

/** Maximum number of values of a completion in MCP. */
const maxValues = 100

/** Converts the items of a list, each to any number of others. */
export type ConvertItems = <T>(
  items: readonly unknown[],
  convert: (item: unknown) => readonly T[],
) => Promise<readonly T[]>

const convertAtOnce: ConvertItems = async (items, convert) => items.flatMap(convert)

/** @throws ResourceError `internal` for an answer without resources. */
export async function resourcePageOf(
  answer: WireObject,
  convertItems = convertAtOnce,
  convert = resourcesIn,
): Promise<Omit<Page<Resource>, 'nextCursor'>> {
  const addresses = objectOf(answer._meta)[metaKeys.unavailable]
  const unavailable = stringItems(addresses)
  return {
    items: await convertItems(requiredList(answer, 'resources'), convert),
    cache: cacheHintOf(answer),
    ...(unavailable.length === 0 ? {} : { unavailable }),
  }
}

/**
 * Returns the children of a directory. Adds the final `/` of directories, which the Skills extension omits.
 *
 * @throws ResourceError `internal` for an answer without resources.
 */
export function directoryPageOf(
  answer: WireObject,
  convertItems = convertAtOnce,
): Promise<Omit<Page<Resource>, 'nextCursor'>> {
  const isPlain = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType && !uri.endsWith('/')
  return resourcePageOf(answer, convertItems, (item) =>
    resourcesIn(item).map((one) => (isPlain(one) ? { ...one, uri: `${one.uri}/` } : one)),
  )
}

/** @throws ResourceError `internal` for an answer without templates. */
export async function templatePageOf(
  answer: WireObject,
  convertItems = convertAtOnce,
): Promise<Omit<Page<ResourceTemplate>, 'nextCursor'>> {
  const items = await convertItems(requiredList(answer, 'resourceTemplates'), (item): readonly ResourceTemplate[] => {
    const wire = objectOf(item)
    const uriTemplate = nonEmptyText(wire.uriTemplate)
    if (uriTemplate === undefined) return []
    const meta = metaOf(wire)
    return [{ uriTemplate, name: nonEmptyText(wire.name) ?? uriTemplate, ...descriptionOf(wire), ...defined({ meta }) }]
  })
  return { items, cache: cacheHintOf(answer) }
}

/** Returns the server's cursor for the next page. Some servers send `null` with the last page. */
export function cursorOf({ nextCursor }: WireObject): string | undefined {
  return typeof nextCursor === 'string' ? nextCursor : undefined
}

/** Returns the mounts of a hikidashi server, which its first page names; undefined for any other server. */
export function parseMounts({ _meta }: WireObject): readonly Resource[] | undefined {
  const mounts = objectOf(_meta)[metaKeys.mounts]
  return Array.isArray(mounts) ? resourcesOf(mounts) : undefined
}

/**
 * Returns the contents of an answer. A content that names no URI gets the URI `asked`.
 *
 * @param decode Decodes base64 (RFC 4648, section 4). A browser passes its own function.
 * @throws ResourceError `internal` for a content that is neither text nor base64.
 */
export function contentsOf(answer: WireObject, requestUri: string, decode = decodeBase64): readonly ResourceContent[] {
  return requiredList(answer, 'contents').map((item) => {
    const wire = objectOf(item)
    const facts = {
      uri: wireUri(wire) ?? requestUri,
      ...defined({
        name: nonEmptyText(wire.name),
        title: nonEmptyText(wire.title),
        mimeType: nonEmptyText(wire.mimeType),
        version: resourceVersion(wire),
        meta: metaOf(wire),
      }),
    }
    if (typeof wire.text === 'string') return { ...facts, text: wire.text.toWellFormed() }
    if (typeof wire.blob === 'string') return { ...facts, bytes: decode(wire.blob) }
    throw malformedAnswer('a content has neither text nor blob')
  })
}

export function completionOf({ completion }: WireObject): Completion {
  const { total, hasMore, ...listed } = objectOf(completion)
  const values = requiredList(listed, 'values')
  return {
    values: values.filter((value) => typeof value === 'string').slice(0, maxValues),
    ...defined({ total: countOf(total), hasMore: typeof hasMore === 'boolean' ? hasMore : undefined }),
  }
}

/** Returns how long an answer may be cached: not at all if the server gives no hint. */
export function cacheHintOf({ ttlMs, cacheScope }: WireObject): CacheHint {
  return {
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 && Number.isFinite(ttlMs) ? ttlMs : 0,
    scope: cacheScope === 'public' ? 'public' : 'private',
  }
}

export function resourcesOf(items: readonly unknown[]): readonly Resource[] {
  return items.flatMap(resourcesIn)
}

function resourcesIn(item: unknown): readonly Resource[] {
  const wire = objectOf(item)
  const uri = wireUri(wire)
  if (uri === undefined) return []
  const facts = {
    size: countOf(wire.size),
    modified: parseIsoTime(objectOf(wire.annotations).lastModified),
    version: resourceVersion(wire),
    meta: metaOf(wire),
  }
  return [{ uri, name: nonEmptyText(wire.name) ?? lastSegment(uri), ...descriptionOf(wire), ...defined(facts) }]
}

function resourceVersion({ _meta }: WireObject): string | undefined {
  return nonEmptyText(objectOf(_meta)[metaKeys.version])
}

/** Returns the members of `_meta` except the version. */
export function metaOf({ _meta }: WireObject): WireObject | undefined {
  const { [metaKeys.version]: _, ...meta } = objectOf(_meta)
  return Object.keys(meta).length > 0 ? meta : undefined
}

export function descriptionOf(wire: WireObject) {
  const { audience, priority } = objectOf(wire.annotations)
  const roles = Array.isArray(audience) ? new Set<Audience>(audience.filter(isAudience)) : new Set<Audience>()
  return defined({
    title: nonEmptyText(wire.title),
    description: nonEmptyText(wire.description),
    mimeType: nonEmptyText(wire.mimeType),
    priority: typeof priority === 'number' && priority >= 0 && priority <= 1 ? priority : undefined,
    audience: roles.size > 0 ? [...roles] : undefined,
    icons: iconsOf(wire.icons),
  })
}

function isAudience(role: unknown): role is Audience {
  return role === 'user' || role === 'assistant'
}

function iconsOf(items: unknown): readonly Icon[] | undefined {
  if (!Array.isArray(items)) return undefined
  const icons = items.flatMap((item): readonly Icon[] => {
    const { src, mimeType, sizes, theme } = objectOf(item)
    if (typeof src !== 'string' || !/^(https|data):/.test(src)) return []
    const facts = {
      mimeType: nonEmptyText(mimeType),
      sizes: Array.isArray(sizes) ? sizes.filter((size) => typeof size === 'string') : undefined,
      theme: theme === 'light' || theme === 'dark' ? theme : undefined,
    } as const
    return [{ src, ...defined(facts) }]
  })
  return icons.length > 0 ? icons : undefined
}

/** Decodes base64. Throws for other text, which Node's own decoder skips. */
export function decodeBase64(text: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw malformedAnswer('a blob is not base64')
  return Buffer.from(text, 'base64')
}

/**
 * Returns the link to the whole content that hikidashi adds to the error of a read that is too large (`data.link.href`). Undefined when
 * there is none, or when it leads to another origin.
 *
 * @param base URL that the link is relative to.
 */
export function contentLinkIn(data: unknown, base: string): URL | undefined {
  const { href } = objectOf(objectOf(data).link)
  if (typeof href !== 'string' || !URL.canParse(href, base)) return undefined
  const url = new URL(href, base)
  return url.origin === new URL(base).origin ? url : undefined
}

/** Returns a name for a resource that has none: the last segment of its URI, decoded if that is possible. Without a segment, the whole URI. */
export function lastSegment(uri: string): string {
  const path = uri.replace(/[?#].*$/s, '').replace(/\/+$/, '')
  const segment = path.slice(Math.max(path.lastIndexOf('/'), path.indexOf(':')) + 1)
  return (decodeIfValid(segment) || uri).toWellFormed()
}

/** Returns a list of an answer. Null is an empty list, as servers in Go write it. @throws ResourceError `internal` for no list. */
export function requiredList(answer: WireObject, name: string): readonly unknown[] {
  const list = answer[name] ?? (name in answer ? [] : undefined)
  if (!Array.isArray(list)) throw malformedAnswer(`it has no ${name}`)
  return list
}

function wireUri({ uri }: WireObject): string | undefined {
  return typeof uri === 'string' && uri !== '' ? uri : undefined
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

export function malformedAnswer(what: string): ResourceError {
  return new ResourceError('internal', `The answer of the server is malformed: ${what}.`)
}

/** @throws ResourceError `internal` for an answer without prompts. */
export async function promptPageOf(
  answer: WireObject,
  convertItems = convertAtOnce,
): Promise<Omit<Page<ListedPrompt>, 'nextCursor'>> {
  const items = await convertItems(requiredList(answer, 'prompts'), (item): readonly ListedPrompt[] => {
    const wire = objectOf(item)
    const name = nonEmptyText(wire.name)
    // A prompt without a name cannot be requested.
    if (name === undefined) return []
    const { title, description, icons } = descriptionOf(wire)
    const meta = metaOf(wire)
    const declared = Array.isArray(wire.arguments) ? wire.arguments.flatMap(parsePromptArgument) : []
    return [
      {
        name,
        ...defined({ title, description, icons, meta }),
        ...(declared.length > 0 ? { arguments: declared } : {}),
      },
    ]
  })
  return { items, cache: cacheHintOf(answer) }
}

function parsePromptArgument(item: unknown): readonly ListedArgument[] {
  const wire = objectOf(item)
  const name = nonEmptyText(wire.name)
  if (name === undefined) return []
  const { title, description } = descriptionOf(wire)
  const required = typeof wire.required === 'boolean' ? wire.required : undefined
  return [{ name, ...defined({ title, description, required }) }]
}

/** @throws ResourceError `internal` for an answer without messages, or with a content of an unknown type. */
export function filledPromptOf(answer: WireObject, decode = decodeBase64): FilledPrompt<PromptContent> {
  const description = nonEmptyText(answer.description)
  const messages = requiredList(answer, 'messages').map((item): PromptMessage<PromptContent> => {
    const { role, content } = objectOf(item)
    const block = blockOf(objectOf(content), decode)
    if (block === undefined) throw malformedAnswer('a message of a prompt has no content')
    return { role: role === 'assistant' ? 'assistant' : 'user', content: block }
  })
  return { ...defined({ description }), messages }
}

export function blockOf(wire: WireObject, decode = decodeBase64): PromptContent | undefined {
  const { type, text, data, mimeType } = wire
  if (type === 'text' && typeof text === 'string') return { text: text.toWellFormed() }
  if ((type === 'image' || type === 'audio') && typeof data === 'string')
    return { bytes: decode(data), mimeType: nonEmptyText(mimeType) ?? `${type}/*` }
  const [resource] = type === 'resource' ? contentsOf({ contents: [wire.resource] }, '', decode) : []
  if (resource !== undefined) return { resource }
  const [link] = type === 'resource_link' ? resourcesOf([wire]) : []
  return link === undefined ? undefined : { link }
}
