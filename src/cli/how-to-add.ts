import { joinCommand } from './command-line.ts'

/** How hosts are told of a server: the commands and settings that a user copies. */

export interface Server {
  /** What the host calls it. */
  readonly name: string
  readonly url?: string
  /** The command line that starts it on stdio. */
  readonly command: readonly string[]
}

/** How to add a server that is reached over HTTP, with the form for hosts that start it themselves. */
export function addOverHttp({ name, url = '', command }: Server): string {
  return `Add it to a host:
  Claude Code   claude mcp add --transport http ${name} ${url}
  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: { type: 'http', url } } })}
  Any           hikidashi add HOST --url ${url}
Or let the host start it:
${startedByHost({ name, command })}`
}

/** How to add a server that the host starts, and speaks to over stdio. */
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
