import type { Audience } from '../core/provider.ts'
import type { Resource } from '../core/view.ts'
import type { Memory } from './memory.ts'
import type { Encoding } from './tokens.ts'

/**
 * How much of a resource is taken: a link alone; the outline of it (headings, signatures, columns); windows around what matches; or the
 * whole text.
 */
export type Level = 'link' | 'outline' | 'windows' | 'full'

export const levels: readonly Level[] = ['link', 'outline', 'windows', 'full']

export type Format = 'markdown' | 'xml' | 'json' | 'mcp'

export const formats: readonly Format[] = ['markdown', 'xml', 'json', 'mcp']

/** A resource that has to be there, and at which level: `full` where none is named. */
export interface Pin {
  readonly uri: string
  readonly level?: Level
}

export interface AssembleOptions {
  /** Question or task that the context is for. Without it, priority and time alone rank the resources. */
  readonly query?: string
  readonly pins?: readonly (string | Pin)[]
  /** URIs that never appear, even where they are pinned. One that ends in `/` stands for everything below it. */
  readonly excludes?: readonly string[]
  /** Whether there is nothing but the pins: nothing is looked for, and what has priority 1 is not required. */
  readonly pinsOnly?: boolean
  /** The addresses of mounts that are looked at. Left out: all. A pin may lie elsewhere. */
  readonly mounts?: readonly string[]
  /** How many tokens the text has at most. */
  readonly budget: number
  /** The share of the budget that is left free, from 0 to 0.5: other models count in other ways. 0.03 where it is left out. */
  readonly reserve?: number
  /** How many tokens one resource takes at most while there are others: 0.6 of the budget where it is left out. */
  readonly cap?: number
  readonly encoding?: Encoding
  /** For whom: what is meant for others alone is left out. `assistant` where it is left out. */
  readonly audience?: Audience
  readonly format?: Format
  /** Whether each item says what it would take at every level. Whole texts are counted for it. */
  readonly countLevels?: boolean
  /** The time, in milliseconds since 1970, from which the age of resources counts. The same time gives the same answer. */
  readonly now: number
  /** The age in milliseconds at which the recency of a resource has halved: 30 days where it is left out. */
  readonly halfLife?: number
  /** How often a resource was changed, where that is known. */
  readonly changes?: (uri: string) => number | undefined
  /**
   * The `manifest` of an earlier context. As much of the front of its text as costs little stays the same, so that prompt caches apply. That
   * front comes before better candidates.
   */
  readonly earlier?: readonly ManifestEntry[]
  readonly limits?: Partial<Limits>
  readonly signal?: AbortSignal
  /** Cache of the readings of earlier calls by the same caller. The answer is the same without it. */
  readonly memory?: Memory
}

/** How much work is done at most. */
export interface Limits {
  /** Resources of the listing that are looked at. */
  readonly listed: number
  /** Resources that are read to see whether they match, where no search covers them. */
  readonly read: number
  /** Bytes that are read and held in all. */
  readonly bytes: number
  /** Bytes of one resource. Of a larger one there is a link alone. */
  readonly item: number
  /** Resources, best first, of which there is more than a link. */
  readonly detailed: number
  /** Resources in the answer, at most 999. */
  readonly items: number
  /** Reads at the same time. */
  readonly concurrency: number
}

export const defaultLimits: Limits = {
  listed: 20_000,
  read: 2000,
  bytes: 64 * 1024 * 1024,
  item: 1024 * 1024,
  detailed: 200,
  items: 999,
  concurrency: 8,
}

/** For a view that is far away: how much of it is read to look for words, and at once. */
export const remoteLimits: Partial<Limits> = { read: 500, concurrency: 4 }

/** One thing that the score of a resource is the product of. 1 changes nothing. */
export interface Factor {
  readonly name: 'relevance' | 'history' | 'priority' | 'recency' | 'activity'
  readonly value: number
  /** Reason for the value, in words. */
  readonly because: string
}

export interface Explanation {
  /** The product of the factors. */
  readonly score: number
  readonly factors: readonly Factor[]
}

/** A resource that may be taken, with what it is worth. */
export interface Candidate {
  readonly resource: Resource
  readonly explanation: Explanation
  /** At least this level: pins, and what has priority 1. */
  readonly required?: Level
  /** The lines that a search found, from 1, both inclusive. */
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
  /** As it was listed or found. */
  readonly resource: Resource
  readonly level: Level
  /** Tokens of its part of the text. The sum over all items, plus the frame, is the whole. */
  readonly tokens: number
  readonly required: boolean
  /** Set when `countLevels` is. */
  readonly levels?: LevelTokens
  readonly explanation: Explanation
  /** Sentences about it for the caller, such as how it was shortened. */
  readonly notes: readonly string[]
}

export interface OmittedItem {
  readonly uri: string
  /**
   * `budget`: it did not fit; `count`: there are as many as there may be; `duplicate`: `of` says the same; `unreadable`: it could not be
   * read, and a link did not fit either.
   */
  readonly reason: 'budget' | 'count' | 'duplicate' | 'unreadable'
  readonly of?: string
  /** Tokens of its smallest form. */
  readonly tokens?: number
  readonly explanation: Explanation
}

/** A resource of a context and its state when it was read, so that the context can be reproduced. */
export interface ManifestEntry {
  readonly uri: string
  readonly level: Level
  readonly tokens: number
  /** Of the whole text in UTF-8, as it was read, whatever the level. Absent where it was not read. */
  readonly sha256?: string
  /** The lines that are there, from 1, both inclusive. Absent: all, or none of them as they are. */
  readonly ranges?: readonly LineRange[]
  /** As in RFC 3339. */
  readonly modified?: string
  readonly version?: string
  /** The first 16 hexadecimal digits of the SHA-256 of the context from its beginning to the end of this resource. */
  readonly prefix?: string
}

export interface Assembled {
  readonly text: string
  /** With the format `mcp`: the content blocks, whose JSON is the text, one a line. */
  readonly blocks?: readonly ContentBlock[]
  /** Of `text`, exactly. Never above `budget`. */
  readonly tokens: number
  readonly budget: number
  readonly encoding: Encoding
  readonly format: Format
  readonly items: readonly AssembledItem[]
  readonly omitted: readonly OmittedItem[]
  readonly manifest: readonly ManifestEntry[]
  /** With `earlier`: how many tokens in front, up to the end of a resource, are to the byte those of the earlier context. */
  readonly reusedPrefixTokens?: number
  /** Why there may be more to find than this. */
  readonly notes: readonly string[]
}

/** A content block, as the Model Context Protocol has it in prompts and in the results of tools. */
export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'resource'
      readonly resource: { readonly uri: string; readonly mimeType?: string; readonly text: string }
      readonly annotations?: Annotations
    }
  | {
      readonly type: 'resource_link'
      readonly uri: string
      readonly name: string
      readonly title?: string
      readonly description?: string
      readonly mimeType?: string
      readonly annotations?: Annotations
    }

export interface Annotations {
  readonly audience?: readonly Audience[]
  readonly priority?: number
  readonly lastModified?: string
}
