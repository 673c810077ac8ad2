import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import { connect, type RemoteView, type ServerTarget } from '../../src/client/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Subscription, ViewChange } from '../../src/core/view.ts'
import { serveHttp } from '../../src/server/http/serve-http.ts'
// @ts-expect-error: the fixtures are JavaScript, since they run as programs of their own.
import { createNewLiveServer, createOldLiveServer } from '../fixtures/mcp/live.mjs'
import { endings } from './endings.ts'
import { type Live, live } from './live.ts'

/** A server that reports changes, and can be stopped and started. */
export interface LiveServer {
  readonly target: ServerTarget
  /** The URI of an existing resource. */
  readonly uri: string
  readonly other: string
  /** The URI of an absent resource. */
  readonly none: string
  touch(uri: string): Promise<void>
  touchList(): Promise<void>
  /** Stops it, and closes all of its connections. */
  stop(): Promise<void>
  /** Starts it again on the same port. */
  start(): Promise<void>
  /** Number of open streams of changes, or of subscribed URIs, if it is known. */
  readonly load?: () => number
}

/** Starts a hikidashi server over HTTP, with a maximum number of subscribed URIs for a client. */
export async function serveOurs(path: 'mcp' | 'sse', most = 1000): Promise<LiveServer & { readonly provider: Live }> {
  const provider = live({ a: '', b: '' })
  const open = (port: number) => {
    const catalog = createCatalog({ mounts: [{ address: 'x://r', provider }], changes: { perSubscription: most } })
    return serveHttp({
      ...{ view: (p) => catalog.view(p), name: 't', version: '1', log: () => {}, host: '127.0.0.1', port, sse: true },
      limits: { drain: 100 },
    }).then((http) => ({
      url: http.url,
      close: async () => {
        await http.close()
        await catalog.close()
      },
    }))
  }
  let running: Awaited<ReturnType<typeof open>> | undefined = await open(0)
  const url = running.url.replace(/mcp$/, path)
  const port = Number(new URL(url).port)
  const stop = async () => {
    const ending = running
    running = undefined
    await ending?.close()
  }
  endings.push(stop)
  return {
    provider,
    target: { url },
    uri: 'x://r/a',
    other: 'x://r/b',
    none: 'y://none',
    touch: async (uri) => provider.tell({ path: uri.slice('x://r/'.length), listed: false }),
    touchList: async () => provider.tell({ path: 'new', listed: true }),
    stop,
    start: async () => {
      running = await open(port)
    },
    load: () => provider.watching,
  }
}

type See = (request: IncomingMessage, response: ServerResponse) => void

/** Puts a proxy before a server, which sees every request, and may answer it. */
export async function behind(inner: LiveServer, see: See): Promise<LiveServer> {
  const { port } = new URL('url' in inner.target ? inner.target.url : '')
  const proxy = createServer((incoming, response) => {
    see(incoming, response)
    if (response.writableEnded) return
    const { method, url: path } = incoming
    const headers = { ...incoming.headers, host: `127.0.0.1:${port}` }
    const forward = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers).flushHeaders()
      answer.on('error', () => response.destroy()).on('close', () => response.destroy())
      answer.pipe(response)
    })
    forward.on('error', () => response.destroy())
    response.on('close', () => forward.destroy())
    incoming.pipe(forward)
  })
  const proxyPort = await listen(proxy, 0)
  endings.push(() => end(proxy))
  return { ...inner, target: { url: `http://127.0.0.1:${proxyPort}/mcp` } }
}

/** Like {@link behind}, but the newest revision is refused. */
export function aged(inner: LiveServer, see: See = () => {}): Promise<LiveServer> {
  return behind(inner, (incoming, response) => {
    see(incoming, response)
    if (!response.writableEnded && incoming.headers['mcp-method'] === 'server/discover') response.writeHead(500).end()
  })
}

/** Starts the server of the official SDK for 2026-07-28, over HTTP. */
export async function serveOfficialLive(): Promise<LiveServer> {
  let handler: McpHttpHandler = createMcpHandler(() => createNewLiveServer())
  return restartable(
    async (incoming, response) => {
      const body = incoming.method === 'POST' ? { body: await bodyOf(incoming) } : {}
      const gone = new AbortController()
      response.on('close', () => gone.abort())
      const asked = new Request(`http://127.0.0.1${incoming.url}`, {
        method: incoming.method ?? 'GET',
        headers: incoming.headers as Record<string, string>,
        signal: gone.signal,
        ...body,
      })
      const answer = await handler.fetch(asked)
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders()
      if (answer.body === null) return void response.end()
      Readable.fromWeb(answer.body as ReadableStream)
        .on('error', () => response.destroy())
        .pipe(response)
    },
    async () => {
      await handler.close()
      handler = createMcpHandler(() => createNewLiveServer())
    },
    {
      touch: async (uri) => handler.notify.resourceUpdated(uri),
      touchList: async () => handler.notify.resourcesChanged(),
    },
  )
}

