import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPublished, joinCommand } from '../operations/command-line.ts'

/** Commands and settings that add a server to hosts, for a user to copy. */

export interface Server {
  /** Name of the server in the host. */
  readonly name: string
  readonly url?: string
  /** The command line that starts it on stdio. */
  readonly command: readonly string[]
  /** The file of tokens, if the server requires tokens over HTTP. */
  readonly tokens?: string
}

/** The environment variable of a host from which the printed commands take the token. */
const tokenVariable = 'HIKIDASHI_TOKEN'

/**
 * Returns commands that add a server over HTTP, and the form for hosts that start it themselves. If it requires tokens, the
 * commands take one from an environment variable of the host: no secret is written into a file.
 */
export function addOverHttp({ name, url = '', command, tokens }: Server): string {
  const entry = {
    type: 'http',
    url,
    ...(tokens === undefined ? {} : { headers: bearerOf(`\${env:${tokenVariable}}`) }),
  }
  const claudeHeader = tokens === undefined ? [] : ['--header', `Authorization: Bearer \${${tokenVariable}}`]
  const ownOption = tokens === undefined ? '' : ` --token-env ${tokenVariable}`
  const make =
    tokens === undefined
      ? []
      : [
          `It asks for a token. Make one, and put it into ${tokenVariable} in the environment of the host:`,
          `  ${joinCommand(['hikidashi', 'token', 'add', '--tokens', tokens, '--name', 'my-host'])}`,
        ]
  return [
    ...make,
    'Add it to a host:',
    `  Claude Code   ${joinCommand(['claude', 'mcp', 'add', '--transport', 'http', name, url, ...claudeHeader])}`,
    `  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: entry } })}`,
    `  Any           hikidashi add HOST --url ${url}${ownOption}`,
    'Or let the host start it:',
    startedByHost({ name, command }),
  ].join('\n')
}

function bearerOf(token: string) {
  return { Authorization: `Bearer ${token}` }
}

/** How to add a server that the host starts over stdio. */
export function addOverStdio(server: Server): string {
  return `Add it to a host, which then starts it:\n${startedByHost(server)}`
}

function startedByHost({ name, command: [program = '', ...args] }: Server): string {
  const entry = { command: program, args }
  return `  Claude Code   claude mcp add ${name} -- ${joinCommand([program, ...args])}
  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: { type: 'stdio', ...entry } } })}
  Others        ${JSON.stringify({ mcpServers: { [name]: entry } })}
What a host reads can be written for you: hikidashi hosts, hikidashi add HOST`
}

/** A name that every host takes: letters, digits, `-` and `_`. */
export function hostName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'hikidashi'
}

/** Returns the command that starts this package anywhere, and downloads it if it is missing. Windows finds `npx` only through `cmd`. */
export function npxCommand(args: readonly string[], platform: NodeJS.Platform = process.platform): readonly string[] {
  return [...(platform === 'win32' ? ['cmd', '/c'] : []), 'npx', '-y', 'hikidashi', ...args]
}

/** The command line that starts this installation from any folder. */
export function ownCommand(
  args: readonly string[],
  main = fileURLToPath(new URL('../main.js', import.meta.url)),
  platform: NodeJS.Platform = process.platform,
  published: () => boolean = isPublished,
): readonly string[] {
  // The cache of npx may be removed at any time, so use npx itself.
  if (/[\\/]_npx[\\/]/.test(main) && published()) return npxCommand(args, platform)
  return [process.execPath, resolve(main), ...args]
}
