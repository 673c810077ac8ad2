import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { joinCommand } from './command-line.ts'

/** How hosts are told of a server: the commands and settings that a user copies. */

export interface Server {
  /** What the host calls it. */
  readonly name: string
  readonly url?: string
  /** The command line that starts it on stdio. */
  readonly command: readonly string[]
}

/** A name that every host takes: letters, digits, `-` and `_`. */
export function hostName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'hikidashi'
}

/** The command line that starts this very program, from wherever a host is. */
export function ownCommand(
  args: readonly string[],
  main = fileURLToPath(new URL('./main.js', import.meta.url)),
): readonly string[] {
  // What npx unpacked may be gone tomorrow; npx itself is not.
  if (/[\\/]_npx[\\/]/.test(main)) return ['npx', '-y', 'hikidashi', ...args]
  return [process.execPath, resolve(main), ...args]
}

/** How to add a server that is reached over HTTP, with the form for hosts that start it themselves. */
export function addOverHttp({ name, url = '', command }: Server): string {
  return `Add it to a host:
  Claude Code   claude mcp add --transport http ${name} ${url}
  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: { type: 'http', url } } })}
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
  Others        ${JSON.stringify({ mcpServers: { [name]: entry } })}`
}
