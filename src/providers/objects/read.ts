import { isOverReadLimit, isResourceError, overReadLimitError, unavailable } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { headBytes, isText, wholeCharacters } from '../../core/kit/utf8.ts'
import { metaKeys } from '../../core/meta.ts'
import { baseName } from '../../core/path.ts'
import type { ByteRange, Content, Context } from '../../core/provider.ts'
import { mimeTypeByName, mimeTypeOfFile } from '../files/options.ts'
import { decodeTextRange, rangeWithin } from '../files/place.ts'
import { type ObjectBody, type ObjectDetails, ObjectFault, type ObjectStore } from './store.ts'

/** Number of bytes of an object that are returned with a link to the whole. */
const shownBytes = 64 * 1024
/**
 * Size up to which an object is read at once, in bytes, even when larger contents must wait for memory or are streamed in parts: each
 * postponed read costs another request to the store.
 */
const atOnceBytes = 8 * 1024 * 1024
const attempts = 6
/** Maximum number of retries after a torn answer. */
const maxTorn = 2

type ReadTerms = Pick<Context, 'signal' | 'most'>

interface ObjectPart {
  readonly details: ObjectDetails
  readonly bytes: Buffer
  readonly start: number
}

interface ObjectStart {
  readonly text: boolean
  /** The first bytes: enough to detect a MIME type. */
  readonly head: Buffer
}

/**
 * Returns a function that reads objects. Each answer is from one version of an object: the whole object as it is stored, the requested range
 * or, with links, the beginning of a larger object. The function throws the errors of the store, `too-large` above the limit, and `invalid`
 * for a range beyond the end.
 *
 * @param maxBytes Maximum number of bytes read at once.
 * @param linkSeconds Lifetime of links to larger objects, in seconds; undefined: no links.
 */
export function createObjectReader(store: ObjectStore, maxBytes: number, linkSeconds?: number) {
  const beginnings = createLruCache<ObjectStart>(10_000)

  const fetchPart = async (
    body: ObjectBody,
    range: ByteRange | undefined,
    { most }: Pick<Context, 'most'>,
  ): Promise<ObjectPart> => {
    const { details, start } = body
    try {
      rangeWithin(range, details.size, maxBytes)
      if (most !== undefined && details.size > Math.max(most, atOnceBytes)) throw overReadLimitError(details.size)
    } catch (error) {
      body.discard()
      throw error
    }
    return { details, bytes: await body.bytes(), start }
  }

  /** Returns the part for an empty range, or for any range of an empty object: HTTP can request neither. */
  const emptyPart = async (key: string, range: ByteRange, signal: AbortSignal): Promise<ObjectPart> => {
    const details = await store.head(key, signal)
    const { start, end } = rangeWithin(range, details.size, maxBytes)
    if (end > start) throw new ObjectFault('replaced')
    return { details, bytes: Buffer.alloc(0), start }
  }

  const readPart = async (
    key: string,
    range: ByteRange | undefined,
    { signal, most }: ReadTerms,
  ): Promise<ObjectPart> => {
    if (range === undefined) return fetchPart(await store.get({ key }, signal), range, { most })
    const { start, end = Number.MAX_SAFE_INTEGER } = range
    const isFetched = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && end > start
    if (!isFetched) return emptyPart(key, range, signal)
    try {
      return await fetchPart(await store.get({ key, range }, signal), range, {})
    } catch (error) {
      if (error instanceof ObjectFault && error.fault === 'unsatisfiable') return emptyPart(key, range, signal)
      throw error
    }
  }

  const beginningOf = async (key: string, part: ObjectPart, signal: AbortSignal): Promise<ObjectStart> => {
    const { details, bytes, start } = part
    const name = JSON.stringify([key, details.version])
    const objectStart = beginnings.get(name)
    if (objectStart !== undefined) return objectStart
    const end = Math.min(headBytes, details.size)
    const isHeld = start === 0 && bytes.length >= end
    const range = { start: 0, end }
    const query = { key, range, version: details.version }
    const head = isHeld ? bytes.subarray(0, end) : await (await store.get(query, signal)).bytes()
    const sample = { text: isText(head.subarray(0, wholeCharacters(head).to)), head: Buffer.from(head.subarray(0, 16)) }
    beginnings.set(name, sample)
    return sample
  }

  const contentOf = async (
    path: string,
    part: ObjectPart,
    range: ByteRange | undefined,
    key: string,
    signal: AbortSignal,
  ) => {
    const { details, bytes, start } = part
    const { text: begun, head } = await beginningOf(key, part, signal)
    // A range of a binary object is not text.
    const text = begun ? decodeTextRange({ bytes, start, head: Buffer.alloc(0) }, range === undefined) : undefined
    const textRange = text ?? { start, end: start + bytes.length }
    return {
      mimeType: objectMimeType(path, details.mimeType, { text: text !== undefined, head }),
      version: details.version,
      size: details.size,
      ...metaOf(details),
      ...(range === undefined ? {} : { range: { start: textRange.start, end: textRange.end } }),
      ...(text === undefined ? { bytes } : { text: text.text }),
    }
  }

  const readLinked = async (key: string, path: string, seconds: number, signal: AbortSignal): Promise<Content> => {
    const range = { start: 0, end: Math.min(shownBytes, maxBytes) }
    const part = await readPart(key, range, { signal })
    const content = await contentOf(path, part, range, key, signal)
    const until = Date.now() + seconds * 1000
    const link = { href: await store.link(part.details, seconds, signal), expires: new Date(until).toISOString() }
    const meta = { [metaKeys.truncated]: true, [metaKeys.size]: part.details.size, [metaKeys.link]: link }
    return { ...content, meta: { ...content.meta, ...meta } }
  }

  const readOnce = async (
    key: string,
    path: string,
    range: ByteRange | undefined,
    fetchedTerms: ReadTerms,
  ): Promise<Content> => {
    const { signal } = fetchedTerms
    try {
      return await contentOf(path, await readPart(key, range, fetchedTerms), range, key, signal)
    } catch (error) {
      const isTooLarge = isResourceError(error, 'too-large') && !isOverReadLimit(error)
      if (!isTooLarge || range !== undefined || linkSeconds === undefined) throw error
      return readLinked(key, path, linkSeconds, signal)
    }
  }

  return (key: string, path: string, range: ByteRange | undefined, context: ReadTerms): Promise<Content> =>
    repeatRead(() => readOnce(key, path, range, context), context.signal)
}

