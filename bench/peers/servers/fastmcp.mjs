// fastmcp: one resource for each file, and a template beside them.
import { FastMCP } from 'fastmcp'
import { complete, follow, freePort, nameOf, resources, say, textOf } from './folder.mjs'

const port = await freePort()
const server = new FastMCP({
  name: 'fastmcp',
  version: '0.0.0',
  logger: { debug() {}, error() {}, info() {}, log() {}, warn() {} },
})
server.addResources(
  resources.map(({ uri, name, mimeType }) => ({
    uri,
    name,
    mimeType,
    load: async () => ({ text: await textOf(nameOf(uri)) }),
  })),
)
server.addResourceTemplate({
  uriTemplate: 'bench://any/{name}',
  name: 'any',
  mimeType: 'text/plain',
  arguments: [{ name: 'name', required: true, complete: async (typed) => ({ values: complete(typed) }) }],
  load: async ({ name }) => ({ text: await textOf(name) }),
})
follow((uri) => void server.sendResourceUpdated(uri))
await server.start({
  transportType: 'httpStream',
  httpStream: { port, host: '127.0.0.1', endpoint: '/mcp', enableJsonResponse: true },
})
say(port)
