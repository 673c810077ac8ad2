import { invalid } from '../core/errors.ts'
import type { Audience } from '../core/provider.ts'
import type { SearchAnswer } from '../core/search-answer.ts'
import type { ToolLink } from '../core/tool.ts'
import type { Resource } from '../core/view.ts'
import type { ReadingCache } from './memory.ts'
import { type Encoding, encodings } from './tokens.ts'

/**
 * The level of a resource: only a link; its outline (headings, signatures, columns); windows around the matches; or the whole
 * text.
 */
export type Level = 'link' | 'outline' | 'windows' | 'full'

/** The levels of a resource in a context, from the shortest to the longest. */
export const levels: readonly Level[] = ['link', 'outline', 'windows', 'full']

export type Format = 'markdown' | 'xml' | 'json' | 'mcp'

/** The formats of a context. */
export const formats: readonly Format[] = ['markdown', 'xml', 'json', 'mcp']

export interface Pin {
  readonly uri: string
  readonly level?: Level
}

export interface AssembleOptions {
  /** Question or task of the context. Without it, priority, time and the number of changes alone rank the resources. */
  readonly query?: string
  readonly pins?: readonly (string | Pin)[]
  /**
   * URIs that are left out, even if they are pinned. A URI that ends in `/` stands for everything below it. A text with an asterisk is a
   * glob, over the paths in all mounts, or below the scheme and host that it names.
   */
  readonly excludes?: readonly string[]
  /** Takes only the pins, without a search. */
  readonly pinsOnly?: boolean
  readonly mounts?: readonly string[]
  readonly budget: number
  /** The share of the budget that stays free, from 0 to 0.5, because other models count differently. By default 0.03. */
  readonly reserve?: number
  /** Maximum number of tokens of one resource while others fit. By default 0.6 of the budget. */
  readonly cap?: number
  readonly encoding?: Encoding
  /** The audience: resources only for others are left out. By default `assistant`. */
  readonly audience?: Audience
  readonly format?: Format
  /** Whether each item has its tokens at every level. Whole texts are counted for it. */
  readonly countLevels?: boolean
  /** The time from which the ages of resources count, in milliseconds since 1970. The same time gives the same answer. */
  readonly now: number
  readonly halfLife?: number
  /** How often a resource was changed, if known. */
  readonly changes?: (uri: string) => number | undefined
  /**
   * The `manifest` of an earlier context. The front of its text stays the same, as far as that costs little, so that prompt caches apply.
   */
  readonly earlier?: readonly ManifestEntry[]
  readonly limits?: Partial<ContextLimits>
  readonly signal?: AbortSignal
  /** Whether the searches wait until every change before the call is in their index. */
  readonly fresh?: boolean
  /** Cache of the readings of earlier calls by the same caller. The answer is the same without it. */
  readonly memory?: ReadingCache
}

export interface ContextLimits {
  /** Number of listed resources that are examined. With 0, nothing is listed, and only searches find candidates. */
  readonly listed: number
  /** Number of hits of each search, from 1 to 100. */
  readonly searched: number
  /** Number of resources that are read to search words, if no search covers them. */
  readonly read: number
  /** Number of bytes that are read and held in all. */
  readonly bytes: number
  /** Maximum size of one resource, in bytes. A larger one can only be a link. */
  readonly item: number
  /** Number of best resources that can be more than a link. */
  readonly detailed: number
  /** Number of resources in the answer, at most 999. */
  readonly items: number
  /** Number of concurrent reads. */
  readonly concurrency: number
}

/** The limits of a context that apply where none are given. */
export const defaultLimits: ContextLimits = {
  listed: 20_000,
  searched: 100,
  read: 2000,
  bytes: 64 * 1024 * 1024,
  item: 1024 * 1024,
  detailed: 200,
  items: 999,
  concurrency: 8,
}

/** Limits for a remote view: number of resources that are read to search words, and number of concurrent reads. */
export const remoteLimits: Partial<ContextLimits> = { read: 500, concurrency: 4 }

/** One factor of the score of a resource. 1 changes nothing. */
export interface Factor {
  readonly name: 'relevance' | 'history' | 'priority' | 'recency' | 'activity' | 'test'
  readonly value: number
  /** Reason for the value, in words. */
  readonly because: string
}

export interface Explanation {
  readonly score: number
  readonly factors: readonly Factor[]
}

export interface Candidate {
  readonly resource: Resource
  readonly explanation: Explanation
  /** The level at which the context must have a pin or a resource of priority 1. */
  readonly required?: Level
  /** The lines of the hits of a search, from 1, both inclusive. */
  readonly found: readonly LineRange[]
}

export interface LineRange {
  readonly start: number
  readonly end: number
}

/** Tokens of a resource at each level that it has. */
export type LevelTokens = Readonly<Partial<Record<Level, number>>>

