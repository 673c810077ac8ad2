import type { Context } from './provider.ts'
import type { Resource } from './view.ts'

/** A JSON value whose members are known by name. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Something that can be done beside reading: what MCP calls a tool. Whoever may not do it is not given it. */
export interface Tool {
  /** Of the characters A-Z a-z 0-9 _ - and ., at most 128. */
  readonly name: string
  readonly title?: string
  /** For a model: what it does, and when it is of use. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments, an object. `call` judges them itself. */
  readonly inputSchema: JsonObject
  /** JSON Schema of `structured`. */
  readonly outputSchema?: JsonObject
  /** What a host tells a person before it is called. */
  readonly annotations?: {
    readonly readOnly?: boolean
    readonly destructive?: boolean
    readonly idempotent?: boolean
    readonly openWorld?: boolean
  }
  /** Throws only ResourceError: what is `invalid` is told to the model, which can do better then. */
  call(given: JsonObject, context: Context): Promise<ToolAnswer>
}

/** What a call came to. */
export interface ToolAnswer {
  /** For a model. */
  readonly text: string
  readonly structured?: JsonObject
  /** What it made or found, to be read. */
  readonly resources?: readonly ToolLink[]
  /** What is shown beside the text. */
  readonly blocks?: readonly ToolBlock[]
}

/** A resource that an answer leads to. */
export interface ToolLink {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

/** Something that is no text, in base64; a resource with its text; or a link to one, among other blocks. */
export type ToolBlock =
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly uri: string; readonly mimeType: string; readonly blob: string }
  | { readonly type: 'embedded'; readonly resource: EmbeddedText }
  | { readonly type: 'link'; readonly resource: Resource }

/** A resource as text, with what is known of it. */
export interface EmbeddedText extends Pick<Resource, 'uri' | 'mimeType' | 'audience' | 'priority' | 'modified'> {
  readonly text: string
}

/** A place over HTTP that takes JSON. Whoever may not post there is told that there is no such place. */
export interface Posting {
  /** Throws only ResourceError. */
  post(
    value: unknown,
    context: Context,
  ): Promise<{
    readonly answer: JsonObject
    /** Whether something came to be. */
    readonly created: boolean
    /** Its URI, where it is one thing. */
    readonly location?: string
  }>
}
