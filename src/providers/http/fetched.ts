import { createHash } from 'node:crypto'
import { createGuard, parseAllowed, type ResolveHost } from '../../core/address-guard.ts'
import { invalid, isResourceError, notFound, type ResourceError, unavailable } from '../../core/errors.ts'
import { formatHttpUrl, type HttpUrl, originOf, parseHttpUrl } from '../../core/http-url.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Content } from '../../core/provider.ts'
import { isLoopback } from '../../core/uri.ts'
import { decodeBytes, encodingLabel } from '../../text/encoding/decode.ts'
import { createHttpClient, type HttpAnswer, type HttpGet, type HttpRequest, unreachableError } from './client.ts'

export interface FetchedDocument extends MediaType {
  readonly body: Buffer
  /** Hash of the body and its media type. */
  readonly version: string
  readonly link: string | undefined
  readonly url: HttpUrl
}

/** `fresh` revalidates even a recent answer. */
type Fetch = (ask: HttpRequest & { readonly fresh?: boolean }) => Promise<FetchedDocument>

interface CachedFetch {
  readonly fetched: FetchedDocument
  readonly etag: string | undefined
  readonly modified: string | undefined
  readonly epoch: number
  /** The number of the request. An answer to an earlier request does not replace one to a later request. */
  readonly order: number
  /** Time until which the answer is used without revalidation, as `performance.now()` returns it. */
  readonly until: number
}

/** Maximum size of the cache of a source, in bytes. */
const maxCacheBytes = 32 * 1024 * 1024
/** Time that a body is used without revalidation, in milliseconds: a reader requests one range after the other. */
const freshMs = 2000
const maxPauseMs = 5 * 60_000

/**
 * Creates a caching fetch: revalidates cached answers (`ETag`, `Last-Modified`), except for a short time after the last request. Does not
 * cache `no-store`. Pauses for a server that answers 429 or 503 with `Retry-After`.
 *
 * Throws ResourceError `not-found` for 404 and 410, `invalid` for 400 and 422, `unavailable` for any other status, and the errors of `get`.
 */
export function createFetch(get: HttpGet) {
  /** The epoch: the number of calls of `renew`. An answer of an earlier epoch is revalidated. */
  let epoch = 0
  let requests = 0
  const cache = createLruCache<CachedFetch>(maxCacheBytes, ({ fetched }) => fetched.body.length + 1000)
  let pausedUntil = 0

  const keep = (key: string, cachedFetch: CachedFetch, control: string) => {
    if ((cache.get(key)?.order ?? 0) > cachedFetch.order) return
    if (/\bno-store\b/i.test(control) || cachedFetch.fetched.body.length > maxCacheBytes / 4) cache.delete(key)
    else cache.set(key, cachedFetch)
  }

  const fetch: Fetch = async ({ fresh = false, ...ask }) => {
    const epochAtRequest = epoch
    const key = formatHttpUrl(ask.url)
    const cachedFetch = cache.get(key)
    if (cachedFetch !== undefined && !fresh && cachedFetch.epoch === epoch && performance.now() < cachedFetch.until)
      return cachedFetch.fetched
    const waitMs = pausedUntil - performance.now()
    if (waitMs > 0)
      throw unavailable('The server asked for a pause. Try again later.', {
        retryAfter: Math.ceil(waitMs / 1000),
      })
    const order = ++requests
    const answer = await get({ ...ask, own: { ...ask.own, ...conditionsOf(cachedFetch) } })
    const pauseMs = pauseIn(answer)
    if (pauseMs > 0) pausedUntil = performance.now() + pauseMs
    const control = answer.header('cache-control') ?? ''
    if (answer.status === 304 && cachedFetch !== undefined) {
      keep(key, { ...cachedFetch, order, epoch: epochAtRequest, until: performance.now() + freshMs }, control)
      return cachedFetch.fetched
    }
    if (answer.status < 200 || answer.status > 299 || answer.status === 206) {
      if (answer.status === 404 || answer.status === 410) cache.delete(key)
      throw statusError(answer, ask.url)
    }
    const document = fetchedOf(answer)
    const [etag, modified] = [answer.header('etag'), answer.header('last-modified')]
    keep(
      key,
      { fetched: document, etag, modified, order, epoch: epochAtRequest, until: performance.now() + freshMs },
      control,
    )
    return document
  }
  /** Makes the answers that are cached now be revalidated before they are used. */
  const renew = () => void epoch++
  return { fetch, renew }
}

function conditionsOf(cachedFetch: CachedFetch | undefined): Readonly<Record<string, string>> {
  if (cachedFetch?.etag !== undefined) return { 'If-None-Match': cachedFetch.etag }
  return cachedFetch?.modified === undefined ? {} : { 'If-Modified-Since': cachedFetch.modified }
}

function fetchedOf(answer: HttpAnswer): FetchedDocument {
  const type = mediaTypeOf(answer.header('content-type'))
  const hash = createHash('sha256').update(`${type.mimeType} ${type.charset}\n`).update(answer.body)
  const version = hash.digest('base64url').slice(0, 22)
  return { ...type, body: answer.body, version, link: answer.header('link'), url: answer.url }
}

/** Returns the pause that a server asks for, at most {@link maxPauseMs}, in milliseconds (RFC 9110, section 10.2.3); 0 for none. */
function pauseIn({ status, header }: HttpAnswer): number {
  const after = header('retry-after')
  if ((status !== 429 && status !== 503) || after === undefined) return 0
  const ms = /^\d{1,9}$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now()
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxPauseMs)
}

