// The example of the SDK's guide, in ten lines: one resource.
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

serveStdio(() => {
  const server = new McpServer({ name: 'sdk', version: '0' })
  server.registerResource('one', 'x://one', {}, async ({ href }) => ({ contents: [{ uri: href, text: 'one' }] }))
  return server
})
