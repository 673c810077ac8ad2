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
