import type { Resource } from '../core/entry.ts'
import type { ToolHints, ToolProgress } from '../core/provided-tool.ts'
import type { CallOptions, PromptContent } from '../core/view.ts'
import type { Wire } from './wire.ts'

/** Options of one request. */
export interface RequestOptions extends CallOptions {
  /** Receives the progress that the server reports. Each report begins the time-out anew. */
  readonly onProgress?: (progress: ToolProgress) => void
}

/** A tool as a server lists it. */
export interface RemoteTool extends Pick<Resource, 'title' | 'description' | 'icons' | 'meta'> {
  readonly name: string
  readonly inputSchema: Wire
  readonly outputSchema?: Wire
  readonly annotations?: ToolHints
}

/** The result of a call. Blocks of unknown kinds are left out. */
export interface RemoteToolResult {
  readonly content: readonly PromptContent[]
  readonly structured?: Wire
  readonly failed: boolean
}

/** The tools of a server. */
export interface RemoteTools {
  list(
    query: { readonly cursor?: string },
    options?: CallOptions,
  ): Promise<{ readonly items: readonly RemoteTool[]; readonly nextCursor?: string }>
  call(name: string, given: Wire, options?: RequestOptions): Promise<RemoteToolResult>
}
