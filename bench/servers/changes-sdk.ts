import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { serveWriting, uriOf } from './writing.ts'

// The router of subscriptions of the SDK, behind a server of `node:http`.
const handler = createMcpHandler(
  () => {
    const server = new McpServer({ name: 'sdk', version: '0' })
    server.server.registerCapabilities({ resources: { subscribe: true, listChanged: true } })
    return server
  },
  { maxSubscriptions: 20_000 },
)
const http = createServer(async (incoming, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const answer = await handler.fetch(
    new Request(`http://127.0.0.1${incoming.url}`, {
      method: incoming.method ?? 'POST',
      headers: incoming.headers as Record<string, string>,
      body: Buffer.concat(chunks),
      signal: gone.signal,
    }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders()
  if (answer.body === null) return void response.end()
  Readable.fromWeb(answer.body as ReadableStream)
    .on('error', () => response.destroy())
    .pipe(response)
})
http.listen(0, '127.0.0.1', () => {
  const { port } = http.address() as AddressInfo
  void serveWriting(`http://127.0.0.1:${port}/mcp`, (index) => handler.notify.resourceUpdated(uriOf(index)))
})
