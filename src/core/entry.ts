export type Audience = 'user' | 'assistant'

/** An image that a client may show (MCP 2025-11-25 and later). */
export interface Icon {
  /** An `https:` or `data:` URI. */
  readonly src: string
  readonly mimeType?: string
  readonly sizes?: readonly string[]
  readonly theme?: 'light' | 'dark'
}

/** Description of a resource or a template for models and people. */
export interface Description {
  /** Title for people. */
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** Importance, from 0 (entirely optional) to 1 (effectively required). */
  readonly priority?: number
  readonly audience?: readonly Audience[]
  readonly icons?: readonly Icon[]
  /** Members of `_meta` in the answer. JSON values. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** One entry that a provider lists. */
export interface Entry extends Description {
  /**
   * Path relative to the mount, decoded, without a leading slash: `src/main.ts`. Its segments are not empty, `.` or `..`, and contain
   * no slash, control character or lone surrogate (a backslash is an ordinary character). A path that ends in `/` is a directory; `list`
   * leaves directories out, since they follow from the paths of their contents. The empty path is the mount itself, when it is a single
   * resource.
   */
  readonly path: string
  /** Default: the last segment of the path. */
  readonly name?: string
  /** Size in bytes, as the source stores it. Undefined when it is unknown. */
  readonly size?: number
  /** Time of the last modification, in milliseconds since 1970 (UTC). */
  readonly modified?: number
  /** Opaque version, which changes with the content. */
  readonly version?: string
}

/** A range of a resource in bytes: from `start`, up to but not including `end` (or to the end of the resource). */
export interface ByteRange {
  readonly start: number
  readonly end?: number
}

export interface ContentMetadata {
  /** Path of this content, when it differs from the requested one. A read may return several contents. */
  readonly path?: string
  readonly title?: string
  readonly mimeType?: string
  readonly version?: string
  /** Size of the whole resource, in bytes. */
  readonly size?: number
  /** The range of the resource that this content covers; undefined for the whole. */
  readonly range?: { readonly start: number; readonly end: number }
  /** Whether the content at this path never changes, as at a path that contains the hash of the content. */
  readonly immutable?: boolean
  /** Members of `_meta` in the answer. JSON values. */
  readonly meta?: Readonly<Record<string, unknown>>
}

export type Content = ContentMetadata &
  (
    | { readonly text: string }
    | { readonly bytes: Uint8Array }
    | { readonly stream: AsyncIterable<Uint8Array>; readonly length: number }
  )

/** Returns the length of a content in bytes; of a text, in UTF-8. */
export function contentLength(
  content: { readonly text: string } | { readonly bytes: Uint8Array } | { readonly length: number },
): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  return 'bytes' in content ? content.bytes.length : content.length
}

/** Encodes bytes in base64, without copying them first. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** An entry with its URI, as a client sees it. */
export interface Resource extends Description {
  readonly uri: string
  readonly name: string
  readonly size?: number
  /** Time of the last modification, in milliseconds since 1970 (UTC). */
  readonly modified?: number
  readonly version?: string
}

/** The priority that makes a resource required: an assembled context contains it, regardless of its topic. */
export const requiredPriority = 1

/** The highest priority that documents, or other servers, can give themselves. It is below {@link requiredPriority}. */
const maxClaimedPriority = 0.99

/**
 * Caps the priority that a document or another server claims for itself, since only the operator of this server can
 * require a resource.
 */
export function capClaimedPriority(priority: number): number {
  return Math.min(priority, maxClaimedPriority)
}

/**
 * C0 and C1 controls, DEL, the marks, embeddings, overrides and isolates of bidirectional text (UAX #9), and tags
 * (U+E0000 to U+E007F).
 */
const hiddenCharacters = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu

const breaks = /\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g

/** Returns a text of a source as one line, without control characters, marks of direction and tags. */
export function cleanText(text: string): string {
  return text.replace(breaks, ' ').replace(hiddenCharacters, '')
}

/** Escapes a character as JavaScript does, with an escape for each UTF-16 unit: `\u202e`. */
export function toUnicodeEscape(character: string): string {
  const escapes = character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return escapes.join('')
}

type Texts = Pick<Description, 'title' | 'description'>

/** Cleans the title and description. Returns the same object when nothing changes. */
export function cleanTexts<T extends Texts>(facts: T): T {
  const { title, description } = facts
  if (title === undefined && description === undefined) return facts
  const cleaned = {
    ...(title === undefined ? {} : { title: cleanText(title) }),
    ...(description === undefined ? {} : { description: cleanText(description) }),
  }
  const isChanged = cleaned.title !== title || cleaned.description !== description
  return isChanged ? { ...facts, ...cleaned } : facts
}
