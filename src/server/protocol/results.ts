import { protocolKeys } from './keys.ts'
import { isObject } from './messages.ts'
import type { Result } from './method.ts'
import { modern, type Revision } from './revisions.ts'

/** Name and version of the server, as `initialize` and `_meta` contain them. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly title?: string
}

/** Methods whose results declare how long they may be cached (2026-07-28, server/utilities/caching). */
const cacheable = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'skills/list',
  'skills/get',
  'server/discover',
])

/**
 * Adds the members to a result that 2026-07-28 requires: `resultType`, the server's name in `_meta`, and on a cacheable result
 * `ttlMs` and `cacheScope`, which are 0 and `private` unless the method has set them. Results of older revisions have none of
 * these members, and stay unchanged.
 */
export function completeResult(method: string, result: Result, revision: Revision, server: ServerInfo): Result {
  if (revision !== modern) return result
  const complete: Result = cacheable.has(method)
    ? { ttlMs: 0, cacheScope: 'private', resultType: 'complete' }
    : { resultType: 'complete' }
  // Spreading both objects would be slower.
  for (const name of Object.keys(result)) complete[name] = result[name]
  const meta: Record<string, unknown> = { [protocolKeys.serverInfo]: server }
  complete._meta = isObject(result._meta) ? Object.assign(meta, result._meta) : meta
  return complete
}
