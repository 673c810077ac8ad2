import { createHash } from 'node:crypto'
import { formatHttpUrl, type HttpUrl, httpUrlBelow, originOf, resolveHttpUrl } from '../../core/http-url.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Entry } from '../../core/provider.ts'
import { unreachableError } from '../http/client.ts'
import type { FetchedDocument } from '../http/fetched.ts'
import { parsePointer } from '../settings/tree.ts'
import { encodeListingUrl, type Route } from './route.ts'

/** An item of a route's listing. */
export interface RouteItem {
  readonly entry: Entry
  /** The template of the route. */
  readonly template: string
  /** The values of the variables of the template. */
  readonly values: ReadonlyMap<string, string>
  /** Hash of the item in the listing. */
  readonly stamp: string
}

interface ListingOptions {
  readonly base: HttpUrl
  readonly load: (url: HttpUrl, signal: AbortSignal, fresh: boolean) => Promise<FetchedDocument>
  readonly maxEntries: number
  readonly log: Log
}

/** Maximum number of pages requested for the listing of a route. */
const maxPages = 200
/** Maximum length of a title and of a description, in characters. */
const [maxTitle, maxDescription] = [200, 1000]

/** Lists the items of a route from the API, page by page, up to `maxEntries`. Items whose values form no path are left out. */
export async function listRoute(
  route: Route,
  { base, load, maxEntries, log }: ListingOptions,
  signal: AbortSignal,
  fresh: boolean,
): Promise<readonly RouteItem[]> {
  const { list } = route
  if (list === undefined) return []
  const items = new Map<string, RouteItem>()
  const urls = new Set<string>()
  let url: HttpUrl | undefined = httpUrlBelow(base, encodeListingUrl(list.from))
  let passed = 0
  for (let page = 0; url !== undefined; page++) {
    const at: string = formatHttpUrl(url)
    if (page === maxPages || items.size >= maxEntries || urls.has(at)) {
      log('warn', 'the listing of an API is cut off: it is too long, or its pages form a loop', { pages: page })
      break
    }
    urls.add(at)
    const document = await load(url, signal, fresh)
    const body = parseJsonBody(document, url)
    const listValue = list.items === undefined ? body : valueAt(body, list.items)
    if (!Array.isArray(listValue))
      throw unreachableError(
        url,
        list.items === undefined ? 'its answer is not an array' : 'its answer has no array at the pointer "items"',
      )
    for (const value of listValue as readonly unknown[]) {
      const item = itemOf(route, value)
      if (item === undefined) passed++
      else if (items.size < maxEntries) items.set(item.entry.path, item)
    }
    url = listValue.length === 0 ? undefined : nextOf(route, { base, url, fetched: document, body, page })
  }
  if (passed > 0) log('info', 'some items of an API are left out: their values form no path', { items: passed })
  return [...items.values()]
}

/** @throws ResourceError `unavailable` for a body that is not JSON. */
function parseJsonBody({ body }: FetchedDocument, url: HttpUrl): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    throw unreachableError(url, 'its answer is not JSON')
  }
}

function itemOf(route: Route, value: unknown): RouteItem | undefined {
  const { list, options } = route
  const pairs = Object.entries(list?.values ?? {}).map(
    ([name, pointer]) => [name, textAtPointer(value, pointer)] as const,
  )
  const values = new Map(pairs.flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const])))
  const path = values.size === pairs.length ? route.pathOf(values) : undefined
  if (path === undefined) return undefined
  const title = list?.title === undefined ? undefined : lineAt(value, list.title, maxTitle)
  const description =
    list?.description === undefined ? options.description : lineAt(value, list.description, maxDescription)
  const modified = list?.modified === undefined ? undefined : timeAt(value, list.modified)
  const { mimeType = 'application/json', priority, audience } = options
  const entry: Entry = {
    path,
    mimeType,
    ...defined({ title, description, modified, priority, audience }),
  }
  return {
    entry,
    template: options.template,
    values,
    stamp: createHash('sha256').update(JSON.stringify(value)).digest('base64url'),
  }
}

interface FetchedPage {
  readonly base: HttpUrl
  readonly url: HttpUrl
  readonly fetched: FetchedDocument
  readonly body: unknown
  /** Page number, from 0. */
  readonly page: number
}

/** @throws ResourceError `unavailable` for a malformed link, or a page at another origin. */
function nextOf(route: Route, { base, url, fetched, body, page }: FetchedPage): HttpUrl | undefined {
  const next = route.list?.next
  if (next === undefined) return undefined
  if (next === 'link') {
    const reference = nextLink(fetched.link ?? '')
    if (reference === undefined) return undefined
    const target = resolved(url, reference)
    if (target === undefined || originOf(target) !== originOf(base))
      throw unreachableError(url, 'the link to the next page of its listing is malformed, or leads to another origin')
    return target
  }
  if ('page' in next) return withParam(route, base, next.page, String((next.from ?? 1) + page + 1))
  const cursor = textAtPointer(body, next.cursor)
  return cursor === undefined || cursor === '' ? undefined : withParam(route, base, next.param, cursor)
}

function resolved(url: HttpUrl, reference: string): HttpUrl | undefined {
  try {
    return resolveHttpUrl(url, reference)
  } catch {
    return undefined
  }
}

function withParam(route: Route, base: HttpUrl, name: string, value: string): HttpUrl {
  const from = encodeListingUrl(route.list?.from ?? '')
  const param = `${encodeURIComponent(name)}=${encodeURIComponent(value.toWellFormed())}`
  return httpUrlBelow(base, `${from}${from.includes('?') ? '&' : '?'}${param}`)
}

/** Returns the target of the link to the next page in a header `Link` (RFC 8288). */
function nextLink(header: string): string | undefined {
  for (const [, target, params = ''] of header.slice(0, 16_384).matchAll(/<([^<>]*)>([^<]*)/g))
    if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)/i.test(params)) return target
  return undefined
}

/** Returns the value at a JSON pointer. Follows only own properties. */
function valueAt(value: unknown, pointer: string): unknown {
  let at = value
  for (const step of parsePointer(pointer)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[step]
  }
  return at
}

function textAtPointer(value: unknown, pointer: string): string | undefined {
  const member = valueAt(value, pointer)
  if (typeof member === 'number' && Number.isFinite(member)) return String(member)
  return typeof member === 'string' && member.isWellFormed() ? member : undefined
}

function lineAt(value: unknown, pointer: string, most: number): string | undefined {
  const text = textAtPointer(value, pointer)
    ?.replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  return text === undefined || text === ''
    ? undefined
    : Array.from(text.slice(0, most * 2))
        .slice(0, most)
        .join('')
        .toWellFormed()
}

function timeAt(value: unknown, pointer: string): number | undefined {
  const member = valueAt(value, pointer)
  const time = typeof member === 'string' ? Date.parse(member) : Number.NaN
  return Number.isNaN(time) || time < 0 ? undefined : time
}
