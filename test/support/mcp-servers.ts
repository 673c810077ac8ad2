import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { ConnectOptions, ServerTarget } from '../../src/client/index.ts'
import { connect } from '../../src/client/index.ts'
import { isResourceError, ResourceError } from '../../src/core/errors.ts'
import type { Resource, View } from '../../src/core/view.ts'
// @ts-expect-error: the fixtures are JavaScript, since they run as programs of their own.
import { createServer as createOfficialServer } from '../fixtures/mcp/official.mjs'
// @ts-expect-error: as above.
import { createOldServer } from '../fixtures/mcp/old.mjs'
import { endings } from './endings.ts'

export const fixture = (name: string, ...args: readonly string[]): ServerTarget => ({
  command: process.execPath,
  args: [new URL(`../fixtures/mcp/${name}.mjs`, import.meta.url).pathname, ...args],
})

export async function open(target: ServerTarget, options?: ConnectOptions): Promise<View> {
  const view = await connect(target, { timeoutMs: 5000, ...options })
  endings.push(async () => view.close?.())
  return view
}

/** Serves HTTP on a free port of this machine until the test ends. */
export async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  endings.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export const serveOfficial = () => {
  const handler = createMcpHandler(() => createOfficialServer())
  return async (request: IncomingMessage, response: ServerResponse) => {
    const body = request.method === 'POST' ? { body: await bodyOf(request) } : {}
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1${request.url}`, {
        method: request.method ?? 'GET',
        headers: request.headers as Record<string, string>,
        ...body,
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(Buffer.from(await answer.arrayBuffer()))
  }
}

/** Starts a server of revision 2024-11-05: a stream, and a second URL for posts. */
export async function serveSse(): Promise<RequestListener> {
  const { SSEServerTransport } = await import('sdk112/server/sse.js' as string)
  const sessions = new Map<
    string,
    { handlePostMessage(request: IncomingMessage, response: ServerResponse): Promise<void> }
  >()
  return async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response)
      sessions.set(transport.sessionId, transport)
      await (await createOldServer('sdk112')).connect(transport)
      return
    }
    const session = sessions.get(url.searchParams.get('sessionId') ?? '')
    if (session === undefined) response.writeHead(url.pathname === '/mcp' ? 405 : 404).end()
    else await session.handlePostMessage(request, response)
  }
}

/** Starts a server of revisions 2025-03-26 to 2025-11-25, with sessions. */
export async function serveSessions(ended: string[]): Promise<RequestListener> {
  const { StreamableHTTPServerTransport } = await import('sdk124/server/streamableHttp.js' as string)
  const sessions = new Map<
    string,
    { handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> }
  >()
  return async (request, response) => {
    const id = String(request.headers['mcp-session-id'] ?? '')
    if (request.method === 'DELETE') ended.push(id)
    const known = sessions.get(id)
    if (known !== undefined) return known.handleRequest(request, response)
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => 'session-1',
      onsessioninitialized: (session: string) => void sessions.set(session, transport),
    })
    await (await createOldServer('sdk124')).connect(transport)
    await transport.handleRequest(request, response)
  }
}

export async function everything(view: View): Promise<readonly Resource[]> {
  const items: Resource[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
}

export const failure = async (work: Promise<unknown>): Promise<ResourceError> => {
  const error = await work.then(() => undefined).catch((caught: unknown) => caught)
  if (isResourceError(error)) return error
  throw new Error(`expected a ResourceError, got ${String(error)}`)
}

export const uris = (items: readonly Resource[]) => items.map((item) => item.uri)

/** A server with `initialize` over HTTP that answers `resources/…` as the test says. */
export const scripted =
  (
    answer: (
      method: string,
      params: Record<string, unknown>,
      response: ServerResponse,
      request: IncomingMessage,
    ) => unknown,
    capabilities: object = { resources: {} },
  ): RequestListener =>
  async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = JSON.parse(await bodyOf(request))
    if (id === undefined) return void response.writeHead(202).end()
    const reply = (message: object) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
    if (method === 'server/discover') return void reply({ error: { code: -32601, message: 'Method not found' } })
    if (method === 'initialize') {
      const serverInfo = { name: 'scripted', version: '1' }
      return void reply({ result: { protocolVersion: '2025-11-25', serverInfo, capabilities } })
    }
    const result = await answer(method, params ?? {}, response, request)
    if (result instanceof ResourceError) {
      const { code, ...data } = result.detail
      reply({ error: { code, message: result.message, ...(Object.keys(data).length === 0 ? {} : { data }) } })
    } else if (result !== undefined) reply({ result })
  }

export const fault = (code: number, message: string) => new ResourceError('internal', message, { code })

/**
 * A server of 2026-07-28 over HTTP that answers as the test says. The answer function gets the headers of each request; if it
 * returns `undefined`, the connection is closed.
 */
export const scriptedModern =
  (
    answer: (
      method: string,
      params: Record<string, unknown>,
      request: IncomingMessage,
    ) => Record<string, unknown> | ResourceError | undefined,
    capabilities: object = { tools: {}, resources: {}, prompts: {} },
  ): RequestListener =>
  async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params = {} } = JSON.parse(await bodyOf(request))
    if (id === undefined) return void response.writeHead(202).end()
    const serverInfo = { name: 'scripted', version: '1' }
    const facts = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    const discovered = { ...facts, supportedVersions: ['2026-07-28'], capabilities, serverInfo }
    const result = method === 'server/discover' ? discovered : answer(method, params, request)
    if (result === undefined) return void response.destroy()
    const isFault = result instanceof ResourceError
    const message = isFault
      ? { error: { code: result.detail.code, message: result.message } }
      : { result: { ...facts, ...result } }
    response
      .writeHead(isFault ? 400 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
  }