async function repeatRead(readOnce: () => Promise<Content>, signal: AbortSignal): Promise<Content> {
  let tears = 0
  for (let attempt = 0; attempt < attempts && tears <= maxTorn; attempt++) {
    try {
      return await readOnce()
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof ObjectFault)) throw error
      if (error.fault === 'torn') tears++
    }
  }
  throw tears > maxTorn
    ? unavailable(
        'The answers of the store are cut off, or differ from what was stored. Check the store, and any proxy before it.',
      )
    : unavailable('The object changes faster than it can be read. Try again later.')
}

function metaOf({ mimeType, encoding, storageClass, versionId, metadata = {} }: ObjectDetails): Pick<Content, 'meta'> {
  const facts = {
    ...defined({ contentType: mimeType, contentEncoding: encoding, storageClass, versionId }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  }
  return Object.keys(facts).length === 0 ? {} : { meta: { [metaKeys.object]: facts } }
}

/**
 * Returns the MIME type of an object: by its name and content. When these show only text or bytes, the stored type is used if it fits the
 * content and is not executable in a browser.
 */
function objectMimeType(
  path: string,
  mimeType: string | undefined,
  content: { readonly text: boolean; readonly head: Buffer },
): string {
  const own = mimeTypeOfFile(baseName(path), content)
  const isVague = own === 'text/plain' || own === 'application/octet-stream'
  const plainType = isVague && mimeTypeByName(baseName(path)) === undefined ? storedType(mimeType) : undefined
  const isStoredText = plainType !== undefined && /^text\/|[+/]json$/.test(plainType)
  return plainType !== undefined && isStoredText === content.text ? plainType : own
}

/** Returns the stored type without its parameters; `undefined` if it is invalid, says nothing, or is executable in a browser. */
export function storedType(mimeType: string | undefined): string | undefined {
  const type = mimeType?.split(';')[0]?.trim().toLowerCase()
  if (type === undefined || !/^[a-z]{1,20}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}$/.test(type)) return undefined
  return /html|xml|script|svg|octet-stream|x-www-form-urlencoded/.test(type) ? undefined : type
}
