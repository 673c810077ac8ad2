// The example of fastmcp's guide, in ten lines: one resource.
import { FastMCP } from 'fastmcp'

const server = new FastMCP({ name: 'fastmcp', version: '0.0.0' })
server.addResource({
  uri: 'x://one',
  name: 'one',
  load: async () => ({ text: 'one' }),
})
await server.start({ transportType: 'stdio' })
