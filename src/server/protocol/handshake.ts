import type { ClientName } from '../clients.ts'
import { invalidParams, type WireError } from '../errors.ts'
import { isObject } from '../messages.ts'
import type { Params } from '../params.ts'
import { isRevision, modern, type Revision, revisions, since } from '../revisions.ts'
import type { Result } from './method.ts'
import type { ServerInfo } from './results.ts'

/** The capabilities that a server declares: their names, and what it supports of each. */
export type Capabilities = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** What `initialize` and `server/discover` say of a server. */
export interface Introduction {
  readonly server: ServerInfo
  readonly capabilities: Capabilities
  readonly instructions?: string | undefined
}

/** What a server keeps of `initialize` for as long as the client stays. */
export interface Handshake {
  readonly revision: Revision
  readonly client: ClientName
}

/** The longest name and version of a client that are kept, in characters. */
const maxNameLength = 256

/** The newest revision that begins with `initialize`. */
const newestLegacy = revisions.find((revision) => revision !== modern) ?? '2025-11-25'

/** Why the params of `initialize` are refused (lifecycle, initialization); `undefined` where they are in order. */
export function handshakeFault({ protocolVersion, capabilities, clientInfo }: Params): WireError | undefined {
  if (typeof protocolVersion !== 'string') return invalidParams('The param protocolVersion is not a string.')
  if (!isObject(capabilities)) return invalidParams('The param capabilities is not an object.')
  if (!isObject(clientInfo) || typeof clientInfo.name !== 'string' || typeof clientInfo.version !== 'string')
    return invalidParams('The param clientInfo has no name or version.')
  return undefined
}

/**
 * Agrees on a revision: the one that the client asks for, or else the newest that begins with `initialize`. 2026-07-28 is never
 * agreed on here, since its clients do not call `initialize`. Of the client only its name and version are kept: the server
 * asks clients for nothing, so it needs none of their capabilities, and a session must not keep a megabyte of them.
 */
export function shakeHands({ protocolVersion, clientInfo }: Params): Handshake {
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  const cut = (value: unknown) => String(value).slice(0, maxNameLength)
  const revision = isRevision(protocolVersion) && protocolVersion !== modern ? protocolVersion : newestLegacy
  return { revision, client: { name: cut(name), version: cut(version) } }
}

/** The result of `initialize`, without the members that are newer than the revision. */
export function initializeResult({ revision }: Handshake, introduction: Introduction): Result {
  const { server, capabilities, instructions } = introduction
  const { title, ...info } = server
  const { completions: _, ...older } = capabilities
  return {
    protocolVersion: revision,
    capabilities: since(revision, '2025-03-26') ? capabilities : older,
    serverInfo: title !== undefined && since(revision, '2025-06-18') ? server : info,
    ...(instructions === undefined || instructions === '' ? {} : { instructions }),
  }
}

/** The result of `server/discover` (2026-07-28). It names every revision that is served, not the newest alone. */
export function discoverResult({ capabilities, instructions }: Introduction): Result {
  return {
    supportedVersions: [...revisions],
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
  }
}
