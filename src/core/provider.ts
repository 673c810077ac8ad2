import type { Context, Principal } from './call.ts'
import type { Audience, ByteRange, Content, Description, Entry } from './entry.ts'
import type { Degradation, IndexFeeder, RecordStore, Tools } from './tool.ts'

export type { Context, Principal } from './call.ts'
export type {
  Audience,
  ByteRange,
  Content,
  ContentMetadata,
  Description,
  Entry,
  Icon,
} from './entry.ts'
export type { Degradation } from './tool.ts'

/** A part of an entry that is indexed by itself, such as a row of a table. */
export interface EntryPart {
  /** Path by which the part is read. It lies below the path of the entry. */
  readonly path: string
  readonly title?: string
  readonly mimeType?: string
  readonly text: string
}

/** The decoded query parameters of a URI, as one of the provider's templates declares them. */
export type Params = ReadonlyMap<string, string>

export interface ReadRequest {
  readonly path: string
  readonly params: Params
  /**
   * The requested range. A provider that can read a range reads only that, and returns it in {@link ContentMetadata.range}. Others
   * ignore it. A range that begins at or after the end is `invalid` (reason `range`), except at 0 of an empty resource.
   */
  readonly range?: ByteRange
}

/** A family of resources, given as an RFC 6570 template that is relative to the mount: `{+path}`, `{table}/schema`. */
export interface Template extends Description {
  readonly template: string
  readonly name: string
  /** Variables that accept any value, such as a number, a time or words: there are no values to propose. */
  readonly free?: readonly string[]
}

/** A request to complete one variable of a template, as it was declared (relative to the mount). */
export interface CompletionRequest {
  readonly template: string
  /** The variable to complete: its name, and the part of its value that was typed, decoded. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The variables that are already filled in, decoded. */
  readonly arguments: ReadonlyMap<string, string>
}

/** The proposed values of a variable or an argument. */
export interface Completion {
  /** At most 100 values, best first, decoded. A value that ends in `/` can be completed further. */
  readonly values: readonly string[]
  readonly total?: number
  readonly hasMore?: boolean
}

/** A list of a source, other than that of its entries, whose changes can be watched. */
export type ChangedKind = 'prompts' | 'tools'

/** A change of an entry, or of a directory with its contents. */
export interface Change {
  /** A path that ends in `/` is a directory. Undefined: everything may have changed. */
  readonly path?: string
  /** Whether the entry was added or removed, or its listed facts changed. */
  readonly listed?: boolean
  /** Set when the path is that of a prompt or a tool, or of a directory of them, and no entry has changed ({@link Prompts.separate}). */
  readonly of?: ChangedKind
  /**
   * Other paths of the same entry ({@link Context.allows}): only principals that may see all of them are notified. Of a tool or a
   * prompt: the paths of its other names, for the access rules.
   */
  readonly aliases?: readonly string[]
}

export interface ListQuery {
  /** Only entries whose path starts with this prefix. Empty, or ends in `/`. */
  readonly prefix?: string
  /** Only entries strictly after this path, in path order. It need not exist, nor lie under `prefix`. */
  readonly after?: string
  /**
   * Whether only the direct children of `prefix` are needed. A source that finds directories without listing their contents
   * yields each as an entry whose path ends in `/`, without its contents; others ignore the option.
   */
  readonly shallow?: boolean
  /**
   * A test of paths: for each directory directly below `prefix`, one entry that passes is enough, and entries that fail
   * may be left out. For a directory (its path ends in `/`) it returns whether anything below it can pass. Sources may
   * ignore it.
   */
  readonly skim?: (path: string) => boolean
}

/**
 * A source of resources. Paths are relative to the mount and already validated. A provider that stores records, or
 * searches by an index, has all members of {@link RecordStore} or {@link IndexFeeder}. Providers are plain object
 * literals, so that a wrapper can spread `...inner` and lose nothing.
 * Methods throw {@link ResourceError}. After an abort of the signal they may reject with anything.
 */
