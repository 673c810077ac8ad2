import { codes, invalidParams, type WireError } from './errors.ts'
import { isLogLevel, protocolKeys } from './keys.ts'
import { isObject, type Notification, type Request } from './messages.ts'
import { modern, type Revision, revisions } from './revisions.ts'

/** Returns the revision that a message declares in its `_meta` (since 2026-07-28); undefined in older messages. */
export function claimedRevision({ params }: Request | Notification): unknown {
  return isObject(params?._meta) ? params._meta[protocolKeys.protocolVersion] : undefined
}

/**
 * Returns what is wrong with the `_meta` of a message that declares a revision (2026-07-28, basic/lifecycle).
 *
 * @param offered The revisions that the transport serves. Default all.
 */
export function envelopeFault(
  { params }: Request | Notification,
  offered: readonly Revision[] = revisions,
): WireError | undefined {
  const meta = isObject(params?._meta) ? params._meta : {}
  const claimed = meta[protocolKeys.protocolVersion]
  if (typeof claimed !== 'string') return badMeta(protocolKeys.protocolVersion, 'is not a string')
  if (claimed !== modern || !offered.includes(modern)) return unsupported(claimed, offered)
  if (!isObject(meta[protocolKeys.clientCapabilities]))
    return badMeta(protocolKeys.clientCapabilities, 'is not an object')
  const info = meta[protocolKeys.clientInfo]
  if (info !== undefined && (!isObject(info) || typeof info.name !== 'string' || typeof info.version !== 'string'))
    return badMeta(protocolKeys.clientInfo, 'has no name or version')
  const level = meta[protocolKeys.logLevel]
  if (level !== undefined && !isLogLevel(level)) return badMeta(protocolKeys.logLevel, 'is not a log level')
  return undefined
}

function badMeta(key: string, fault: string): WireError {
  return invalidParams(`In the _meta of the params, ${key} ${fault}.`)
}

export function unsupported(requested: string, offered: readonly Revision[] = revisions): WireError {
  return {
    code: codes.unsupportedVersion,
    message: 'Unsupported protocol version',
    data: { supported: [...offered], requested: requested.slice(0, 64) },
  }
}
