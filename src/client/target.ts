import type { ResourceError } from '../core/errors.ts'
import type { View } from '../core/view.ts'
import type { RemoteTools } from './remote-tools.ts'

/** An MCP server behind a URL. The headers go with every request, and never to another origin. */
export interface UrlTarget {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** An MCP server that is started as a child process and spoken to over its standard input and output. */
export interface CommandTarget {
  readonly command: string
  readonly args?: readonly string[]
  /** Variables added to a few harmless ones (PATH, HOME, …). No other variable of this process's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** The address of a server: a URL, or a command that starts it. */
export type Target = UrlTarget | CommandTarget

/** Name, version and capabilities of a server, as it declares them. */
export interface About {
  readonly name?: string
  readonly version?: string
  readonly capabilities: readonly string[]
}

/** A server as a view. */
export interface RemoteView extends Omit<View, 'tools'> {
  /** Its tools. Undefined when it declares none. */
  readonly remoteTools?: RemoteTools
  /**
   * Resolves when the connection is over for good, with the reason: the view was closed, the server refuses this client, or its
   * command has ended. A connection that is lost while anything is listened to is reopened, and is not over.
   */
  readonly over: Promise<ResourceError>
  readonly about: About
  /** Whether the server supports reading directories; undefined until that is known. */
  readonly readsDirectories: boolean | undefined
  /** Whether it is known to be a hikidashi server: it lists everything that its directories hold. */
  readonly isOurs: boolean
  close(): Promise<void>
}
