import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tally } from './tally.ts'
import type { Target } from './target.ts'
import {
  type Answer,
  initialize,
  inTime,
  legacy,
  type Message,
  modern,
  type Params,
  patience,
  type Wire,
  withMeta,
} from './wire.ts'
import type { World } from './world.ts'

export interface Post {
  readonly method?: string
  readonly path?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Uint8Array
  readonly within?: number
}

/** Sends one HTTP request with Node's own client. */
export function send(target: Target, world: World, post: Post, agent?: Agent): Promise<Answer> {
  const { hostname, port, pathname } = target.url as URL
  const { method = 'POST', path = pathname, headers = {}, body, within = patience } = post
  tally.add(target)
  const answer = new Promise<Answer>((resolve, reject) => {
    const options = { host: hostname, port, path, method, headers: { ...headers }, ...(agent ? { agent } : {}) }
    const ask = () => {
      const outgoing = request(options, (incoming) => void collect(incoming, world).then(resolve, reject))
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        // The server may just have closed a connection that was idle for long.
        if (outgoing.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(error.code ?? '')) ask()
        else reject(error)
      })
      outgoing.end(body)
    }
    ask()
  })
  return inTime(answer, `${method} ${path}`, within)
}

async function collect(incoming: IncomingMessage, world: World): Promise<Answer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  const raw = Buffer.concat(chunks)
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2)
    pairs.push([(incoming.rawHeaders[i] ?? '').toLowerCase(), incoming.rawHeaders[i + 1] ?? ''])
  world.canaries.see(
    Buffer.concat([Buffer.from(JSON.stringify(pairs)), Buffer.from('\0'), raw, Buffer.from('\0')]),
    'http',
  )
  return {
    raw,
    message: parseBody(incoming.headers['content-type'], raw),
    status: incoming.statusCode ?? 0,
    headers: pairs,
  }
}

/** Parses the message of a body: JSON, or the last event of a stream. Throws for anything else. */
export function parseBody(type: string | undefined, raw: Buffer): Message | undefined {
  if (raw.length === 0) return undefined
  const text = new TextDecoder('utf-8', { fatal: true }).decode(raw)
  if (type === 'application/json') return JSON.parse(text) as Message
  if (type !== 'text/event-stream') throw new Error(`a body of the type ${type}`)
  const events = text.split('\n\n').filter((event) => event !== '' && !event.startsWith(':'))
  const last = /^event: message\ndata: ([^\n]*)$/.exec(events.at(-1) ?? '')?.[1]
  if (last === undefined) throw new Error(`no event at the end: ${text.slice(-200)}`)
  return JSON.parse(last) as Message
}

/** Encodes a header value for 2026-07-28: in base64 between sentinels if it is not visible ASCII, or looks like a sentinel. */
export function headerValue(value: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/i.test(value)) return value
  return sentinel(Buffer.from(value).toString('base64'))
}

export const sentinel = (encoded: string) => `=?base64?${encoded}?=`

export const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** Returns the headers of a request of 2026-07-28. */
export function modernHeaders(method: string, params: Params): Record<string, string> {
  const name = method === 'resources/read' ? params.uri : params.name
  const named = ['resources/read', 'prompts/get', 'tools/call'].includes(method) && typeof name === 'string'
  return {
    ...jsonHeaders,
    'mcp-protocol-version': modern,
    'mcp-method': headerValue(method),
    ...(named ? { 'mcp-name': headerValue(name) } : {}),
  }
}

const sessions = new WeakMap<Wire, Readonly<Record<string, string>>>()

/** Returns the headers with the session of a client. */
export function sessionHeaders(wire: Wire): Readonly<Record<string, string>> {
  return sessions.get(wire) ?? {}
}

/** Opens a client over HTTP with its own connections. */
export async function openHttp(target: Target, world: World, version: string = modern): Promise<Wire> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const isModern = version === modern
  let session: Record<string, string> = {}
  let next = 1
  const post = async (message: Params, headers: Record<string, string>, within: number) =>
    send(target, world, { headers: { ...headers, ...session }, body: JSON.stringify(message), within }, agent)
  const headersOf = (method: string, params: Params) => (isModern ? modernHeaders(method, params) : jsonHeaders)
  const wire: Wire = {
    name: `http ${version}`,
    transport: 'http',
    modern: isModern,
    target,
    world,
    call: (method, params = {}, { id = `call-${next++}`, within = patience } = {}) => {
      const message = { jsonrpc: '2.0', id, method, params: withMeta(params, isModern) }
      return post(message, headersOf(method, params), within)
    },
    notify: async (method, params = {}) => {
      await post({ jsonrpc: '2.0', method, params: withMeta(params, isModern) }, headersOf(method, params), patience)
    },
    close: async () => {
      if (!isModern) await send(target, world, { method: 'DELETE', headers: session }, agent).catch(() => {})
      agent.destroy()
    },
  }
  if (!isModern) {
    const { headers = [] } = await wire.call('initialize', initialize(version))
    session = {
      'mcp-session-id': headers.find(([name]) => name === 'mcp-session-id')?.[1] ?? '',
      'mcp-protocol-version': version,
    }
    sessions.set(wire, session)
    await wire.notify('notifications/initialized')
  }
  return wire
}

export const openLegacyHttp = (target: Target, world: World) => openHttp(target, world, legacy)

/** The bytes received on a raw connection. */
export interface RawAnswer {
  readonly text: string
  /** The status of each response, in order. */
  readonly statuses: readonly number[]
  readonly closed: boolean
}

export interface RawOptions {
  /** Stops reading when this holds; by default when the server closes, or sends nothing for `quiet` ms. */
  readonly until?: (text: string) => boolean
  readonly quiet?: number
  readonly within?: number
}

/** Writes bytes to a connection unchanged, part by part, and collects the answer. */
export async function raw(
  target: Target,
  world: World,
  parts: string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  { until, quiet = 400, within = patience }: RawOptions = {},
): Promise<RawAnswer> {
  const { hostname, port } = target.url as URL
  tally.add(target)
  const socket: Socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  let closed = false
  const text = () => Buffer.concat(chunks).toString('latin1')
  const done = new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined
    const rest = () => {
      clearTimeout(timer)
      if (until === undefined) timer = setTimeout(resolve, chunks.length === 0 ? quiet * 4 : quiet)
    }
    const limit = setTimeout(resolve, within)
    socket.on('data', (chunk) => {
      world.canaries.see(chunk, 'http')
      chunks.push(chunk)
      rest()
      if (until?.(text())) resolve()
    })
    socket.on('close', () => {
      closed = true
      clearTimeout(limit)
      resolve()
    })
    rest()
  })
  socket.on('error', () => {})
  const all = typeof parts === 'string' || parts instanceof Uint8Array ? [parts] : parts
  const writing = (async () => {
    for await (const part of all) {
      if (socket.destroyed || !socket.writable) return
      if (!socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part))
        await new Promise<void>((resolve) => {
          socket.once('drain', resolve)
          socket.once('close', () => resolve())
        })
    }
  })()
  await done
  socket.destroy()
  await writing
  const statuses = [...text().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
  return { text: text(), statuses, closed }
}
