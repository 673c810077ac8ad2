import { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { createCatalog } from 'hikidashi'
import { files } from 'hikidashi/providers/files'
import { attach } from 'hikidashi/sdk'

const server = new McpServer({ name: 'shop', version: '1.0.0' })
const provider = await files({ root: process.cwd() })
const catalog = createCatalog({ mounts: [{ address: 'docs://manual', provider }] })
attach(server, catalog.view({ id: 'local', roles: [] }), { subscriptions: true })
await server.connect(new StdioServerTransport())