function statusError({ status, url }: HttpAnswer, requestUrl: HttpUrl): ResourceError {
  if (status === 404 || status === 410) return notFound(`${formatHttpUrl(url)} answers ${status}`)
  if (status === 400 || status === 422)
    return invalid('The server rejects this request as invalid. Check the values in the URI.', 'refused')
  if (status === 401 || status === 403 || status === 407)
    return unreachableError(requestUrl, `it refuses access (${status}): check the credentials and their rights`)
  if (status === 429) return unreachableError(requestUrl, 'it limits the rate of requests (429)')
  if (status >= 300 && status < 400)
    return unreachableError(requestUrl, `it answers ${status} without a redirect that can be followed`)
  return unreachableError(requestUrl, `its status is ${status}`)
}

/** A media type without its parameters, in lower case, and its charset; undefined when missing or malformed. */
interface MediaType {
  readonly mimeType: string | undefined
  readonly charset: string | undefined
}

export function mediaTypeOf(header: string | undefined): MediaType {
  const [, name] = /^\s*([\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100})\s*(?:;|$)/.exec(header ?? '') ?? []
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]{1,60})"|([^\s;"]{1,60}))/i.exec(header ?? '') ?? []
  return { mimeType: name?.toLowerCase(), charset: quoted ?? plain }
}

/** Number of bytes of an HTML page that are searched for its charset (HTML Standard, 13.2.3.2). */
const prescanBytes = 1024

/**
 * Converts bytes of a media type to a content. Valid UTF-8 is text. For other text types a declared charset is used if it can decode the
 * bytes: that of the header, otherwise that of the page. Other content stays bytes.
 */
export function contentFromBytes(bytes: Buffer, { mimeType, charset }: MediaType): Content {
  const facts = mimeType === undefined ? {} : { mimeType }
  if (isText(bytes)) return { ...facts, text: bytes.toString().replace(/^\ufeff/, '') }
  const label = isTextual(mimeType) ? encodingLabel(charset ?? charsetIn(bytes, mimeType) ?? '') : undefined
  // Invalid bytes in declared UTF-8 have no known encoding.
  const text = label === undefined || label === 'utf-8' ? undefined : decodeBytes(bytes, label, 'strict')
  if (label === undefined || text === undefined || !text.isWellFormed()) return { ...facts, bytes }
  return { ...facts, text, meta: { [metaKeys.encoding]: label } }
}

function charsetIn(bytes: Buffer, mimeType: string | undefined): string | undefined {
  const start = bytes.toString('latin1', 0, prescanBytes)
  if (mimeType?.endsWith('xml')) return /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1]
  return /<meta\b[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(start)?.[1]
}

function isTextual(mimeType: string | undefined): boolean {
  return mimeType === undefined || /^text\/|[/+](?:json|xml)$|javascript/.test(mimeType)
}

export interface OriginOptions {
  readonly url: string
  /** Addresses, single or in blocks (`10.0.0.0/8`), that may be requested although they are not public. Default none. */
  readonly allowAddresses?: readonly string[]
  /** Whether a URL beyond this machine may be `http://`. Default false. */
  readonly insecure?: boolean
  /** Other origins that redirects may lead to. Default none. */
  readonly redirects?: readonly string[]
  /** Time-out of one answer, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number
  /** Maximum size of an answer, in bytes. Default 8 MiB. */
  readonly maxBytes?: number
  /** Certificates of additional authorities, besides those that Node trusts. */
  readonly ca?: string
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: ResolveHost
}

/** @throws ResourceError `invalid`, whose message names the invalid option. */
export function createOriginClient(options: OriginOptions) {
  const {
    allowAddresses = [],
    insecure = false,
    redirects = [],
    timeoutMs = 20_000,
    maxBytes = 8 * 1024 * 1024,
  } = options
  const base = checkedUrl('url', options.url, insecure)
  if (base.target.includes('?')) throw invalid('"url" has a query (?). Remove it.', 'configuration')
  const guard = createGuard(parseAllowed(allowAddresses), options.resolve)
  const refusal = guard.refusal(base)
  if (refusal !== undefined) throw invalid(`"url" cannot be requested: ${refusal}.`, 'configuration')
  const get = createHttpClient({
    guard,
    timeoutMs,
    maxBytes,
    redirects: redirects.map((text) => checkedOrigin(text, insecure)),
    ...defined({ ca: options.ca }),
  })
  return { base, get }
}

function checkedOrigin(text: string, insecure: boolean): string {
  const url = checkedUrl('redirects', text, insecure)
  if (url.target !== '/')
    throw invalid('"redirects" must be origins without a path, such as https://www.example.org.', 'configuration')
  return originOf(url)
}

function checkedUrl(key: string, text: string, insecure: boolean): HttpUrl {
  let url: HttpUrl
  try {
    url = parseHttpUrl(text)
  } catch (error) {
    if (!isResourceError(error)) throw error
    throw invalid(`"${key}" is not an http or https URL. ${error.message}`, 'configuration')
  }
  if (url.scheme === 'http' && !insecure && !isLoopback(url.host))
    throw invalid(
      `"${key}" is not encrypted. Write https://, or add "insecure": true if you trust the network.`,
      'configuration',
    )
  return url
}
