// tmcp: one template that lists, completes and reads.
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { HttpTransport } from '@tmcp/transport-http'
import { McpServer } from 'tmcp'
import { complete, contentsOf, follow, resources, say, template } from './folder.mjs'

const mcp = new McpServer(
  { name: 'tmcp', version: '0' },
  { adapter: undefined, capabilities: { resources: { subscribe: true, listChanged: true }, completions: {} } },
)
mcp.template(
  {
    name: 'docs',
    description: 'Files',
    uri: template,
    list: () => resources,
    complete: { name: (typed) => ({ completion: { values: complete(typed) } }) },
  },
  (uri) => contentsOf(uri),
)
follow((uri) => mcp.changed('resource', uri))
const transport = new HttpTransport(mcp, { path: '/mcp' })
const server = createServer(
  createRequestListener(async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 })),
)
server.listen(0, '127.0.0.1', () => say(server.address().port))
