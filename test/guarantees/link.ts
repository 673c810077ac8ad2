export type Json = Readonly<Record<string, unknown>>

/** A message of JSON-RPC, as far as a client looks into it. */
export interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Json
  readonly result?: Json
  readonly error?: { readonly code: number; readonly data?: Json }
}

/** Takes what a stream says, and how it ended unless the client ended it. */
export interface Ear {
  hear(message: Message): void
  ended(how: 'result' | 'cut'): void
}

/** The two revisions' ways of being told: many streams, or one for all. */
export interface Line {
  close(): void
}

/** A connection of one client to the server, of one revision and transport. */
export interface Link {
  readonly modern: boolean
  /** Whether the connection may be lost while the client goes on: a session over HTTP. */
  readonly resumable: boolean
  /** Whether what the server says comes in one order: a pipe. */
  readonly ordered: boolean
  /** Asks; rejects when the connection is gone. */
  ask(method: string, params: Json): Promise<Message>
  /** Opens a `subscriptions/listen`, or what a session is told on (`notifications` is not looked at then). */
  listen(notifications: Json, ear: Ear): Line
  /** Loses the connection that the session is told on, and goes on with another. */
  resume(): Promise<void>
  /** Takes nothing of what it is told until `flow`. */
  stall(): void
  flow(): void
  /** Hangs up, without a word. */
  close(): void
}

export const newest = '2026-07-28'

export const clientInfo = { name: 'guarantees', version: '0' }

export const envelope: Json = {
  'io.modelcontextprotocol/protocolVersion': newest,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': clientInfo,
}

/** A request as its revision has it. */
export function requestOf(id: string | number, method: string, params: Json, modern: boolean): Json {
  return { jsonrpc: '2.0', id, method, params: modern ? { ...params, _meta: envelope } : params }
}

export const subscriptionOf = (message: Message): unknown => {
  const meta = message.params?._meta as Json | undefined
  return meta?.['io.modelcontextprotocol/subscriptionId']
}
