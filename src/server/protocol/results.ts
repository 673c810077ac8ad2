import { isObject } from '../messages.ts'
import { modern, type Revision } from '../revisions.ts'
import { protocolKeys } from './keys.ts'
import type { Result } from './method.ts'

/** The name and version of the server, as `initialize` and `_meta` carry them. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly title?: string
}

/** The methods whose results say how long they may be cached (2026-07-28, server/utilities/caching). */
const cacheable = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'server/discover',
])

/**
 * Adds to a result the members that 2026-07-28 requires of it: `resultType`, the server's name in `_meta`, and on a cacheable
 * result `ttlMs` and `cacheScope`, which are 0 and `private` unless the method has set them. Older revisions have none of
 * these members; their results stay as they are.
 */
export function completeResult(method: string, result: Result, revision: Revision, server: ServerInfo): Result {
  if (revision !== modern) return result
  const cache = cacheable.has(method) ? { ttlMs: 0, cacheScope: 'private' } : {}
  const meta = isObject(result._meta) ? result._meta : {}
  return { ...cache, resultType: 'complete', ...result, _meta: { [protocolKeys.serverInfo]: server, ...meta } }
}
