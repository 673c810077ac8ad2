// The official SDK, version 1: one template that lists, completes and reads; one transport and server for each session.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { complete, contentsOf, follow, resources, say, template } from './folder.mjs'

const transports = new Map()
/** Sessions by the URIs that they subscribed to. */
const subscribers = new Map()

function createSession() {
  const server = new McpServer(
    { name: 'sdk-v1', version: '0' },
    { capabilities: { resources: { subscribe: true, listChanged: true } } },
  )
  const docs = new ResourceTemplate(template, { list: () => ({ resources }), complete: { name: complete } })
  server.registerResource('docs', docs, { mimeType: 'text/plain' }, ({ href }) => contentsOf(href))
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => {
    subscribers.set(uri, (subscribers.get(uri) ?? new Set()).add(server))
    return {}
  })
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params: { uri } }) => {
    subscribers.get(uri)?.delete(server)
    return {}
  })
  return server
}

follow((uri) => {
  for (const { server } of subscribers.get(uri) ?? []) void server.sendResourceUpdated({ uri })
})
const server = createServer(async (request, response) => {
  const known = transports.get(request.headers['mcp-session-id'])
  if (known !== undefined) return known.handleRequest(request, response)
  const transport = new StreamableHTTPServerTransport({
    enableJsonResponse: true,
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => {
      transports.set(id, transport)
    },
  })
  await createSession().connect(transport)
  return transport.handleRequest(request, response)
})
server.listen(0, '127.0.0.1', () => say(server.address().port))
