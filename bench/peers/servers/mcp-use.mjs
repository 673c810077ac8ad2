// mcp-use: one resource for each file, and a template beside them. mcp-use cannot list the resources of a template.
process.env.MCP_USE_ANONYMIZED_TELEMETRY = 'false'
const { MCPServer } = await import('mcp-use')
const { complete, contentsOf, follow, freePort, nameOf, prefix, resources, say } = await import('./folder.mjs')

const port = await freePort()
const server = new MCPServer({ name: 'mcp-use', version: '0.0.0', host: '127.0.0.1', port })
for (const { uri, name, mimeType } of resources)
  server.resource({ uri, name, mimeType }, ({ href }) => contentsOf(href))
server.resourceTemplate(
  { name: 'any', uriTemplate: 'bench://any/{name}', mimeType: 'text/plain', complete: { name: complete } },
  async ({ href }) => {
    const { contents } = await contentsOf(prefix + nameOf(href.replace('//any/', '//docs/')))
    return { contents: contents.map((content) => ({ ...content, uri: href })) }
  },
)
follow((uri) => void server.notifyResourceUpdated(uri))
await server.listen(port, { host: '127.0.0.1' })
say(port)
