import type { Resource } from './entry.ts'
import type { Completion, Content, Description, FilledPrompt, Prompt, PromptArgument } from './provider.ts'
import type { Tool } from './tool.ts'

export type { Resource } from './entry.ts'

/**
 * The catalog as one principal sees it, or a remote server. A resource that the principal may not see is `not-found`,
 * like a missing one.
 */
export interface View {
  /** Returns the roots: one resource per mount (`mimeType: inode/directory`), for a person or a program to start from. */
  mounts(options?: CallOptions): Promise<readonly Resource[]>
  /** Returns a page of all resources, in one stable order, without directories. */
  list(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<Resource>>
  /** Returns a page of all resource templates. */
  templates(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<ResourceTemplate>>
  /** Returns the contents of a resource. For a directory, returns its listing (URI with a final `/`) or the contents of its children (without). */
  read(uri: string, options?: ReadOptions): Promise<ReadResult>
  /** Returns a page of a directory's children: resources, and directories (`inode/directory`, URI with a final `/`). */
  directory(query: { readonly uri: string; readonly cursor?: string }, options?: CallOptions): Promise<Page<Resource>>
  complete(request: ViewCompletionRequest, options?: CallOptions): Promise<Completion>
  /** Returns the facts and the version of a resource or directory. Undefined for a view of a remote server. */
  stat?(uri: string, options?: CallOptions): Promise<ResourceState>
  /** Returns the resources that changed since an earlier call. Undefined for a view of a remote server. */
  changed?(query: ChangedQuery, options?: CallOptions): Promise<ChangedResources>
  /** The prompts of the view; undefined when it cannot have any. */
  readonly prompts?: PromptView
  /** The tools of the view; undefined when it cannot have any. */
  readonly tools?: ToolView
  /** The skills of the view; undefined when it cannot have any. */
  readonly skills?: SkillView
  /** Whether anything in the view can notify about changes. */
  readonly live?: boolean
  /** Creates a subscription, which has no URIs at first. Undefined when nothing in the view can notify about changes. */
  subscribe?(listener: ChangeListener): Subscription
  /** The latest changes, for a client that asks from time to time. Undefined when nothing in the view can notify about changes. */
  readonly history?: ChangeHistory
  /** Closes the connection of a view of a remote server. Undefined for a view of a local catalog, which holds nothing open. */
  close?(): Promise<void>
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface ReadOptions extends CallOptions {
  /** Called before a large content is fetched. Resolves when there is memory for it. Default: no wait. */
  readonly room?: () => Promise<void>
  /** Whether the text is kept, so that a later read since its version can be answered with the difference. */
  readonly keep?: boolean
  /** Whether this read only tests whether another read can be answered. An audit leaves it out. */
  readonly probe?: boolean
  /**
   * Called before `room`, with the size of a large content in bytes and a function that reads parts of it. May return the content
   * as a stream of these parts, for which `room` is not called.
   */
  readonly large?:
    | ((
        size: number,
        read: (uri: string, options: CallOptions) => Promise<ReadResult>,
      ) => Promise<ReadResult | undefined>)
    | undefined
}

/** A notification of changes. */
export interface ViewChange {
  /** The subscribed URIs that changed. */
  readonly uris: readonly string[]
  /** Whether entries were added or removed, or their listed facts changed. */
  readonly listed: boolean
  /** The changed URIs below subscribed directories, as far as they are known and at most a hundred. */
  readonly below?: readonly string[]
  /** Whether prompts were added, removed or changed, for listeners of prompts. */
  readonly prompts?: boolean
  /** Whether tools were added, removed or changed, for listeners of tools. */
  readonly tools?: boolean
}

export type ChangeListener = (change: ViewChange) => void

/** The latest changes of a view, in the order in which they were noticed. */
export interface ChangeHistory {
  /**
   * Opens a reader of the changes that pass a filter. Access is checked at each call.
   *
   * @throws ResourceError `invalid` for a malformed URI or glob.
   */
  open(filter: ChangeFilter, options?: CallOptions): Promise<ChangeReader>
}

export interface ChangeFilter {
  /** A resource, a directory with everything in it, or the beginning of the addresses of mounts. Default: everything. */
  readonly uri?: string
  /** A glob of the paths in each mount. Default: every path. */
  readonly glob?: string
  /** Whether only changes of mounts that store records pass. Default false. */
  readonly records?: boolean
}

export interface ChangeReader {
  /** Returns the position after every change so far. Each change from then on is noticed. */
  now(options?: CallOptions): Promise<string>
  /** Returns the changes after a position: of each path the latest. */
  since(position: string, page: ChangePageQuery, options?: CallOptions): Promise<ChangePage>
  /**
   * Calls `hear` whenever there may be more changes that pass the filter. Returns a function that ends this.
   *
   * @throws ResourceError `invalid` (reason `too-many`) for one subscription too many.
   */
  follow(hear: () => void): () => void
}

export interface ChangePageQuery {
  readonly limit: number
  /** Maximum age of a change, in milliseconds. Older ones are left out, as a gap. Default: any age. */
  readonly maxAgeMs?: number
}

export interface ChangePage {
  readonly changes: readonly NoticedChange[]
  /** The position after this page. */
  readonly position: string
  /** Whether changes after the requested position may be missing: the log no longer has them, or does not know the position. */
  readonly gap: boolean
  /** Whether there are more changes after this page. */
  readonly more: boolean
}

export interface NoticedChange {
  /** Stable id, which says nothing about other changes. */
  readonly id: string
  /** URI of the changed resource, or, with a final `/`, of a directory in which anything may have changed. */
  readonly uri: string
  /** Whether the entry may have been added or removed, or its listed facts changed, since the position that was asked for. */
  readonly listed: boolean
  /** Time at which the change was noticed, in milliseconds since 1970. */
  readonly time: number
  /** Whether the mount of the resource stores records. */
  readonly records: boolean
  /** Returns the position after this change. */
  position(): string
}

/** The subscription of one client. A URI of a directory covers everything in it. */
export interface Subscription {
  /** The subscribed URIs, in the spelling of the client. */
  readonly uris: readonly string[]
  /**
   * Adds URIs. Resolves to those that can be listened to, once every later change of them is noticed. A URI that the principal may
   * not see, that is malformed, or whose source cannot notify is left out; the client cannot tell these cases apart.
   *
   * @throws ResourceError `invalid` (reason `too-many`) beyond a limit; then nothing is added.
   */
  add(uris: readonly string[], options?: CallOptions): Promise<readonly string[]>
  /** Subscribes to changes of the list of entries. Resolves to whether any source can notify about them. */
  addList(options?: CallOptions): Promise<boolean>
  /** Subscribes to changes of the list of prompts. Resolves to whether any source can notify about them. */
  addPrompts?(options?: CallOptions): Promise<boolean>
  /** Subscribes to changes of the list of tools. Resolves to whether any source can notify about them. */
  addTools?(options?: CallOptions): Promise<boolean>
  /** Removes a URI in the spelling that was added; if it was not added in this spelling, all spellings of it. */
  remove(uri: string): void
  close(): void
}

export interface ResourceTemplate extends Description {
  /** A complete URI template (RFC 6570). */
  readonly uriTemplate: string
  readonly name: string
}

/** How clients may cache an answer. */
export interface CacheHint {
  /** Maximum age of the answer, in milliseconds. */
  readonly ttlMs: number
  /** `public`: the answer for one principal may serve another. */
  readonly scope: 'public' | 'private'
}

export interface Page<T> {
  readonly items: readonly T[]
  /** Opaque cursor of the next page; undefined on the last page. An empty page need not be the last. */
  readonly nextCursor?: string
  readonly cache: CacheHint
  /** The addresses of the mounts that are missing from this page because they did not answer. */
  readonly unavailable?: readonly string[]
}

/** One content with its URI, in the spelling of the client if that is the requested one. */
export type ResourceContent = Content & { readonly uri: string; readonly name?: string }

export type CollectedContent = Exclude<ResourceContent, { readonly stream: unknown }>

/** Reads a stream to its end. Other contents are returned unchanged. */
export async function collectContent(content: ResourceContent): Promise<CollectedContent> {
  if (!('stream' in content)) return content
  const { stream, length: _, ...facts } = content
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return { ...facts, bytes: Buffer.concat(chunks) }
}

export interface ReadResult {
  readonly contents: readonly ResourceContent[]
  readonly cache: CacheHint
}

export interface ChangedResource {
  readonly uri: string
  /** Current version; of a deleted resource, its last known version. */
  readonly version?: string
  /** Version at the earlier time. Only for an updated resource. */
  readonly before?: string
}

/** The differences between two listings. */
export interface ChangedResources {
  /** Names the current state, for a later call. */
  readonly since: string
  /** Whether the earlier state is unknown, and with it the changes since then. */
  readonly unknown: boolean
  readonly created: readonly ChangedResource[]
  readonly updated: readonly ChangedResource[]
  readonly deleted: readonly ChangedResource[]
  /** Number of changes beyond `limit`, which are left out. */
  readonly more: number
  /** Number of resources of which it is not known whether they changed, because they have neither version nor time. */
  readonly unversioned: number
  /** The addresses of mounts that do not answer now. */
  readonly unavailable: readonly string[]
}

export interface ChangedQuery {
  /** The `since` of an earlier answer. Undefined: the answer only names the current state. */
  readonly since?: string
  /** Only resources at or below this URI. */
  readonly uri?: string
  readonly limit: number
}

/** The facts and the version of a resource. */
export interface ResourceState {
  readonly resource: Resource
  /** Opaque version. Different contents have different versions; for a directory, different names in it. */
  readonly version: string
  readonly cache: CacheHint
}

export interface ViewCompletionRequest {
  /** A template as `templates` returns it. */
  readonly uriTemplate: string
  readonly argument: { readonly name: string; readonly value: string }
  readonly arguments?: ReadonlyMap<string, string>
}

/** The prompts that one principal may use, by name. */
export interface PromptView {
  /** Whether any source can notify about changes of prompts. */
  readonly live?: boolean
  /** Returns a page of all prompts, in one stable order. */
  list(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<ListedPrompt>>
  /**
   * Returns the messages of a prompt. The resources in them are read with the access of the principal.
   *
   * @throws ResourceError `invalid` for an unknown prompt, a missing or unknown argument, and a missing resource of the prompt.
   */
  get(request: ViewPromptRequest, options?: CallOptions): Promise<FilledPrompt<PromptContent>>
  complete(request: PromptCompletionRequest, options?: CallOptions): Promise<Completion>
}

export type ListedPrompt = Omit<Prompt, 'path' | 'longName' | 'arguments'> & {
  readonly arguments?: readonly ListedArgument[]
}

export type ListedArgument = Pick<PromptArgument, 'name' | 'title' | 'description' | 'required'>

/** The content of one message of a prompt. `bytes` are those of an image or a sound. */
export type PromptContent =
  | { readonly text: string }
  | { readonly bytes: Uint8Array; readonly mimeType: string }
  | { readonly resource: ResourceContent }
  | { readonly link: Resource }

export interface ViewPromptRequest {
  readonly name: string
  readonly arguments?: ReadonlyMap<string, string>
}

export interface PromptCompletionRequest extends ViewPromptRequest {
  readonly argument: { readonly name: string; readonly value: string }
}

/** The tools that one principal may call, of all mounts. */
export interface ToolView {
  /** Whether any source can notify about changes of tools. */
  readonly live?: boolean
  /**
   * Returns all tools, in one stable order. Sources that do not answer are left out, and named.
   *
   * @param reserved Names that no tool may get.
   * @param options `soon`: sources that have not answered yet are left out after a short time.
   */
  list(reserved: ReadonlySet<string>, options?: CallOptions & { readonly soon?: boolean }): Promise<ListedTools>
}

export interface ListedTools {
  readonly tools: readonly Tool[]
  /** The addresses of the mounts whose tools are missing because they did not answer. */
  readonly unavailable?: readonly string[]
}

/** The skills that one principal may see: directories with a `SKILL.md` (SEP-2640). */
export interface SkillView {
  /** Returns a page of all skills, in one stable order. */
  list(query?: { readonly cursor?: string }, options?: CallOptions): Promise<Page<Skill>>
  /**
   * Returns the skill whose `SKILL.md` is at a URI.
   *
   * @throws ResourceError `not-found` for a URI without a skill that the principal may see: the error is the same for every reason.
   */
  get(uri: string, options?: CallOptions): Promise<{ readonly skill: Skill; readonly cache: CacheHint }>
}

export interface Skill {
  /** URI of the `SKILL.md` of the skill. */
  readonly uri: string
  /** The front matter of the `SKILL.md`, as it is written. It has at least `name` and `description`. */
  readonly frontmatter: Readonly<Record<string, unknown>>
  readonly resources: readonly SkillFile[]
}

export interface SkillFile {
  readonly uri: string
  /** SHA-256 of the bytes that a read of the file returns: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  /** Number of bytes that a read of the file returns. */
  readonly size: number
}

/** The MIME type of a directory, as in the shared-mime-info specification. */
export const directoryMimeType = 'inode/directory'
