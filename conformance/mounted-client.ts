import { createCatalog } from '../src/core/catalog.ts'
import { remote } from '../src/providers/remote/index.ts'

/**
 * The client that the official suite judges: it mounts the server of the suite, lists the tools of the mount, and calls those that the
 * suite names, or else every tool. Arguments: the URL of the server.
 */
interface ToolCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as {
  readonly toolCalls?: readonly ToolCall[]
}
const principal = { id: 'suite', roles: [] }
const { signal } = new AbortController()
const target = { url: process.argv[2] ?? '' }
const catalog = createCatalog({ mounts: [{ address: 'suite://server', provider: remote({ target, tools: true }) }] })
try {
  const { tools = [] } = (await catalog.view(principal).tools?.list(new Set())) ?? {}
  for (const { name, arguments: given } of toolCalls ?? tools.map(({ name }) => ({ name, arguments: {} })))
    await tools.find((tool) => tool.name === name)?.call(given, { principal, signal })
} finally {
  await catalog.close()
}
