/** Who asks. `id` is unique per caller; `roles` are what access rules name. */
export interface Principal {
  readonly id: string
  readonly roles: readonly string[]
  /** The OAuth scopes that its token grants, broader ones with all that they imply. Left out: no token limits it. */
  readonly scopes?: readonly string[] | undefined
}

/** What every call carries: who asks, and the signal that ends it. A provider stops its work soon after the abort. */
export interface Context {
  readonly principal: Principal
  readonly signal: AbortSignal
  /**
   * What is larger, in bytes, is asked for again in a moment, when there is room for it. A provider that knows the size before
   * it brings the content throws {@link later} then; others may ignore it.
   */
  readonly most?: number
  /** Whether the content alone is wanted: what would have to be looked up beside it may be left out. */
  readonly bare?: boolean
  /**
   * Whether who asks may see another path of the same source, by the access rules. A source that serves one thing under several
   * paths (by a symbolic link) asks it for each path but the one that was asked for; where one may not be seen, nothing is
   * there. Left out: every path may be seen.
   */
  readonly allows?: (path: string) => boolean
}

export type Audience = 'user' | 'assistant'

/** An image that a client may show (MCP 2025-11-25 and later). `src` is an `https:` or `data:` URI. */
export interface Icon {
  readonly src: string
  readonly mimeType?: string
  readonly sizes?: readonly string[]
  readonly theme?: 'light' | 'dark'
}

