import type { ResourceError } from '../core/errors.ts'
import type { View } from '../core/view.ts'

/** An MCP server behind a URL. The headers go with every request, and never to another origin. */
export interface UrlTarget {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** An MCP server that is started as a child process and spoken to over its standard input and output. */
export interface CommandTarget {
  readonly command: string
  readonly args?: readonly string[]
  /** Added to a few harmless variables (PATH, HOME, …); nothing else of this process's environment is handed on. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** Where a server is: behind a URL, or a command that starts it. */
export type Target = UrlTarget | CommandTarget

/** What a server says of itself: its name and version, and which capabilities it has. */
export interface About {
  readonly name?: string
  readonly version?: string
  readonly capabilities: readonly string[]
}

/** A server as a view. */
export interface RemoteView extends View {
  /**
   * Resolves when the connection is over for good, with the reason: the view was closed, the server refuses this client, or
   * its command has ended. A connection that is lost while something is listened to is opened anew, and is not over.
   */
  readonly over: Promise<ResourceError>
  readonly about: About
  /** Whether the server reads directories, as far as that is known. */
  readonly readsDirectories: boolean | undefined
  /** Whether it is a server of ours, as far as that is known: what is in its directories, it lists. */
  readonly isOurs: boolean
  close(): Promise<void>
}
