/** The protocol revisions that are served, newest first. The first is stateless; the others begin with `initialize`. */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const

export type Revision = (typeof revisions)[number]

/** The revision without sessions, in which every request declares its revision in `_meta`. */
export const modern = '2026-07-28' satisfies Revision

/** The revisions that begin with `initialize`: all that the HTTP+SSE transport of 2024-11-05 serves. */
export const legacyRevisions: readonly Revision[] = revisions.filter((revision) => revision !== modern)

/** The assumed revision of a request that declares none (2025-06-18, basic/transports). */
export const assumed = '2025-03-26' satisfies Revision

export function isRevision(text: unknown): text is Revision {
  return (revisions as readonly unknown[]).includes(text)
}

/** Whether a revision is at least as new as another. Revisions are dates. */
export function since(revision: Revision, first: Revision): boolean {
  return revision >= first
}

/** Whether a revision has JSON-RPC batches: 2025-03-26 requires them, 2025-06-18 removed them. */
export function hasBatches(revision: Revision): boolean {
  return revision <= '2025-03-26'
}

/** The keys of `_meta` that the specification defines (2026-07-28, basic/index, `_meta`). */
export const protocolKeys = {
  /** The revision that a request speaks. */
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  /** The least severe log message that the client wants during a request. */
  logLevel: 'io.modelcontextprotocol/logLevel',
  /** The server's name and version, in each result. */
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

/** The levels of a log message, least severe first (RFC 5424, section 6.2.1). */
const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export type LogLevel = (typeof logLevels)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return (logLevels as readonly unknown[]).includes(value)
}

/** Whether a request with this `_meta` wants messages of a level. Without a level in it, it wants none. */
export function wantsLog(meta: Readonly<Record<string, unknown>>, level: LogLevel): boolean {
  const least = meta[protocolKeys.logLevel]
  return isLogLevel(least) && logLevels.indexOf(level) >= logLevels.indexOf(least)
}