export interface Provider extends Partial<RecordStore>, Partial<IndexFeeder> {
  /**
   * Yields the entries under `prefix`, strictly after `after`, in path order ({@link comparePaths}: UTF-8 byte order). The caller
   * may stop it at any time. It yields directories only when the query is `shallow`.
   */
  list(query: ListQuery, context: Context): AsyncIterable<Entry>
  /**
   * Returns one entry without reading its content. Throws `not-found`. Without this method, the catalog finds the entry with
   * `list`. A path that ends in `/` is `not-found` too, unless the source knows directories, including empty ones: then the entry
   * has the type `inode/directory`.
   */
  stat?(path: string, context: Context): Promise<Entry>
  /** Returns the contents at a path. Throws `not-found` rather than returning an empty array. */
  read(request: ReadRequest, context: Context): Promise<readonly Content[]>
  templates?(context: Context): Promise<readonly Template[]>
  /** Begins slow preparations for the first answer, such as the start of a server, and returns at once. */
  start?(): void
  /**
   * Completes a variable. Resolves to undefined when the source knows no better values than the paths of the listing,
   * from which the catalog then completes.
   */
  complete?(request: CompletionRequest, context: Context): Promise<Completion | undefined>
  /**
   * Watches the source. Resolves when it is armed: every change from then on is yielded, or one that covers it, until `signal`
   * aborts. An iteration that ends earlier means that the watch was lost. Throws `unavailable` when it cannot be armed at the
   * moment.
   */
  watch?(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /**
   * Makes the running watch look at the source now. Resolves to `true` when it has yielded every change that was finished before the
   * call; to `false` when the source cannot promise that, and only a comparison of its listing finds every change. Throws
   * `unavailable` when the source does not answer.
   */
  catchUp?(signal: AbortSignal): Promise<boolean>
  /**
   * Whether a listing of everything can have entries at a path or below it. Default: it can. For example, a git
   * repository has the files of each branch, but lists only those at `HEAD`.
   */
  isListed?(path: string): boolean
  /**
   * Whether each change that `watch` yields shows in the listing: an entry was added, was removed, or has another version. A comparison of
   * two listings then finds every change between them.
   *
   * @param isRestricted Whether rules decide about paths. The answer is then false if an entry has other paths that the listing does not
   * show.
   */
  listsChanges?(isRestricted: boolean): boolean
  /** When the running watch last looked at a source that is polled, in milliseconds since 1970. */
  lookedAt?(): number | undefined
  /** The prompts of the source; undefined when it can have none. */
  readonly prompts?: Prompts
  /** The tools of the source; undefined when it can have none. The watch yields changes of them with `of: 'tools'`. */
  readonly tools?: Tools
  /**
   * Adds a path to the running watch; for a directory (with or without a final `/`), its contents. Resolves to whether the watch
   * now includes the path. Undefined when the watch includes every path anyway.
   */
  follow?(path: string): Promise<boolean>
  /** Called when nobody listens to this path any more. */
  unfollow?(path: string): void
  /**
   * Whether a principal may see a path, as far as the source knows now; `true` while it knows nothing yet. Undefined for a source
   * that shows the same to everyone. All other methods check the caller themselves; this one is for notifications. For
   * directories it returns `false`: they are visible when something in them is.
   */
  sees?(principal: Principal, path: string): boolean
  /**
   * Returns the parts of an entry that are indexed one by one although no listing has them: the rows of a table.
   * Resolves to undefined when the entry is indexed as a whole. A wrapper that changes contents must leave the method
   * out.
   */
  parts?(path: string, context: Context): Promise<AsyncIterable<EntryPart> | undefined>
  /**
   * Drops the cached data of the source, because another replica has reported a change: answers from now on must be
   * newer than this call. Undefined for a source without a cache.
   */
  renew?(): void
  /** Returns why notifications of changes are currently late or missing; undefined when they are not, or when nobody watches. */
  degraded?(): Degradation | undefined
  /** Returns why the source did not answer the last request, in words for a client; undefined when it did. */
  failing?(): string | undefined
  close?(): Promise<void>
}

/** One argument of a prompt, as a person or a program fills it in. */
export interface PromptArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
  /** Proposed values. Other values are accepted too. */
  readonly values?: readonly string[]
  /** A resource template (a complete URI template), one variable of which provides the proposed values, as far as the caller may see them. */
  readonly from?: { readonly uriTemplate: string; readonly variable: string }
}

/** A prompt of a provider: messages for a model, with placeholders for arguments. */
export interface Prompt extends Pick<Description, 'title' | 'description' | 'icons' | 'meta'> {
  /** Path of the entry that defines the prompt: a principal that may see the entry may use the prompt. */
  readonly path: string
  /** Name of the prompt, not empty. */
  readonly name: string
  /**
   * Name by which the prompt is called when another prompt has its name, instead of its URI. Set for a prompt of
   * another server.
   */
  readonly longName?: string
  readonly arguments?: readonly PromptArgument[]
}

/**
 * A part of a prompt: text; the URI of a resource, which is read as the caller; an image or a sound; a content at a path of the
 * source; or a link to an entry of it. The caller needs access to the paths.
 */
export type PromptPart =
  | { readonly text: string }
  | { readonly uri: string }
  | { readonly bytes: Uint8Array; readonly mimeType: string }
  | { readonly content: Content & { readonly path: string } }
  | { readonly entry: Entry }

export interface PromptMessage<Part = PromptPart> {
  readonly role: Audience
  readonly content: Part
}

export interface FilledPrompt<Part = PromptPart> {
  readonly description?: string
  readonly messages: readonly PromptMessage<Part>[]
}

export interface PromptRequest {
  readonly path: string
  /** The given arguments: all required ones, and no unknown ones. */
  readonly arguments: ReadonlyMap<string, string>
}

export interface PromptCompletion {
  readonly path: string
  /** The argument to complete: its name, and the part of its value that was typed. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The arguments that are already filled in. */
  readonly arguments: ReadonlyMap<string, string>
}

/** The prompts of a provider. They change with its entries (a change of a prompt is `listed`), unless they are `separate`. */
export interface Prompts {
  /** Whether prompts change independently of entries. The watch then yields changes of them with `of: 'prompts'`. */
  readonly separate?: boolean
  /** Returns all prompts, in path order. */
  list(context: Context): Promise<readonly Prompt[]>
  /** Returns the messages of a prompt. Throws `not-found` when there is no prompt at the path. */
  get(request: PromptRequest, context: Context): Promise<FilledPrompt>
  /** Completes an argument. Default: from the values of the argument. */
  complete?(request: PromptCompletion, context: Context): Promise<Completion>
}
