import type { Context } from './call.ts'
import type { Content, Description, Entry, Icon, Resource } from './entry.ts'
import { invalid } from './errors.ts'
import { fitArguments } from './fitted.ts'

/** A tool of a provider. */
export interface ProvidedTool extends Pick<Description, 'title' | 'description' | 'icons' | 'meta'> {
  /** Path for the access rules: a principal that may see it may call the tool. */
  readonly path: string
  /** Name of the tool: at most 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`. */
  readonly name: string
  /** Name by which the tool is called when another tool already has its `name`. */
  readonly longName: string
  /** JSON Schema of the arguments, which are an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** JSON Schema of the `structured` result. */
  readonly outputSchema?: Readonly<Record<string, unknown>>
  /** Hints that a host shows to a person before a call. */
  readonly annotations?: ToolHints
}

/** Hints about the effects of a tool (`ToolAnnotations` of MCP). */
export interface ToolHints {
  readonly readOnly?: boolean
  readonly destructive?: boolean
  readonly idempotent?: boolean
  readonly openWorld?: boolean
}

/**
 * A part of the result of a tool: text; an image or a sound; a content at a path of the source, or a link to an entry of it, which
 * the caller gets only with access to the path; or a link to a resource of another mount.
 */
export type ToolPart =
  | { readonly text: string }
  | { readonly bytes: Uint8Array; readonly mimeType: string }
  | { readonly content: Content & { readonly path: string } }
  | { readonly entry: Entry }
  | { readonly link: ToolLink }

export interface ToolLink {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

export interface ToolOutcome {
  readonly parts: readonly ToolPart[]
  readonly structured?: Readonly<Record<string, unknown>>
  /** Whether the tool reports a failure. */
  readonly failed?: boolean
}

export interface ToolProgress {
  /** Increases with each report. */
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

export interface ToolRequest {
  readonly path: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly report?: (progress: ToolProgress) => void
}

export interface Tools {
  /** Returns all tools, in path order. */
  list(context: Context): Promise<readonly ProvidedTool[]>
  /** Runs a tool. The call is never repeated. Throws `not-found` when there is no tool at the path. */
  call(request: ToolRequest, context: Context): Promise<ToolOutcome>
}

export type JsonObject = Readonly<Record<string, unknown>>

/** A tool of MCP. */
export interface Tool {
  /** Name of the tool: at most 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`. */
  readonly name: string
  readonly title?: string
  /** Explains to a model what the tool does, and when it is useful. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments, which are an object. `call` validates them itself. */
  readonly inputSchema: JsonObject
  /** JSON Schema of the `structured` result. */
  readonly outputSchema?: JsonObject
  /** Hints that a host shows to a person before a call. */
  readonly annotations?: ToolHints
  readonly icons?: readonly Icon[]
  /** Members of `_meta` in the answer. JSON values. */
  readonly meta?: JsonObject
  /** The page that a host with MCP Apps shows for the tool. */
  readonly app?: ToolApp
  /** Runs the tool. Throws only ResourceError: the model sees `invalid` errors, so that it can correct its call. */
  call(given: JsonObject, context: Context, report?: (progress: ToolProgress) => void): Promise<ToolAnswer>
}

/** A page of HTML that a host shows in a sandbox (MCP Apps, SEP-1865). It loads nothing, and sends its requests only through the host. */
export interface ToolApp {
  /** URI of the page, which begins with `ui://`. */
  readonly uri: string
  /** Returns the page. Throws only ResourceError. */
  html(): Promise<string>
}

export interface ToolAnswer {
  /** Text for a model, sent as the first block. Empty: the answer consists of the blocks alone. */
  readonly text: string
  readonly structured?: JsonObject
  /** Resources that the call created or found. */
  readonly resources?: readonly ToolLink[]
  readonly blocks?: readonly ToolBlock[]
  /** Whether the tool reports a failure. */
  readonly failed?: boolean
}

export type ToolBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly uri: string; readonly mimeType: string; readonly blob: string }
  | { readonly type: 'embedded'; readonly resource: EmbeddedText }
  | { readonly type: 'link'; readonly resource: Resource }

export interface EmbeddedText extends Pick<Resource, 'uri' | 'mimeType' | 'audience' | 'priority' | 'modified'> {
  readonly text: string
}

/** An HTTP endpoint that accepts JSON. A principal that may not post there gets the same answer as for a missing endpoint. */
export interface PostEndpoint {
  /** Handles a post. Throws only ResourceError. */
  post(
    value: unknown,
    context: Context,
  ): Promise<{
    readonly answer: JsonObject
    /** Whether something was created. */
    readonly created: boolean
    /** URI of the created resource, if there is exactly one. */
    readonly location?: string
  }>
}

const maxText = 8192

/**
 * Returns readers for the arguments of a tool, which are first fitted to its schema ({@link fitArguments}). No error repeats a value.
 *
 * @throws ResourceError `invalid` for an argument that the tool does not know, so that a model can correct its call.
 */
export function createArgumentReader(sent: JsonObject, schema: JsonObject) {
  const args = fitArguments(sent, schema)
  const { properties = {} } = schema as { readonly properties?: JsonObject }
  const names = Object.keys(properties)
  const unknown = Object.keys(args).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw invalid(`The call has an unknown argument. The arguments are: ${names.join(', ')}.`, 'argument')

  const text = (name: string, most = maxText): string | undefined => {
    const value = args[name]
    if (value === undefined) return undefined
    if (typeof value !== 'string') throw invalid(`"${name}" must be a string.`, 'argument')
    if (value.length > most)
      throw invalid(`"${name}" must have at most ${most} characters.`, 'argument', { limit: most })
    return value
  }
  return {
    given: args,
    text,
    required: (name: string, most?: number): string => {
      const value = text(name, most)
      if (value === undefined || value === '') throw invalid(`"${name}" is missing.`, 'argument')
      return value
    },
    count: (name: string, { least, most, otherwise }: Record<'least' | 'most' | 'otherwise', number>): number => {
      const value = args[name]
      if (value === undefined) return otherwise
      if (!Number.isSafeInteger(value) || Number(value) < least || Number(value) > most)
        throw invalid(`"${name}" must be a whole number from ${least} to ${most}.`, 'argument')
      return Number(value)
    },
    number: (name: string): number | undefined => {
      const value = args[name]
      if (value === undefined) return undefined
      if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`"${name}" must be a number.`, 'argument')
      return value
    },
    flag: (name: string): boolean => {
      const value = args[name] ?? false
      if (typeof value !== 'boolean') throw invalid(`"${name}" must be true or false.`, 'argument')
      return value
    },
    choice: <Word extends string>(name: string, words: readonly Word[]): Word | undefined => {
      const value = text(name)
      const word = words.find((one) => one === value)
      if (value !== undefined && word === undefined)
        throw invalid(`"${name}" must be one of ${words.join(', ')}.`, 'argument')
      return word
    },
    /** Returns an array argument after `judge` has converted each item. */
    list: <Item>(
      name: string,
      most: number,
      judge: (item: unknown, name: string) => Item,
    ): readonly Item[] | undefined => {
      const value = args[name]
      if (value === undefined) return undefined
      if (!Array.isArray(value)) throw invalid(`"${name}" must be an array.`, 'argument')
      if (value.length > most) throw invalid(`"${name}" must have at most ${most} items.`, 'argument', { limit: most })
      return value.map((item: unknown, index) => judge(item, `${name}[${index}]`))
    },
  }
}

