import type { ServerResponse } from 'node:http'
import { followAbortFor } from '../../core/kit/abort.ts'
import { refuse } from '../exchange.ts'
import {
  eventsExtension,
  invalidParams,
  isAtLeast,
  isLogLevel,
  isObject,
  isRevision,
  modernRevision,
  type Notification,
  type Params,
  protocolKeys,
  type Request,
  type Revision,
  revisions,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'

export type MethodResult = Record<string, unknown>

/** Returns the revision that a message declares in its `_meta` (since 2026-07-28), unchecked; undefined in older messages. */
export function claimedRevision({ params }: { readonly params?: unknown }): unknown {
  return isObject(params) && isObject(params._meta) ? params._meta[protocolKeys.protocolVersion] : undefined
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
  if (claimed !== modernRevision || !offered.includes(modernRevision)) return unsupported(claimed, offered)
  if (!isObject(meta[protocolKeys.clientCapabilities]))
    return badMeta(protocolKeys.clientCapabilities, 'is not an object')
  const info = meta[protocolKeys.clientInfo] ?? undefined
  if (info !== undefined && !isClientName(info)) return badMeta(protocolKeys.clientInfo, 'has no name or version')
  const level = meta[protocolKeys.logLevel] ?? undefined
  if (level !== undefined && !isLogLevel(level)) return badMeta(protocolKeys.logLevel, 'is not a log level')
  return undefined
}

/** The name that a client declares: in `initialize`, or with each request (2026-07-28). Nothing proves it, so it grants no rights. */
export interface ClientName {
  readonly name: string
  readonly version: string
}

/** Returns the client that the `_meta` of a request declares. */
export function clientIn(meta: unknown): ClientName | undefined {
  const info = isObject(meta) ? meta[protocolKeys.clientInfo] : undefined
  return isClientName(info) ? { name: info.name, version: info.version } : undefined
}

export function isClientName(info: unknown): info is ClientName {
  return isObject(info) && typeof info.name === 'string' && typeof info.version === 'string'
}

/** The capabilities that a server declares, by name, each with its supported features. */
type Capabilities = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** The contents of the results of `initialize` and `server/discover`. */
export interface Introduction {
  readonly server: ServerInfo
  readonly capabilities: Capabilities
  readonly instructions?: string | undefined
}

/** The facts from `initialize` that a server keeps. */
export interface Handshake {
  readonly revision: Revision
  readonly client: ClientName
}

/** Maximum length of a client's name and version, in characters. Longer ones are cut. */
const maxNameLength = 256

/** The newest revision that begins with `initialize`. */
const newestLegacy = revisions.find((revision) => revision !== modernRevision) ?? '2025-11-25'

/** Returns why the params of `initialize` are refused (lifecycle, initialization); undefined when they are valid. */
export function handshakeFault({ protocolVersion, capabilities, clientInfo }: Params): WireError | undefined {
  if (typeof protocolVersion !== 'string') return invalidParams('The param protocolVersion is not a string.')
  if (!isObject(capabilities)) return invalidParams('The param capabilities is not an object.')
  if (!isClientName(clientInfo)) return invalidParams('The param clientInfo has no name or version.')
  return undefined
}

/**
 * Negotiates a revision: the requested one, or else the newest that begins with `initialize`. Only the name and version of the client are
 * kept.
 */
export function negotiateHandshake({ protocolVersion, clientInfo }: Params): Handshake {
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  const shorten = (value: unknown) => String(value).slice(0, maxNameLength)
  const revision = isRevision(protocolVersion) && protocolVersion !== modernRevision ? protocolVersion : newestLegacy
  return { revision, client: { name: shorten(name), version: shorten(version) } }
}

/** Returns the result of `initialize`, without the members that are newer than the revision. */
export function initializeResult({ revision }: Handshake, introduction: Introduction): MethodResult {
  const { server, capabilities, instructions } = introduction
  const { title, ...info } = server
  const { extensions: declared, events: _events, ...known } = capabilities
  const { [eventsExtension]: _, ...extensions } = declared ?? {}
  const { completions: _completions, ...older } = known
  // 2026-07-28 declares extensions in `capabilities.extensions`; clients of 2025-11-25 look there too (SEP-2133).
  const newest = declared === undefined || !isAtLeast(revision, '2025-11-25') ? known : { ...known, extensions }
  return {
    protocolVersion: revision,
    capabilities: isAtLeast(revision, '2025-03-26') ? newest : older,
    serverInfo: title !== undefined && isAtLeast(revision, '2025-06-18') ? server : info,
    ...(instructions === undefined || instructions === '' ? {} : { instructions }),
  }
}

/** Returns the result of `server/discover` (2026-07-28). It names every revision that is served, not only the newest. */
export function discoverResult({ capabilities, instructions }: Introduction): MethodResult {
  return {
    supportedVersions: [...revisions],
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
  }
}

function badMeta(key: string, fault: string): WireError {
  return invalidParams(`In the _meta of the params, ${key} ${fault}.`)
}

function unsupported(requested: string, offered: readonly Revision[] = revisions): WireError {
  return {
    code: wireErrorCodes.unsupportedVersion,
    message: 'Unsupported protocol version',
    data: { supported: [...offered], requested: requested.slice(0, 64) },
  }
}

export const immediateMethods: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'ping'])

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
 * Adds the members to a result that 2026-07-28 requires: `resultType`, the server's name in `_meta`, and on a cacheable result `ttlMs` and
 * `cacheScope`, which are 0 and `private` unless the method has set them. Results of older revisions stay unchanged.
 */
export function withRequiredMembers(
  method: string,
  result: MethodResult,
  revision: Revision,
  server: ServerInfo,
): MethodResult {
  if (revision !== modernRevision) return result
  return {
    ...(cacheable.has(method) ? { ttlMs: 0, cacheScope: 'private' } : {}),
    resultType: 'complete',
    ...result,
    _meta: { [protocolKeys.serverInfo]: server, ...(isObject(result._meta) ? result._meta : {}) },
  }
}

/** A catalog that may still be opening. */
export interface OpeningCatalog {
  readonly opened: unknown
  /** Waits until the catalog is open. Throws ResourceError `unavailable` when it could not be opened. */
  whenOpen(signal?: AbortSignal): Promise<unknown>
}

export function untilReadyFor(opening: OpeningCatalog, method: string): Promise<unknown> | undefined {
  if (opening.opened !== undefined || immediateMethods.has(method)) return undefined
  return opening.whenOpen()
}

/** Waits until the catalog is open. Resolves to false when it is not open in time, or cannot be opened: the request is then answered. */
export async function waitUntilOpen(
  opening: OpeningCatalog | undefined,
  response: ServerResponse,
  timeoutMs: number,
): Promise<boolean> {
  if (opening === undefined || opening.opened !== undefined) return true
  const closeController = new AbortController()
  response.once('close', () => closeController.abort())
  const waiting = followAbortFor(closeController.signal, timeoutMs)
  return opening
    .whenOpen(waiting.signal)
    .then(
      () => true,
      () => {
        refuse(response, 503, 'The server is not ready yet. Try again later.', { 'Retry-After': '5' })
        return false
      },
    )
    .finally(waiting.release)
}
