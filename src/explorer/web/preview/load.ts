import { effect, type Signal, signal, untracked } from '@preact/signals'
import { isBelow } from '../../../browse/tree.ts'
import { isResourceError } from '../../../core/errors.ts'
import { defined } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import { directoryMimeType, type Resource, type ResourceContent } from '../../../core/view.ts'
import { reconnections } from '../listing/browse.ts'
import { singleOf } from '../listing/forest.ts'
import { markSeen, onResourceChange } from '../state/live.ts'
import { findCachedResource, findInListing, findMountKind } from '../state/offered.ts'
import { navigate, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { compareEarlier, createEarlierState } from './earlier.ts'
import { documentFormOf, mediaTypeOf } from './model/kind.ts'
import { type PreviewPart, parsePreviewPart, queryAround } from './model/lines.ts'
import { lineRangeIn, parameterOf, parentOf, withPart } from './model/reference.ts'

/** State of the content of a resource. `directory`: the resource has entries in place of a content. */
export type PreviewState =
  | { readonly state: 'loading' }
  | { readonly state: 'directory' }
  | { readonly state: 'failed'; readonly error: unknown }
  | { readonly state: 'ready'; readonly contents: readonly ResourceContent[]; readonly part?: PreviewPart }

interface PreviewNote {
  readonly changedAt?: number
  readonly isGone?: boolean
  readonly isFailing?: boolean
}

/** Size above which a text is read in parts, and a larger one for contents that only make sense as a whole, such as images. Both in bytes. */
const [largeTextBytes, largeWholeBytes] = [1_000_000, 24_000_000]
const retryDelaysMs = [1000, 2000, 4000] as const
/** Maximum time to wait for the size of a resource before it is read, in milliseconds. */
const sizeTimeoutMs = 800

export type PreviewReader = ReturnType<typeof createPreviewReader>

/**
 * Reads one resource while it is shown, and reads it again when it changes.
 *
 * @param isOriginal Whether a document (Word, Excel, PowerPoint, PDF) is read in its original form, and not as text.
 */
export function createPreviewReader(uri: string, isOriginal = false) {
  const reading = signal<PreviewState>({ state: 'loading' })
  const standing = signal<PreviewNote>({})
  const earlier = createEarlierState()
  const resource = signal<Resource | undefined>(findCachedResource(uriWithoutPart(uri)))
  const more = signal<'idle' | 'busy' | 'failed'>('idle')
  /** Why a document is shown in its original form, and not as text. */
  const noText = signal<string | undefined>(undefined)
  const controller = new AbortController()
  const { signal: left } = controller
  let queries: readonly (string | undefined)[] = []
  const { read, readFirst } = createReads(uri, isOriginal, { resource, noText, left })
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let round = 0

  /** Reads the resource for the first time, and stores the query, so that the same range is read again. */
  const begin = async (): Promise<readonly ResourceContent[]> => {
    const { contents, query } = await readFirst()
    queries = [query]
    return contents
  }

  const load = async (): Promise<void> => {
    const own = ++round
    clearTimeout(timer)
    try {
      let contents = queries.length === 0 ? await begin() : await read(queries[0])
      for (const query of queries.slice(1)) contents = appendContent(contents, await read(query))
      if (own === round) settle(contents)
    } catch (error) {
      if (!left.aborted && own === round) fail(error)
    }
  }

  const settle = (contents: readonly ResourceContent[]) => {
    const before = reading.value
    failures = 0
    markSeen(uriWithoutPart(uri))
    const isOther = before.state === 'ready' && !hasSameContents(before.contents, contents)
    standing.value = isOther ? { changedAt: Date.now() } : keepTime(standing.value)
    if (before.state === 'ready' && !isOther) return
    const part = parsePreviewPart(contents.at(-1)?.meta?.[metaKeys.part])
    // A folder without its final slash is read as its entries.
    const hasEntries =
      resource.value === undefined && contents.every((content) => isBelow(content.uri, uriWithoutPart(uri)))
    const isDirectory = hasEntries || contents[0]?.mimeType === directoryMimeType
    reading.value = isDirectory ? { state: 'directory' } : { state: 'ready', contents, ...defined({ part }) }
    const isWhole = !isDirectory && part === undefined && queries[0] === undefined && uri === uriWithoutPart(uri)
    if (before.state === 'loading' && isWhole && !/[?#]/.test(uri)) void compareEarlier(uri, contents, earlier, left)
  }

  const fail = (error: unknown) => {
    const isThere = reading.value.state === 'ready'
    const isAway = isResourceError(error, 'unavailable') || isResourceError(error, 'internal')
    if (!isThere) reading.value = { state: 'failed', error }
    else standing.value = { ...standing.value, ...(isAway ? { isFailing: true } : { isGone: true }) }
    if (!isResourceError(error, 'unavailable')) return
    timer = setTimeout(() => void load(), retryDelaysMs[Math.min(failures++, retryDelaysMs.length - 1)])
  }

  const start = async (): Promise<void> => {
    if (uri.endsWith('/') || resource.value?.mimeType === directoryMimeType) {
      reading.value = { state: 'directory' }
      return
    }
    if (resource.value === undefined) await lookUpBriefly(uri, resource, left)
    if (left.aborted) return
    // The URI names a folder, but without the final slash that the URIs of folders have everywhere else.
    if (resource.value?.uri === `${uriWithoutPart(uri)}/` && route.peek().uri === uri)
      navigate({ uri: `${uri}/` }, { replace: true })
    else await load()
  }

  const endHealing = effect(() => {
    if (reconnections.value > 0 && reading.peek().state === 'failed') untracked(() => void load())
  })
  const stop = onResourceChange(uriWithoutPart(uri), (missed) => {
    if (reading.value.state === 'directory') return
    clearTimeout(timer)
    // Debounce, because programs often write a file several times in a row.
    timer = setTimeout(() => void load(), missed ? 500 : 120)
  })
  void lookIntoMount(uri, resource).then(start)

  return {
    uri,
    reading,
    standing,
    earlier,
    resource,
    noText,
    more,
    reload: () => void load(),
    readMore: async () => {
      const before = reading.value
      if (before.state !== 'ready' || before.part?.next === undefined || more.value === 'busy') return
      more.value = 'busy'
      const own = round
      try {
        const contents = appendContent(before.contents, await read(before.part.next))
        if (own !== round) return
        queries = [...queries, before.part.next]
        const part = parsePreviewPart(contents.at(-1)?.meta?.[metaKeys.part])
        reading.value = { state: 'ready', contents, ...defined({ part }) }
        more.value = 'idle'
      } catch {
        more.value = 'failed'
      }
    },
    close: () => {
      controller.abort()
      clearTimeout(timer)
      endHealing()
      stop()
    },
  }
}

/** Replaces a mount of a single document by that document. A list calls such a mount a folder, so its contents are read. */
async function lookIntoMount(uri: string, resource: Signal<Resource | undefined>): Promise<void> {
  const mount = resource.value
  if (mount?.mimeType !== directoryMimeType || findMountKind(uri)?.isSingle !== true) return
  resource.value = (await singleOf(requireConnection().view, mount).catch(() => undefined)) ?? mount
}

/** Looks for a resource in its directory, and waits for it at most {@link sizeTimeoutMs}. A later result is stored, too. */
async function lookUpBriefly(uri: string, resource: Signal<Resource | undefined>, signal: AbortSignal): Promise<void> {
  const parent = parentOf(uri)
  if (parent === undefined) return
  const listing = findInListing(uriWithoutPart(uri), parent, signal).then(
    (listedResource) => {
      if (listedResource !== undefined) resource.value = listedResource
    },
    () => {},
  )
  await Promise.race([listing, new Promise((resolve) => setTimeout(resolve, sizeTimeoutMs))])
}

interface FirstRead {
  readonly contents: readonly ResourceContent[]
  readonly query: string | undefined
}

interface ReadsParts {
  readonly resource: { readonly value: Resource | undefined }
  readonly noText: { value: string | undefined }
  readonly left: AbortSignal
}

/** Returns `read`, which reads a resource by a given query, and `readFirst`, which finds the query that suits the resource. */
function createReads(uri: string, isOriginal: boolean, { resource, noText, left }: ReadsParts) {
  const readQuery = async (query: string | undefined): Promise<readonly ResourceContent[]> => {
    const { view } = requireConnection()
    const partUri = query === undefined ? uri : withPart(uri, query)
    return (await view.read(partUri, { signal: left })).contents
  }

  /** Reads the text of a document, else the content. If the server refuses the first query, tries others. */
  const readFirst = async (): Promise<FirstRead> => {
    const range = lineRangeIn(uri)
    const text = isOriginal ? undefined : await readText()
    if (text !== undefined) return text
    const first = range === undefined ? firstQuery(uri, resource.value) : queryAround(range)
    try {
      return { contents: await readQuery(first), query: first }
    } catch (error) {
      const isTooLarge = isResourceError(error, 'too-large')
      // A server may not support parts: it then reports a malformed or missing URI.
      const hasNoParts = isResourceError(error, 'invalid') || isResourceError(error, 'not-found')
      if (!isTooLarge && (first === undefined || !hasNoParts)) throw error
      const others = first === undefined ? ['lines=1-', 'bytes=0-65535'] : ['bytes=0-65535', undefined]
      return readOther(others, error)
    }
  }

  /** Reads the text of a document. `undefined`: the resource is not a document, or has no text. */
  const readText = async (): Promise<FirstRead | undefined> => {
    const form = documentFormOf(uri, resource.value?.mimeType)
    if (form === undefined || /[?#]/.test(uri)) return undefined
    const query = `as=${form}`
    try {
      return { contents: await readQuery(query), query }
    } catch (error) {
      if (left.aborted || isResourceError(error, 'unavailable')) throw error
      noText.value = isResourceError(error) ? error.message : undefined
      return undefined
    }
  }

  const readOther = async (others: readonly (string | undefined)[], error: unknown): Promise<FirstRead> => {
    for (const query of others)
      try {
        return { contents: await readQuery(query), query }
      } catch (fault) {
        if (left.aborted || isResourceError(fault, 'unavailable')) throw fault
      }
    throw error
  }

  return { read: readQuery, readFirst }
}

/** Returns the text or the bytes of a content. `undefined`: the content is a stream. */
export function textOrBytes(content: ResourceContent): string | Uint8Array | undefined {
  if ('text' in content) return content.text
  return 'bytes' in content ? content.bytes : undefined
}

/** Returns the URI without the query for a part, as lists contain it. */
export function uriWithoutPart(uri: string): string {
  return withPart(uri, undefined)
}

/** Returns the query for the beginning of a large resource. `undefined`: the resource, or the part that its URI names, is read as a whole. */
function firstQuery(uri: string, resource: Resource | undefined): string | undefined {
  const isAsked = ['bytes', 'tail', 'as', 'pointer'].some((name) => parameterOf(uri, name) !== undefined)
  if (isAsked || resource?.size === undefined || resource.size <= largeTextBytes) return undefined
  const type = mediaTypeOf(resource.mimeType) ?? ''
  const isWhole = /json|csv|tab-separated|^image\/|^audio\/|^video\/|pdf|ndjson/.test(type) && type !== 'video/mp2t'
  if (isWhole && resource.size <= largeWholeBytes) return undefined
  return isWhole && /^(image|audio|video)\/|pdf/.test(type) ? 'bytes=0-65535' : 'lines=1-'
}

function appendContent(
  before: readonly ResourceContent[],
  after: readonly ResourceContent[],
): readonly ResourceContent[] {
  const [first, next] = [before[0], after[0]]
  if (first === undefined || next === undefined) return before
  const meta = { ...first.meta, ...next.meta }
  if ('text' in first && 'text' in next) return [{ ...first, text: first.text + next.text, meta }]
  if (!('bytes' in first) || !('bytes' in next)) return before
  const bytes = new Uint8Array(first.bytes.length + next.bytes.length)
  bytes.set(first.bytes)
  bytes.set(next.bytes, first.bytes.length)
  return [{ ...first, bytes, meta }]
}

function hasSameContents(before: readonly ResourceContent[], after: readonly ResourceContent[]): boolean {
  return (
    before.length === after.length &&
    before.every((one, index) => {
      const other = after[index]
      if (other === undefined || one.uri !== other.uri || one.mimeType !== other.mimeType) return false
      if ('text' in one) return 'text' in other && one.text === other.text
      if (!('bytes' in one) || !('bytes' in other) || one.bytes.length !== other.bytes.length) return false
      return one.bytes.every((byte, at) => byte === other.bytes[at])
    })
  )
}

function keepTime({ changedAt }: PreviewNote): PreviewNote {
  return changedAt === undefined ? {} : { changedAt }
}
