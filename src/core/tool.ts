import type { Icon, Resource } from './entry.ts'
import type { Context, ToolHints, ToolLink, ToolProgress } from './provided-tool.ts'

export type { ToolLink } from './provided-tool.ts'

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>

/** A tool of MCP: an action beyond reading. Principals that may not use it never see it. */
export interface Tool {
  /** Of the characters A-Z a-z 0-9 _ - and ., at most 128. */
  readonly name: string
  readonly title?: string
  /** Explains to a model what the tool does, and when it is useful. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments, an object. `call` validates them itself. */
  readonly inputSchema: JsonObject
  /** JSON Schema of `structured`. */
  readonly outputSchema?: JsonObject
  /** Hints that a host shows to a person before a call. */
  readonly annotations?: ToolHints
  readonly icons?: readonly Icon[]
  /** Members of `_meta` in the answer. JSON values. */
  readonly meta?: JsonObject
  /** The page that a host with apps shows for the tool. A client without the tool cannot read it. */
  readonly app?: ToolApp
  /** Runs the tool. Throws only ResourceError: the model sees `invalid` errors, so that it can correct its call. */
  call(given: JsonObject, context: Context, report?: (progress: ToolProgress) => void): Promise<ToolAnswer>
}

/** A page of HTML that a host shows in a sandbox (MCP Apps, SEP-1865). It loads nothing and asks only through the host. */
export interface ToolApp {
  /** Begins with `ui://`. */
  readonly uri: string
  /** Returns the page. Throws only ResourceError. */
  html(): Promise<string>
}

/** The result of a call. */
export interface ToolAnswer {
  /** Text for a model, the first block. Empty: the answer consists of the blocks alone. */
  readonly text: string
  readonly structured?: JsonObject
  /** Resources that the call created or found. */
  readonly resources?: readonly ToolLink[]
  /** Blocks shown besides the text. */
  readonly blocks?: readonly ToolBlock[]
  /** Whether the tool reports a failure. */
  readonly failed?: boolean
}

/** A block of an answer: a text, an image or a sound in base64, a resource in base64, a resource as text, or a link. */
export type ToolBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly uri: string; readonly mimeType: string; readonly blob: string }
  | { readonly type: 'embedded'; readonly resource: EmbeddedText }
  | { readonly type: 'link'; readonly resource: Resource }

/** A resource as text, with its known facts. */
export interface EmbeddedText extends Pick<Resource, 'uri' | 'mimeType' | 'audience' | 'priority' | 'modified'> {
  readonly text: string
}

/** An HTTP endpoint that accepts JSON. A principal that may not post there gets the same answer as for a missing endpoint. */
export interface Posting {
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