export type ArgumentReader = ReturnType<typeof createArgumentReader>

/** The hints of a tool that only reads, and only what this server has. */
export const readOnlyHints = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const

export interface StoreOutcome {
  readonly id: string
  /** `unchanged`: the same record was stored already. */
  readonly status: 'created' | 'replaced' | 'unchanged'
  readonly created: string
  readonly expires?: string
}

export interface RecordStore {
  /**
   * Stores a record, and replaces the whole record with the same id. If that has the same content, nothing changes.
   *
   * @throws ResourceError `invalid` (reason `argument`, with `field`) for a malformed record, or one that has expired; `invalid`
   * (reason `too-large`) beyond the limit; `unavailable` when the store does not answer.
   */
  put(value: unknown): Promise<StoreOutcome>
  /** Validates a record as `put` does, without storing it. */
  check(value: unknown): void
  /** JSON Schema (draft 2020-12) of a record. */
  readonly schema: JsonObject
}

/** Why notifications of changes are degraded. `limited`: a part is compared periodically; `lost`: the watch restarts; `unavailable`: no answer. */
export type Degradation = 'limited' | 'lost' | 'unavailable'

/**
 * State of the index of a mount: `waiting` for its turn; `comparing` the listing with the index, and reading changes; `current`: it
 * equals the listing; `unavailable`: the source or the store does not answer, and is retried later.
 */
export type MountIndexState = 'waiting' | 'comparing' | 'current' | 'unavailable'

/** How far an index is behind its source. */
export interface Freshness {
  /** Number of changes that are known and not indexed yet. */
  readonly pending?: number
  /** Time until which all reported changes are indexed, in milliseconds since 1970. Undefined: not known. */
  readonly asOf?: number
}

export interface MountProgress extends Freshness {
  readonly address: string
  readonly state: MountIndexState
  /** Time at which the mount entered this state, in milliseconds since 1970. */
  readonly since: number
  /** Number of documents that are compared with the index so far, out of `of`. */
  readonly looked: number
  readonly of?: number
  /** Number of documents that were read and indexed since this process began to index the mount. */
  readonly indexed: number
  /** How changes are noticed: by a watch, or by comparing everything at an interval. */
  readonly changes: 'watched' | 'compared'
  readonly degraded?: Degradation
  readonly partial?: IndexGaps
  /** Number of entries of which only the first page is indexed, such as tables and views without a key. */
  readonly firstPages?: number
}

export interface IndexGaps {
  /** Number of entries (such as tables) of which only the first `limit` parts (such as rows) are indexed. */
  readonly entries?: number
  readonly limit?: number
  /** Number of texts of which only the beginning is indexed, at most `maxBytes`. */
  readonly texts?: number
  readonly maxBytes?: number
  /** Number of documents with pages that hold only pictures or unreadable text, and how many of them wait for OCR. */
  readonly scans?: number
  readonly waitingScans?: number
}

/** The progress of an index, as it is stored for all processes. */
export interface FeedStatus {
  /** Time at which the status was written, in milliseconds since 1970. */
  readonly told: number
  readonly mounts: readonly MountProgress[]
}

/** Methods of a provider that searches other mounts by an index. */
export interface IndexFeeder {
  /** Starts to keep the index up to date, unless another process does. Before this call, the index is only searched. */
  feed(): void
  /** Resolves to the progress of the index; to undefined when no process keeps it up to date. */
  feedStatus(): Promise<FeedStatus | undefined>
  /** Resolves to when the whole index was last known to be current, in milliseconds since 1970; to undefined when that is not known. */
  currentAt(): Promise<number | undefined>
}
