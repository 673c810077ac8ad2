/** Placeholder for a token: the page never shows a real one. */
const tokenHere = 'YOUR_TOKEN'

/** Returns a name that every host accepts: at most 60 lower-case letters, digits, `-` and `_`, without `-` at its ends. */
export function serverNameForHosts(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 60)
    .replace(/-+$/, '')
  return plain === '' ? 'hikidashi' : plain
}

/**
 * Returns for each host the text that adds a server over HTTP, and in `where` the place for the text: `terminal`, or a file of the host
 * (docs/hosts.md). The host `*` stands for any other.
 *
 * @param asksToken Whether the server requires a token, which the user has to fill in.
 */
export function hostInstructions(serverName: string, url: string, asksToken: boolean) {
  const name = serverNameForHosts(serverName)
  const header = asksToken ? { headers: { Authorization: `Bearer ${tokenHere}` } } : {}
  const json = (value: unknown) => JSON.stringify(value, undefined, 2)
  return [
    {
      host: 'Claude Code',
      where: 'terminal',
      text: `claude mcp add --transport http ${name} ${url}${asksToken ? ` --header "Authorization: Bearer ${tokenHere}"` : ''}`,
    },
    {
      host: 'VS Code',
      where: '.vscode/mcp.json',
      text: json({ servers: { [name]: { type: 'http', url, ...header } } }),
    },
    {
      host: 'Cursor',
      where: '.cursor/mcp.json',
      text: json({ mcpServers: { [name]: { url, ...header } } }),
    },
    {
      host: 'Codex',
      where: '~/.codex/config.toml',
      text: `[mcp_servers.${name}]\nurl = "${url}"${asksToken ? '\nbearer_token_env_var = "HIKIDASHI_TOKEN"' : ''}`,
    },
    {
      host: 'Gemini CLI',
      where: '.gemini/settings.json',
      text: json({ mcpServers: { [name]: { httpUrl: url, ...header } } }),
    },
    { host: '*', where: 'terminal', text: `hikidashi add HOST --url ${url}` },
  ]
}
