// The official SDK, version 2: one template that lists, completes and reads, behind its HTTP handler.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { complete, contentsOf, follow, resources, say, template } from './folder.mjs'

const handler = createMcpHandler(() => {
  const server = new McpServer(
    { name: 'sdk-v2', version: '0' },
    { capabilities: { resources: { subscribe: true, listChanged: true } } },
  )
  const docs = new ResourceTemplate(template, { list: () => ({ resources }), complete: { name: complete } })
  server.registerResource('docs', docs, { mimeType: 'text/plain' }, ({ href }) => contentsOf(href))
  return server
})
follow((uri) => handler.notify.resourceUpdated(uri))
const server = createServer(toNodeHandler(handler))
server.listen(0, '127.0.0.1', () => say(server.address().port))
