import { createHash } from 'node:crypto'
import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'
import { nameOfAddress, parseAddress } from '../../core/uri.ts'

/** Facts for fetching the prompts or tools of a server. */
export interface ListFacts {
  /** Mark that this process puts on everything it relays. */
  readonly mark: string
  /** Address of the mount. */
  readonly address: string | undefined
  readonly log: Log
  readonly signal: AbortSignal
}

/** Maximum length of the name of a prompt or a tool, in characters. */
export const maxNameLength = 256

/**
 * Returns the path below a directory for a name, for access rules. A name that no path may hold gets its hash.
 *
 * @param directory Begins with `=`, as no path of a URI does, and ends in `/`.
 */
export function pathOfName(directory: string, name: string): string {
  const path = `${directory}${name}`
  const isPlain = isPath(path) && !name.startsWith('=') && !path.endsWith('/')
  return isPlain ? path : `${directory}=${createHash('sha256').update(name).digest('base64url')}`
}

/** Returns the name with the name of the mount before it, for when another has the name already. */
export function longNameOf(address: string | undefined, name: string): string {
  const mount = address === undefined ? 'remote' : nameOfAddress(parseAddress(address))
  return `${mount.replace(/[^A-Za-z0-9-]+/g, '_')}_${name}`
}
