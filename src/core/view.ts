import type { Completion, Content, Description, FilledPrompt, Prompt } from './provider.ts'

/**
 * The catalog as one principal sees it, or a remote server: the same verbs either way, addressed by URI. A view is
 * cheap and holds no state. Every method throws only {@link ResourceError}; what the principal may not see is
 * `not-found`, exactly as if it were not there.
 */
export interface View {
  /** The roots: one resource per mount (`mimeType: inode/directory`), for a person or a program to start from. */
  mounts(options?: CallOptions): Promise<readonly Resource[]>
  /** A page of all resources, in one stable order. Directories are not among them. */
  list(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<Resource>>
  /** A page of all resource templates. */
  templates(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<ResourceTemplate>>
  /** The contents of a resource; of a directory, its listing (URI with `/` at the end) or its children (without). */
  read(uri: string, options?: ReadOptions): Promise<ReadResult>
  /** A page of a directory's children: resources, and directories (`inode/directory`, URI with `/` at the end). */
  directory(query: { readonly uri: string; readonly cursor?: string }, options?: CallOptions): Promise<Page<Resource>>
  /** Values for one variable of a template. */
  complete(request: ViewCompletionRequest, options?: CallOptions): Promise<Completion>
  /** Its prompts. Absent where there can be none. */
  readonly prompts?: PromptView
  /** Whether anything in it can tell of changes. */
  readonly live?: boolean
  /** Listens to changes. Nothing is told before something is added. Absent where nothing can be told. */
  subscribe?(listener: ChangeListener): Subscription
  /** Ends what the view holds open (a connection). A view of a local catalog holds nothing. */
  close?(): Promise<void>
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface ReadOptions extends CallOptions {
  /** Waits until there is room for something large, before it is brought. By default there always is. */
  readonly room?: () => Promise<void>
  /** Whether the contents alone are wanted: what would have to be looked up beside them may be left out. */
  readonly bare?: boolean
}

/** What has changed: resources, by the URIs that were added, and whether entries came or went. */
export interface ViewChange {
  readonly uris: readonly string[]
  readonly listed: boolean
  /**
   * What changed in directories that were added, as far as it is known and not more than a hundred: for who wants to know more than
   * that the directory did. No server tells it.
   */
  readonly below?: readonly string[]
  /** Whether prompts came, went or are described otherwise: told to those who listen to that. */
  readonly prompts?: boolean
}

export type ChangeListener = (change: ViewChange) => void

/** What one client listens to. A URI that names a directory stands for everything in it. */
export interface Subscription {
  /** What is listened to just now, as it was spelled. */
  readonly uris: readonly string[]
  /**
   * Listens to these URIs too. Resolves to those that are heard, once every change from then on is. One that the
   * principal may not see, that is malformed, or whose source cannot tell is left out, all alike.
   *
   * @throws ResourceError `invalid` (reason `too-many-subscriptions`) beyond a limit; nothing is added then.
   */
  add(uris: readonly string[], options?: CallOptions): Promise<readonly string[]>
  /** Listens to entries that come and go. Resolves to whether any source can tell, once it does. */
  addList(options?: CallOptions): Promise<boolean>
  /** Listens to prompts that come, go and change. Resolves to whether any source of them can tell, once it does. */
  addPrompts?(options?: CallOptions): Promise<boolean>
  /** Ends listening to a URI, in the spelling that was added; where none was added in it, in all spellings of the same. */
  remove(uri: string): void
  close(): void
}

/** An entry with its URI: what a client sees. `modified` is in milliseconds since 1970 (UTC). */
export interface Resource extends Description {
  readonly uri: string
  readonly name: string
  readonly size?: number
  readonly modified?: number
  readonly version?: string
}

export interface ResourceTemplate extends Description {
  /** A complete URI template (RFC 6570). */
  readonly uriTemplate: string
  readonly name: string
}

/** How long a client may keep an answer, in milliseconds, and whether one principal's answer may serve another. */
export interface CacheHint {
  readonly ttlMs: number
  readonly scope: 'public' | 'private'
}

export interface Page<T> {
  readonly items: readonly T[]
  /** Opaque. Absent on the last page. A page may be empty and still not be the last. */
  readonly nextCursor?: string
  readonly cache: CacheHint
  /** The addresses of mounts that should be on this page and did not answer. */
  readonly unavailable?: readonly string[]
}

/** One content with the URI that the client used for it. */
export type ResourceContent = Content & { readonly uri: string; readonly name?: string }

export interface ReadResult {
  readonly contents: readonly ResourceContent[]
  readonly cache: CacheHint
}

export interface ViewCompletionRequest {
  /** A template as `templates` gives it. */
  readonly uriTemplate: string
  readonly argument: { readonly name: string; readonly value: string }
  readonly arguments?: ReadonlyMap<string, string>
}

/** The prompts that one principal may use, by name. */
export interface PromptView {
  /** Whether anything can tell of changes of them. */
  readonly live?: boolean
  /** A page of all prompts, in one stable order. */
  list(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<ListedPrompt>>
  /**
   * The messages of a prompt, its resources read as the principal.
   *
   * @throws ResourceError `invalid` for an unknown prompt, an argument that is missing or that it does not have, and a
   * resource of it that is not there.
   */
  get(request: ViewPromptRequest, options?: CallOptions): Promise<FilledPrompt<PromptContent>>
  /** Values for one argument of a prompt. */
  complete(request: PromptCompletionRequest, options?: CallOptions): Promise<Completion>
}

/** A prompt as a client sees it. */
export type ListedPrompt = Omit<Prompt, 'path' | 'arguments'> & { readonly arguments?: readonly ListedArgument[] }

export interface ListedArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
}

/** What one message of a prompt holds. `bytes` are those of an image or a sound. */
export type PromptContent =
  | { readonly text: string }
  | { readonly bytes: Uint8Array; readonly mimeType: string }
  | { readonly resource: ResourceContent }
  | { readonly link: Resource }

export interface ViewPromptRequest {
  readonly name: string
  readonly arguments?: ReadonlyMap<string, string>
}

export interface PromptCompletionRequest {
  readonly name: string
  readonly argument: { readonly name: string; readonly value: string }
  readonly arguments?: ReadonlyMap<string, string>
}

/** The MIME type of a directory, as the shared-mime-info specification names it. */
export const directoryMimeType = 'inode/directory'
