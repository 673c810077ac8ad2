import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server'
import { codes, type WireError } from './errors.ts'
import { isObject, type Notification, type Request } from './messages.ts'
import { modern, revisions } from './revisions.ts'

/** The revision that a message says it speaks, in the `_meta` that 2026-07-28 brought; `undefined` in older messages. */
export function claimedRevision({ params }: Request | Notification): unknown {
  return isObject(params?._meta) ? params._meta[PROTOCOL_VERSION_META_KEY] : undefined
}

/** What is wrong with the `_meta` of a message that claims a revision (2026-07-28, basic/lifecycle). */
export function envelopeFault({ params }: Request | Notification): WireError | undefined {
  const meta = isObject(params?._meta) ? params._meta : {}
  const claimed = meta[PROTOCOL_VERSION_META_KEY]
  if (typeof claimed !== 'string') return badMeta(PROTOCOL_VERSION_META_KEY, 'is not a string')
  if (claimed !== modern) return unsupported(claimed)
  if (!isObject(meta[CLIENT_CAPABILITIES_META_KEY])) return badMeta(CLIENT_CAPABILITIES_META_KEY, 'is not an object')
  const info = meta[CLIENT_INFO_META_KEY]
  if (info !== undefined && (!isObject(info) || typeof info.name !== 'string' || typeof info.version !== 'string'))
    return badMeta(CLIENT_INFO_META_KEY, 'has no name or version')
  return undefined
}

function badMeta(key: string, fault: string): WireError {
  return { code: codes.invalidParams, message: `In the _meta of the params, ${key} ${fault}.` }
}

export function unsupported(requested: string): WireError {
  return {
    code: codes.unsupportedVersion,
    message: 'Unsupported protocol version',
    data: { supported: [...revisions], requested: requested.slice(0, 64) },
  }
}
