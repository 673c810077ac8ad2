import { defined } from '../../../core/kit/defined.ts'
import type { JsonObject } from '../../hosts/values.ts'
import { misused } from '../../terminal/exit.ts'
import { type OwnPackage, shortDescription } from './manifest.ts'

/** The schema that a server.json follows: github.com/modelcontextprotocol/static. */
const schema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

/** Facts that package.json does not contain. */
export interface ServerJsonOptions {
  readonly name?: string
  readonly repository?: string
  readonly description?: string
  readonly title?: string
  readonly website?: string
  /** Public URLs of the server, if any. */
  readonly remotes?: readonly string[]
}

/** The description of this package for the registry of MCP servers. @throws CommandError for what it would refuse. */
export function serverJson(own: OwnPackage, options: ServerJsonOptions): JsonObject {
  const name = nameFor(own, options.name)
  const { description = shortDescription, title = 'hikidashi', website = own.homepage, remotes = [] } = options
  const repository = repositoryFor(own, options.repository)
  return {
    $schema: schema,
    name,
    title: within(title, 'title'),
    description: within(description, 'description'),
    version: own.version,
    ...defined({ repository }),
    ...(website === undefined ? {} : { websiteUrl: address(website, '--website') }),
    packages: [
      {
        registryType: 'npm',
        identifier: own.name,
        version: own.version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [
          { type: 'positional', value: 'serve' },
          {
            type: 'positional',
            valueHint: 'folder',
            description: 'A folder to serve, by its absolute path',
            format: 'filepath',
            isRequired: true,
            isRepeated: true,
          },
          { type: 'positional', value: '--stdio' },
        ],
      },
    ],
    ...(remotes.length === 0
      ? {}
      : { remotes: remotes.map((url) => ({ type: 'streamable-http', url: address(url, '--remote') })) }),
  }
}

const namePattern = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/

function nameFor({ mcpName }: OwnPackage, given: string | undefined): string {
  const name = given ?? mcpName
  if (name === undefined)
    throw misused(
      'The registry needs a name that shows whose it is: --name io.github.USER/hikidashi, or one of a domain of yours such as com.example/hikidashi.',
    )
  if (!namePattern.test(name) || name.length > 200)
    throw misused(`${JSON.stringify(name)} is no name for the registry. It is like io.github.USER/hikidashi.`)
  if (mcpName !== undefined && mcpName !== name)
    throw misused(
      `package.json says "mcpName": ${JSON.stringify(mcpName)}, and the registry compares. Give that one, or change it there.`,
    )
  return name
}

/** Hosts of repositories that the registry knows by a word. */
const sources: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' }

function repositoryFor({ repository }: OwnPackage, given: string | undefined): JsonObject | undefined {
  const own = typeof repository === 'string' ? repository : repository?.url
  const url = given ?? own?.replace(/^git\+/, '').replace(/\.git$/, '')
  if (url === undefined) return undefined
  const { hostname } = new URL(address(url, '--repository'))
  const source = sources[hostname]
  if (source === undefined)
    throw misused(
      `The registry knows repositories at ${Object.keys(sources).join(' and ')}, not at ${hostname}. Leave it out, or give --website.`,
    )
  return { url, source }
}

function address(url: string, option: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && new URL(url).username === '') return url
  throw misused(`${option} is a URL that begins with https:// and has no user name in it.`)
}

function within(text: string, what: string): string {
  if (text.length >= 1 && text.length <= 100) return text
  throw misused(`The ${what} has ${text.length} characters. The registry takes 1 to 100.`)
}
