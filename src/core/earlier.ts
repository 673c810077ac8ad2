import { createHash } from 'node:crypto'
import { unifiedDiff } from './kit/line-diff.ts'
import { createLruCache } from './kit/lru.ts'
import { metaKeys } from './meta.ts'
import type { Content } from './provider.ts'

/** Storage of texts and listings that clients have read, so that a later answer can be the difference from one. */
export interface EarlierTexts {
  /** Returns a text as a client gets it: without secrets. */
  clean(text: string): string
  get(key: string): Promise<string | undefined>
  put(key: string, text: string): Promise<void>
  /** The storage that outlives this process, without the copies in memory. Undefined when there is none. */
  readonly lasting?: Pick<EarlierTexts, 'get' | 'put'>
}

/** Maximum length of a kept text, in characters. */
export const maxKeptText = 1024 * 1024
const maxKept = 32 * 1024 * 1024

export function createMemoryTexts(): EarlierTexts {
  const cache = createLruCache<string>(maxKept, (text) => text.length)
  return {
    clean: (text) => text,
    get: async (key) => cache.get(key),
    put: async (key, text) => void cache.set(key, text),
  }
}

/** Metadata of an answer to a read since a version, in `_meta`. */
export interface DeltaMetadata {
  /** The version that the caller has. */
  readonly since: string
  /** `unchanged`: the text is the same; `diff`: the answer is a unified diff; `whole`: it is the whole content. */
  readonly state: 'unchanged' | 'diff' | 'whole'
  /**
   * Why the answer is the whole content: the version is too old or unknown, a difference would be longer, or the
   * content is not one text of at most 1,048,576 characters.
   */
  readonly reason?: 'unknown' | 'shorter' | 'not-text'
}

function textVersionKey(address: string, path: string, version: string): string {
  return createHash('sha256')
    .update(JSON.stringify([address, path, version]))
    .digest('base64url')
}

/** Version of a text by its content, with a prefix that sources hardly use. */
export function digestVersion(text: string): string {
  return `sha256.${createHash('sha256').update(text).digest('base64url').slice(0, 27)}`
}

/** The address of a mount, and a path in it. */
export interface TextPlace {
  readonly address: string
  readonly path: string
}

/**
 * Resolves to the version of the kept text; undefined for a content that is no text, or longer than {@link
 * maxKeptText}.
 */
export async function keepText(
  texts: EarlierTexts,
  { address, path }: TextPlace,
  content: Content,
): Promise<string | undefined> {
  if (!('text' in content) || content.text.length > maxKeptText) return undefined
  const text = texts.clean(content.text.toWellFormed())
  const version = digestVersion(text)
  await texts.put(textVersionKey(address, path, version), text)
  const { version: ofSource } = content
  if (ofSource === undefined) return version
  // A source can give two texts the same version, if both were written within one tick of its clock.
  const key = textVersionKey(address, path, ofSource)
  const cachedText = await texts.get(key)
  if (cachedText === undefined) await texts.put(key, text)
  else if (cachedText !== text) await texts.put(key, ambiguous)
  return version
}

/**
 * Stored under a version that the source has given to several texts. It differs from each kept text, because those are
 * well-formed.
 */
const ambiguous = '\ud800'

/**
 * Answers a read since a version with an empty content if the text is the same, or else with a difference or the whole
 * content.
 */
export async function readSince<T extends Content>(
  texts: EarlierTexts,
  place: TextPlace,
  contents: readonly T[],
  since: string,
): Promise<readonly T[]> {
  const [content, ...others] = contents
  if (content === undefined) return contents
  const answer = (one: T, facts: Omit<DeltaMetadata, 'since'>, more: object = {}): readonly T[] => {
    const meta = { ...one.meta, [metaKeys.delta]: { since, ...facts } satisfies DeltaMetadata }
    return [{ ...one, ...more, meta } as T, ...others]
  }
  if (others.length > 0 || !('text' in content) || content.text.length > maxKeptText) {
    const isSame = others.length === 0 && content.version !== undefined && content.version === since
    if (isSame && 'bytes' in content) return answer(content, { state: 'unchanged' }, { bytes: new Uint8Array() })
    return answer(content, { state: 'whole', reason: 'not-text' })
  }
  const before = await texts.get(textVersionKey(place.address, place.path, since))
  const version = await keepText(texts, place, content)
  const text = texts.clean(content.text.toWellFormed())
  const now = { ...content, text, ...(version === undefined ? {} : { version }) }
  const isKnown = before !== undefined && before !== ambiguous
  const isSame = isKnown ? before === text : since === version || (before === undefined && since === content.version)
  if (isSame) return answer(now, { state: 'unchanged' }, { text: '' })
  if (!isKnown) return answer(now, { state: 'whole', ...(since === '' ? {} : { reason: 'unknown' as const }) })
  const diff = unifiedDiff(before, text)
  if (diff === undefined || diff.length >= text.length) return answer(now, { state: 'whole', reason: 'shorter' })
  return answer(now, { state: 'diff' }, { text: diff, mimeType: 'text/x-diff' })
}
