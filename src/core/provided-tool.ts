import type { Content, Entry, Icon } from './entry.ts'

/** The caller of an operation. `id` is unique per caller; access rules name `roles`. */
export interface Principal {
  readonly id: string
  readonly roles: readonly string[]
  /** The OAuth scopes that its token grants, including those that a broader one implies. Undefined when no token limits it. */
  readonly scopes?: readonly string[] | undefined
}

/**
 * Requests with the same arrival had all arrived before the first of them was handled. So a source that looks whether something has changed while
 * it answers one of them need not look again for the others. Compared by identity.
 */
export type Arrival = object

/** Context of every call: the caller, and the signal that aborts it. A provider stops its work soon after the abort. */
export interface Context {
  readonly principal: Principal
  readonly signal: AbortSignal
  /**
   * Maximum size of the content at the moment, in bytes. For a larger one, a provider that knows the size before it fetches the
   * content throws {@link later}; the catalog then retries when there is room. Other providers may ignore it.
   */
  readonly most?: number
  /** Whether only the content is needed: facts that need a look-up of their own may be left out. */
  readonly bare?: boolean
  /** The arrival of the request, when it is the first thing that its client has asked for. See {@link Arrival}. */
  readonly arrival?: Arrival
  /**
   * Whether the caller may see another path of the same source, by the access rules. A source that serves one entry under several
   * paths (by a symbolic link) checks each path except the requested one; if the caller may not see one of them, the entry must
   * look missing. Undefined: every path may be seen.
   */
  readonly allows?: (path: string) => boolean
}

/** A tool of a provider: an action beyond reading. */
export interface ProvidedTool {
  /** Path for the access rules: a principal that may see it may call the tool. */
  readonly path: string
  /** Of the characters A-Z a-z 0-9 _ - and ., at most 128. */
  readonly name: string
  /** Name by which it is called when another tool has its name. */
  readonly longName: string
  readonly title?: string
  readonly description?: string
  /** JSON Schema of the arguments, an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** JSON Schema of `structured`. */
  readonly outputSchema?: Readonly<Record<string, unknown>>
  /** Hints that a host shows to a person before a call. */
  readonly annotations?: ToolHints
  readonly icons?: readonly Icon[]
  /** Members of `_meta` in the answer. JSON values. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** Hints about the effects of a tool. */
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

/** A link to a resource in the answer of a tool. */
export interface ToolLink {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

/** The result of a call. */
export interface ToolOutcome {
  readonly parts: readonly ToolPart[]
  readonly structured?: Readonly<Record<string, unknown>>
  /** Whether the tool reports a failure. */
  readonly failed?: boolean
}

/** How far a call is. `progress` grows. */
export interface ToolProgress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

export interface ToolRequest {
  readonly path: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly report?: (progress: ToolProgress) => void
}

/** The tools of a provider. */
export interface Tools {
  /** Returns all tools, in path order. */
  list(context: Context): Promise<readonly ProvidedTool[]>
  /** Runs a tool, once: nothing repeats it. Throws `not-found` when there is no tool at the path. */
  call(request: ToolRequest, context: Context): Promise<ToolOutcome>
}
