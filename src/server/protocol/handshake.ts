import type { ClientName } from './clients.ts'
import { invalidParams, type WireError } from './errors.ts'
import { isObject } from './messages.ts'
import type { Result } from './method.ts'
import type { Params } from './params.ts'
import type { ServerInfo } from './results.ts'
import { isRevision, modern, type Revision, revisions, since } from './revisions.ts'

/** The capabilities that a server declares, by name, each with its supported features. */
export type Capabilities = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** The contents of the results of `initialize` and `server/discover`. */
export interface Introduction {
  readonly server: ServerInfo
  readonly capabilities: Capabilities
  readonly instructions?: string | undefined
}

/** The facts from `initialize` that a server keeps for as long as the client stays. */
export interface Handshake {
  readonly revision: Revision
  readonly client: ClientName
}

/** Maximum length of a client's name and version, in characters. Longer ones are cut. */
const maxNameLength = 256

/** The newest revision that begins with `initialize`. */
const newestLegacy = revisions.find((revision) => revision !== modern) ?? '2025-11-25'

/** Returns why the params of `initialize` are refused (lifecycle, initialization); undefined when they are valid. */
export function handshakeFault({ protocolVersion, capabilities, clientInfo }: Params): WireError | undefined {
  if (typeof protocolVersion !== 'string') return invalidParams('The param protocolVersion is not a string.')
  if (!isObject(capabilities)) return invalidParams('The param capabilities is not an object.')
  if (!isObject(clientInfo) || typeof clientInfo.name !== 'string' || typeof clientInfo.version !== 'string')
    return invalidParams('The param clientInfo has no name or version.')
  return undefined
}

/**
 * Negotiates a revision: the requested one, or else the newest that begins with `initialize`. 2026-07-28 is never negotiated
 * here, since its clients do not call `initialize`. Only the name and version of the client are kept: the server sends no
 * requests to clients, so it needs none of their capabilities, and a session must not hold a megabyte of them.
 */
export function shakeHands({ protocolVersion, clientInfo }: Params): Handshake {
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  const cut = (value: unknown) => String(value).slice(0, maxNameLength)
  const revision = isRevision(protocolVersion) && protocolVersion !== modern ? protocolVersion : newestLegacy
  return { revision, client: { name: cut(name), version: cut(version) } }
}

/** Returns the result of `initialize`, without the members that are newer than the revision. */
export function initializeResult({ revision }: Handshake, introduction: Introduction): Result {
  const { server, capabilities, instructions } = introduction
  const { title, ...info } = server
  const { extensions, ...known } = capabilities
  const { completions: _, ...older } = known
  // Extensions are declared there since 2026-07-28; clients of the revision before look there too (SEP-2133).
  const newest = extensions === undefined || !since(revision, '2025-11-25') ? known : { ...known, extensions }
  return {
    protocolVersion: revision,
    capabilities: since(revision, '2025-03-26') ? newest : older,
    serverInfo: title !== undefined && since(revision, '2025-06-18') ? server : info,
    ...(instructions === undefined || instructions === '' ? {} : { instructions }),
  }
}

/** Returns the result of `server/discover` (2026-07-28). It names every revision that is served, not only the newest. */
export function discoverResult({ capabilities, instructions }: Introduction): Result {
  return {
    supportedVersions: [...revisions],
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
  }
}
