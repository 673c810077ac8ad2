import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { type Project, projectName } from './project.ts'
import { hikidashi } from './served.ts'

/** The lists of the server, as the official client sees them. */
export interface Truth {
  readonly resources: readonly string[]
  readonly templates: readonly string[]
  readonly prompts: readonly string[]
}

/** Lists everything with the official client. Throws if the lists do not contain exactly the files of the project. */
export async function readTruth(project: Project, config: string, env: Record<string, string>): Promise<Truth> {
  const client = new Client({ name: 'truth', version: '0' }, { versionNegotiation: { mode: 'auto' } })
  const args = [hikidashi, 'serve', '--config', config, '--stdio', '--log-level', 'error']
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env }))
  try {
    const resources = (await client.listResources()).resources.map(({ uri }) => uri)
    const { resourceTemplates } = await client.listResourceTemplates()
    const { prompts } = await client.listPrompts()
    compare(resources, `file:///${projectName}/`, project.committed)
    compare(resources, `git://${projectName}/HEAD/`, project.committed)
    return {
      resources,
      templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      prompts: prompts.map(({ name }) => name),
    }
  } finally {
    await client.close()
  }
}

/** The URI of a path below an address that ends in a slash. */
export const uriOf = (address: string, path: string): string =>
  address + path.split('/').map(encodeURIComponent).join('/')

function compare(resources: readonly string[], address: string, paths: readonly string[]): void {
  const listed = resources.filter((uri) => uri.startsWith(address)).sort()
  const wanted = paths.map((path) => uriOf(address, path)).sort()
  const wrong = [...new Set([...listed, ...wanted])].filter((uri) => !listed.includes(uri) || !wanted.includes(uri))
  if (wrong.length > 0) throw new Error(`What is listed below ${address} is not what is there: ${wrong.join(', ')}`)
}
