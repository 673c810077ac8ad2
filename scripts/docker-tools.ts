import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

interface Property {
  readonly type?: string
  readonly description?: string
}

/**
 * The tools of a stdio server in the form of `tools.json`, as the contributing guide of Docker's MCP registry describes it.
 * `args` are the arguments of Node that start the server.
 */
export async function describeTools(args: string[]) {
  const client = new Client({ name: 'docker', version: '1' })
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  const { tools } = await client.listTools().finally(() => client.close())
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    arguments: Object.entries((inputSchema.properties ?? {}) as Record<string, Property>).map(
      ([key, { type = 'string', description: desc = '' }]) => ({ name: key, type, desc }),
    ),
  }))
}