interface OldTransport {
  readonly sessionId?: string
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>
  handlePostMessage(request: IncomingMessage, response: ServerResponse): Promise<void>
}

/** Starts servers of the SDK before version 2, with sessions: over Streamable HTTP, or HTTP+SSE. */
export async function serveOldLive(sdk: 'sdk112' | 'sdk124', kind: 'streamable' | 'sse'): Promise<LiveServer> {
  const sessions = new Map<string, { readonly transport: OldTransport; touch(uri: string): Promise<void> }>()
  const { StreamableHTTPServerTransport } = await import(`${sdk}/server/streamableHttp.js` as string)
  const { SSEServerTransport } = await import(`${sdk}/server/sse.js` as string)
  const touch = async (uri: string) => {
    for (const session of sessions.values()) await session.touch(uri)
  }
  return restartable(
    async (incoming, response) => {
      const url = new URL(incoming.url ?? '/', 'http://127.0.0.1')
      const id = incoming.headers['mcp-session-id'] ?? url.searchParams.get('sessionId')
      const known = sessions.get(String(id))
      if (known !== undefined)
        return kind === 'sse'
          ? known.transport.handlePostMessage(incoming, response)
          : known.transport.handleRequest(incoming, response)
      if (id !== null) return void response.writeHead(404).end()
      if (kind === 'sse' && incoming.method !== 'GET') return void response.writeHead(405).end()
      const old = await createOldLiveServer(sdk)
      if (kind === 'sse') {
        const transport = new SSEServerTransport('/messages', response)
        sessions.set(transport.sessionId, { transport, touch: old.touch })
        return void (await old.server.connect(transport))
      }
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (session: string) => void sessions.set(session, { transport, touch: old.touch }),
      })
      await old.server.connect(transport)
      await transport.handleRequest(incoming, response)
    },
    async () => sessions.clear(),
    { touch, touchList: () => touch('list') },
  )
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

async function restartable(
  handler: Handler,
  forget: () => Promise<void>,
  rest: Pick<LiveServer, 'touch' | 'touchList'>,
): Promise<LiveServer> {
  let server: Server | undefined
  const open = async (port: number) => {
    const opened = createServer((incoming, response) => {
      handler(incoming, response).catch(() => response.destroy())
    })
    server = opened
    return listen(opened, port)
  }
  const stop = async () => {
    await forget()
    if (server !== undefined) await end(server)
    server = undefined
  }
  endings.push(stop)
  const port = await open(0)
  return {
    ...rest,
    target: { url: `http://127.0.0.1:${port}/mcp` },
    uri: 'x:a',
    other: 'x:b',
    none: 'mute:a',
    stop,
    start: async () => void (await open(port)),
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

async function end(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** Every kind of server over HTTP. */
export const liveServers: Readonly<Record<string, () => Promise<LiveServer>>> = {
  'of hikidashi, over HTTP': () => serveOurs('mcp'),
  'of hikidashi, with sessions': async () => aged(await serveOurs('mcp')),
  'of hikidashi, with server-sent events': () => serveOurs('sse'),
  'of the SDK 2, over HTTP': serveOfficialLive,
  'of the SDK 1.24, with sessions': () => serveOldLive('sdk124', 'streamable'),
  'of the SDK 1.12, with server-sent events': () => serveOldLive('sdk112', 'sse'),
}

/** Connects, and closes when the test ends. */
export async function open(target: ServerTarget): Promise<RemoteView> {
  const view = await connect(target, { timeoutMs: 5000 })
  endings.push(view.close)
  return view
}

/** Opens a subscription, and collects its notifications. */
export function hear(view: RemoteView) {
  const changes: ViewChange[] = []
  const subscription = view.subscribe?.((change) => changes.push(change)) as Subscription
  return {
    ...{ changes, subscription },
    uris: () => changes.flatMap(({ uris }) => uris),
    listed: () => changes.filter(({ listed }) => listed).length,
    forget: () => void changes.splice(0),
  }
}
