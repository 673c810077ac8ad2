import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ParseError, parse } from 'jsonc-parser'
import { redactPhrase } from '../../secrets/find.ts'

/** An MCP server from a host's file, as a mount that its user must enable. */
export interface DescribedServer {
  readonly name: string
  readonly file: string
  readonly mount: Readonly<Record<string, unknown>>
}

/** Files of hosts, and the key of the servers in each. */
const files = [
  ['.mcp.json', 'mcpServers'],
  ['.vscode/mcp.json', 'servers'],
] as const
const maxServers = 20
const maxBytes = 256 * 1024

/**
 * The servers in host files of a folder. Values of their environment and headers, and possible secrets in their arguments, are
 * left out: they belong into a secret store. Entries of hikidashi itself are left out.
 */
export async function serversIn(folder: string): Promise<readonly DescribedServer[]> {
  const found = new Map<string, DescribedServer>()
  for (const [file, key] of files) {
    const servers = recordOf(recordOf(await read(join(folder, file)))[key])
    for (const [name, value] of Object.entries(servers)) {
      const mount = mountOf(recordOf(value))
      // A line end would end the comment around the text.
      if (mount === undefined || /[\p{Cc}\u2028\u2029]/u.test(name + JSON.stringify(mount))) continue
      if (!found.has(name) && found.size < maxServers) found.set(name, { name, file, mount })
    }
  }
  return [...found.values()]
}

function mountOf({ command, args, env, url, headers }: Readonly<Record<string, unknown>>) {
  if (typeof url === 'string' && /^https?:\/\//.test(url)) {
    const named = Object.keys(recordOf(headers)).map((name) => [name, { env: variableOf(name) }])
    return {
      provider: 'remote',
      url: redactPhrase(url),
      ...(named.length === 0 ? {} : { headers: Object.fromEntries(named) }),
    }
  }
  const given = Array.isArray(args) ? args.filter((arg) => typeof arg === 'string') : []
  if (typeof command !== 'string' || /hikidashi/.test([command, ...given].join(' '))) return undefined
  const named = Object.keys(recordOf(env)).map((name) => [name, { env: name }])
  return {
    provider: 'remote',
    command,
    ...(given.length === 0 ? {} : { args: given.map(redactPhrase) }),
    ...(named.length === 0 ? {} : { env: Object.fromEntries(named) }),
  }
}

function variableOf(header: string): string {
  return header.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
}

async function read(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text === '' || text.length > maxBytes) return undefined
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  return errors.length === 0 ? value : undefined
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