/** What a model or a person is told of a resource or a template, beside its address. */
export interface Description {
  /** For people. The name of a resource is the last segment of its path. */
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** From 0, entirely optional, to 1, effectively required. */
  readonly priority?: number
  readonly audience?: readonly Audience[]
  readonly icons?: readonly Icon[]
  /** Sent to the client in `_meta`. JSON values. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/**
 * One thing that a provider lists.
 *
 * `path` is relative to the mount, decoded, without a leading slash: `src/main.ts`. Its segments are not empty, `.` or
 * `..`, and hold no slash, control character or lone surrogate (a backslash is an ordinary character). A path
 * that ends in `/` is a directory; `list` leaves directories out, since they follow from the paths of what is in them. The
 * empty path is the mount itself, where that is one resource.
 */
export interface Entry extends Description {
  readonly path: string
  /** Where it has another one than the last segment of its path. */
  readonly name?: string
  /** Bytes, as the source stores them. Left out where it is unknown: never a guess. */
  readonly size?: number
  /** Milliseconds since 1970 (UTC). */
  readonly modified?: number
  /** Changes whenever the content does; opaque. That of a directory is which names are directly in it. */
  readonly version?: string
}

/** A part of an entry that is found by itself, such as a row of a table. */
export interface EntryPart {
  /** By which it is read. It lies below the path of the entry. */
  readonly path: string
  readonly title?: string
  readonly mimeType?: string
  /** What it is found by. */
  readonly text: string
}

/** A part of a resource in bytes: from `start`, up to but not including `end` (or to the end). */
export interface ByteRange {
  readonly start: number
  readonly end?: number
}

/** The decoded query parameters of a URI, as one of the provider's templates declares them. */
export type Params = ReadonlyMap<string, string>

export interface ReadRequest {
  readonly path: string
  readonly params: Params
  /**
   * A provider that can read a part reads only that, and says so in {@link ContentFacts.range}. Others ignore it. One that
   * begins at or behind the end is `invalid` (reason `range`), except at 0 of what is empty.
   */
  readonly range?: ByteRange
}

export interface ContentFacts {
  /** The path of this part, where it is not the one that was asked for (a read may answer with several). */
  readonly path?: string
  readonly title?: string
  readonly mimeType?: string
  readonly version?: string
  /** The size in bytes of the whole resource, where it is known. */
  readonly size?: number
  /** The part of the resource that this is, where it is not the whole. `end` is always given. */
  readonly range?: { readonly start: number; readonly end: number }
  /** What is at this path never changes (it is named by its content): a client may keep it for ever. */
  readonly immutable?: boolean
  /** Sent to the client in `_meta`. JSON values. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** What a read answers: text, or bytes, or a stream of bytes whose length is known. */
export type Content = ContentFacts &
  (
    | { readonly text: string }
    | { readonly bytes: Uint8Array }
    | { readonly stream: AsyncIterable<Uint8Array>; readonly length: number }
  )

/** A family of resources, given as an RFC 6570 template that is relative to the mount: `{+path}`, `{table}/schema`. */
export interface Template extends Description {
  readonly template: string
  readonly name: string
  /** The variables that take any value, such as a number, a time or words: there is nothing to complete them from. */
  readonly free?: readonly string[]
}

/** A request to complete one variable of a template, as it was declared (relative to the mount). */
export interface CompletionRequest {
  readonly template: string
  /** What was typed of its value, decoded. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The variables that are already filled in, decoded. */
  readonly arguments: ReadonlyMap<string, string>
}

/** At most 100 values, best first. A provider gives them decoded. A value that ends in `/` can be completed further. */
export interface Completion {
  readonly values: readonly string[]
  readonly total?: number
  readonly hasMore?: boolean
}

/**
 * Something changed: an entry, or a directory and what is in it (a path that ends in `/`). Without a path: assume that
 * everything did. `listed`: the entry came or went, or what the listing says of it changed.
 */
export interface Change {
  readonly path?: string
  readonly listed?: boolean
  /** The other paths of the same thing ({@link Context.allows}): who may not see each of them does not hear of it. */
  readonly aliases?: readonly string[]
}

/**
 * Why a watch tells less well of changes than it should, for the operator: `limited`: not all of the source can be watched,
 * and the rest is compared from time to time; `lost`: the watch has ended, and begins anew; `unavailable`: the source itself
 * does not answer.
 */
export type Degradation = 'limited' | 'lost' | 'unavailable'

export interface ListQuery {
  /** Only entries whose path starts with this. Empty, or ends in `/`. */
  readonly prefix?: string
  /** Only entries strictly after this path, in path order. It need not exist, nor lie under `prefix`. */
  readonly after?: string
  /**
   * Only what lies directly below `prefix` is of interest. A source that finds directories without listing what is in them yields
   * each as an entry whose path ends in `/`, and nothing in it; others pass this over.
   */
  readonly shallow?: boolean
  /**
   * Of each directory directly below `prefix`, one entry for which this holds is enough, and any for which it does not may be left out;
   * of a directory (its path ends in `/`) it says whether it can hold for anything in there. It spares a source work that nobody sees
   * the fruit of, and is no more than that: others pass it over, and whoever lists looks at each entry again.
   */
  readonly skim?: (path: string) => boolean
}

/**
 * A source of resources. Paths are relative to the mount and already validated. Only `list` and `read` are required:
 * leaving a method out is how a provider says that it cannot do it. Providers are plain object literals made by a
 * factory function, so that a wrapper can spread `...inner` and lose nothing.
 *
 * Every method throws only {@link ResourceError}. An abort of the signal may reject with anything.
 */
export interface Provider {
  /**
   * Yields entries in path order ({@link comparePaths}: UTF-8 byte order), strictly after `after`, only those under
   * `prefix`. It may stop at any time when the caller does. It yields directories only where the query is `shallow`.
   */
  list(query: ListQuery, context: Context): AsyncIterable<Entry>
  /**
   * What one entry is, without reading it. Throws `not-found`. Where it is left out, it is found by `list`. A path that
   * ends in `/` is `not-found` too, unless the source knows directories, empty ones included: an entry with
   * `inode/directory`.
   */
  stat?(path: string, context: Context): Promise<Entry>
  /** The content at a path. Throws `not-found` rather than returning nothing. */
  read(request: ReadRequest, context: Context): Promise<readonly Content[]>
  templates?(context: Context): Promise<readonly Template[]>
  /** `undefined`: it does not know better than the tree, in which paths are completed where there is no such method. */
  complete?(request: CompletionRequest, context: Context): Promise<Completion | undefined>
  /**
   * Watches the source. Resolves once it is armed: every change from then on is yielded, or one that covers it, until
   * `signal` aborts. An iteration that ends before says that the watch was lost. Throws `unavailable` where it cannot be
   * armed just now.
   */
  watch?(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /** The prompts that are written in it, where it has such. */
  readonly prompts?: Prompts
  /**
   * Has the watch that runs tell of a path too (of a directory, with a `/` at its end or without: of what is in it). Resolves to
   * whether it does, once it does. Left out: it tells of every path anyhow.
   */
  follow?(path: string): Promise<boolean>
  /** Nobody listens to this path any more. */
  unfollow?(path: string): void
  /**
   * Whether a principal may see a path, as far as the source knows just now; `true` where it knows nothing yet. A source that
   * leaves it out shows the same to everybody. It looks at who asks in every other method; this is for what is told unasked.
   * Of directories it says `false`: they are where something in them is seen.
   */
  sees?(principal: Principal, path: string): boolean
  /**
   * The parts of an entry that are found one by one, though no listing has them: the rows of a table. Each has a path that can be
   * read. `undefined`: the entry has none, and is indexed as it is read. Only what indexes asks for it: a wrapper that changes what is
   * read leaves it out.
   */
  parts?(path: string, context: Context): Promise<AsyncIterable<EntryPart> | undefined>
  /** Why changes are told later than they could be, or not at all, just now. `undefined`: as well as ever, or nobody watches. */
  degraded?(): Degradation | undefined
  close?(): Promise<void>
}

/** One argument of a prompt, as a person or a program fills it in. */
export interface PromptArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
  /** The values that are proposed. Others may be given all the same. */
  readonly values?: readonly string[]
  /** A resource template (a complete URI template) one variable of which proposes values: the caller's, as it sees them. */
  readonly from?: { readonly uriTemplate: string; readonly variable: string }
}

/** A prompt that a provider offers: messages for a model, with places for arguments. */
export interface Prompt {
  /** The path of the entry that it is written in: whoever may see that may use the prompt. */
  readonly path: string
  /** What it is asked for by. Not empty. Of two with one name, the second is asked for by its URI. */
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly icons?: readonly Icon[]
  readonly arguments?: readonly PromptArgument[]
}

/** A piece of a prompt: text, or a resource by its URI, which is read as the caller. */
export type PromptPart = { readonly text: string } | { readonly uri: string }

export interface PromptMessage<Part = PromptPart> {
  readonly role: Audience
  readonly content: Part
}

/** A prompt with its arguments filled in. */
export interface FilledPrompt<Part = PromptPart> {
  readonly description?: string
  readonly messages: readonly PromptMessage<Part>[]
}

export interface PromptRequest {
  readonly path: string
  /** Those that were given. All that are required are there, and none that the prompt does not have. */
  readonly arguments: ReadonlyMap<string, string>
}

/** The prompts of a provider. They change with its entries: a change of a prompt is `listed`. */
export interface Prompts {
  /** All of them, in path order. */
  list(context: Context): Promise<readonly Prompt[]>
  /** The messages of one. Throws `not-found` where there is no prompt at the path. */
  get(request: PromptRequest, context: Context): Promise<FilledPrompt>
}
