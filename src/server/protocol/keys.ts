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
