import type { Resource } from '../core/entry.ts'
import type { ResourceError } from '../core/errors.ts'
import type { ToolHints, ToolProgress } from '../core/tool.ts'
import type { ParamHeader } from '../core/tool-headers.ts'
import type { CallOptions, PromptContent, View } from '../core/view.ts'
import type { WireObject } from './wire.ts'

/** `fault` of an error: the structured result of a tool breaks the schema that the server declares. */
export const outputFault = 'output'

export interface UrlTarget {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface CommandTarget {
  readonly command: string
  readonly args?: readonly string[]
  /** Variables added to a few harmless ones (PATH, HOME, …). The command gets no other variable of this process's environment. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export type ServerTarget = UrlTarget | CommandTarget

export interface RemoteServerInfo {
  readonly name?: string
  readonly version?: string
  readonly capabilities: readonly string[]
}

export interface RemoteView extends Omit<View, 'tools'> {
  /** The tools of the server. Undefined when the server declares none. */
  readonly remoteTools?: RemoteTools
  /**
   * Resolves when the connection is over for good, with the reason: the view was closed, the server refuses this client, the connection
   * ended while nothing was listened to, or it was lost too often.
   */
  readonly over: Promise<ResourceError>
  readonly about: RemoteServerInfo
  /** Whether the server supports reading directories; undefined until that is known. */
  readonly readsDirectories: boolean | undefined
  /** Whether the server is known to be a hikidashi server, whose list contains everything in its directories. */
  readonly isOurs: boolean
  close(): Promise<void>
}

export interface RequestOptions extends CallOptions {
  /** Receives the progress that the server reports. Each report restarts the time-out. */
  readonly onProgress?: (progress: ToolProgress) => void
  /** Headers of the request, besides those of the target. Only for HTTP. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface RemoteTool extends Pick<Resource, 'title' | 'description' | 'icons' | 'meta'> {
  readonly name: string
  readonly inputSchema: WireObject
  readonly outputSchema?: WireObject
  readonly annotations?: ToolHints
  /** The arguments that a call repeats in headers. */
  readonly paramHeaders?: readonly ParamHeader[]
}

/** The result of a tool call. Blocks of unknown kinds are left out. */
export interface RemoteToolResult {
  readonly content: readonly PromptContent[]
  readonly structured?: WireObject
  readonly failed: boolean
}

export interface RemoteTools {
  list(
    query: { readonly cursor?: string },
    options?: CallOptions,
  ): Promise<{ readonly items: readonly RemoteTool[]; readonly nextCursor?: string }>
  /** Calls a tool as it was listed. @throws ResourceError `internal` for a structured result that breaks its schema. */
  call(
    tool: Pick<RemoteTool, 'name' | 'paramHeaders' | 'outputSchema'>,
    given: WireObject,
    options?: RequestOptions,
  ): Promise<RemoteToolResult>
}