export interface AssembledItem {
  readonly uri: string
  readonly resource: Resource
  readonly level: Level
  /** Tokens of the part of the text that this item takes. */
  readonly tokens: number
  readonly required: boolean
  /** Number of different words of the query in the best section of the resource; 0 if the resource was not read. */
  readonly matched: number
  readonly levels?: LevelTokens
  readonly explanation: Explanation
  readonly notes: readonly string[]
}

export interface OmittedItem {
  readonly uri: string
  /**
   * `budget`: the resource did not fit. `count`: the maximum number of resources was reached, or this one ranks too low to be tried.
   * `duplicate`: the resource `of` has nearly the same text. `unreadable`: the resource could not be read.
   */
  readonly reason: 'budget' | 'count' | 'duplicate' | 'unreadable'
  readonly of?: string
  /** Tokens of the smallest form of the resource, if any was made. */
  readonly tokens?: number
  readonly explanation: Explanation
}

/** A resource of a context and its state when it was read. */
export interface ManifestEntry {
  readonly uri: string
  readonly level: Level
  readonly tokens: number
  /** SHA-256 of the whole text in UTF-8, as it was read, whatever the level. Absent if it was not read. */
  readonly sha256?: string
  /** The contained lines, from 1, both inclusive. Absent unless the level is `windows`. */
  readonly ranges?: readonly LineRange[]
  readonly modified?: string
  readonly version?: string
  /** The first 16 hexadecimal digits of the SHA-256 of the context from its beginning to the end of this resource. */
  readonly prefix?: string
}

export interface Assembled {
  readonly text: string
  /** With the format `mcp`: the content blocks, whose JSON is the text, one a line. */
  readonly blocks?: readonly ContentBlock[]
  /** The exact number of tokens of `text`. Never above `budget`. */
  readonly tokens: number
  readonly budget: number
  readonly encoding: Encoding
  readonly format: Format
  readonly items: readonly AssembledItem[]
  readonly omitted: readonly OmittedItem[]
  readonly manifest: readonly ManifestEntry[]
  /**
   * With `earlier`: the number of tokens at the beginning, up to the end of a resource, that have the same bytes as in the
   * earlier context.
   */
  readonly reusedPrefixTokens?: number
  /** Reasons why there may be more to find, or why a text is missing. */
  readonly notes: readonly string[]
  readonly freshness: ContextFreshness
}

/** The members of the answers of searches that say how up to date the answers are. */
export type ContextFreshness = Pick<SearchAnswer, 'asOf' | 'pending' | 'fresh' | 'partial'>

export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'resource'
      readonly resource: { readonly uri: string; readonly mimeType?: string; readonly text: string }
      readonly annotations?: Annotations
    }
  | ({ readonly type: 'resource_link'; readonly title?: string; readonly annotations?: Annotations } & ToolLink)

export interface Annotations {
  readonly audience?: readonly Audience[]
  readonly priority?: number
  readonly lastModified?: string
}

/**
 * Validates the options and returns the limits.
 *
 * @throws ResourceError `invalid`, which names each fault.
 */
export function resolveLimits(options: AssembleOptions): ContextLimits {
  const { budget, reserve = 0.03, cap = 1, encoding = 'o200k_base', format = 'markdown', now, halfLife = 1 } = options
  const limits = { ...defaultLimits, ...options.limits }
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0
  const faults = [
    isCount(budget) ? '' : 'budget must be a whole number of tokens',
    reserve >= 0 && reserve <= 0.5 ? '' : 'reserve must be from 0 to 0.5',
    isCount(cap) ? '' : 'cap must be a whole number of tokens',
    encodings.includes(encoding) ? '' : `encoding must be one of ${encodings.join(', ')}`,
    formats.includes(format) ? '' : `format must be one of ${formats.join(', ')}`,
    Number.isFinite(now) ? '' : 'now must be a time in milliseconds',
    halfLife > 0 ? '' : 'halfLife must be above 0',
    (options.pins ?? []).every((pin) => typeof pin === 'string' || levels.includes(pin.level ?? 'full'))
      ? ''
      : `the level of a pin must be one of ${levels.join(', ')}`,
    (options.pins ?? []).some((pin) => (typeof pin === 'string' ? pin : pin.uri).endsWith('/'))
      ? 'a pin must not be a folder'
      : '',
    Object.values(limits).every(isCount) && limits.concurrency > 0 && limits.items <= 999
      ? ''
      : 'limits must be whole numbers, with concurrency at least 1 and items at most 999',
    limits.searched >= 1 && limits.searched <= 100 ? '' : 'limits.searched must be from 1 to 100',
  ].filter((fault) => fault !== '')
  if (faults.length > 0) throw invalid(faults.join('; '), 'argument')
  return limits
}
