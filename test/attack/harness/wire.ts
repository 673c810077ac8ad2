import type { Target } from './target.ts'
import type { World } from './world.ts'

/** A JSON-RPC message, with the members that tests use. */
export interface Message {
  readonly jsonrpc?: unknown
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: Readonly<Record<string, unknown>>
  }
}

/** The answer to one request. */
export interface Answer {
  /** The bytes of the message: a line, or the body of a response. */
  readonly raw: Buffer
  /** `undefined` if the body was empty. */
  readonly message: Message | undefined
  readonly status?: number
  /** Names in lower case, in the order of the answer. */
  readonly headers?: readonly (readonly [string, string])[]
}

export type Params = Readonly<Record<string, unknown>>

/** A client of one transport and revision. */
export interface Wire {
  readonly name: string
  readonly transport: 'stdio' | 'http'
  readonly modern: boolean
  readonly target: Target
  readonly world: World
  call(method: string, params?: Params, options?: CallOptions): Promise<Answer>
  notify(method: string, params?: Params): Promise<void>
  close(): Promise<void>
}

export interface CallOptions {
  readonly id?: string | number
  /** Maximum time of the answer, in milliseconds. */
  readonly within?: number
}

export const modern = '2026-07-28'
export const legacy = '2025-11-25'

const client = { name: 'attacker', version: '1' }

export const meta: Params = {
  'io.modelcontextprotocol/protocolVersion': modern,
  'io.modelcontextprotocol/clientInfo': client,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Returns the params in the form of a revision. A given `_meta` is extended. */
export function withMeta(params: Params, isModern: boolean): Params {
  if (!isModern) return params
  const own = typeof params._meta === 'object' && params._meta !== null ? params._meta : {}
  return { ...params, _meta: { ...meta, ...own } }
}

export function initialize(version: string = legacy): Params {
  return { protocolVersion: version, capabilities: {}, clientInfo: client }
}

/** Maximum time of any step, in milliseconds. It is generous, so that only a hang exceeds it. */
export const patience = 30_000

export async function inTime<T>(promise: Promise<T>, what: string, within: number = patience): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${within} ms: ${what.slice(0, 200)}`)), within)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
