import { joinCommand } from '../operations/command-line.ts'
import { misused } from '../terminal/exit.ts'
import { type Spelling, spellAll, spellCommand, unlessEmpty } from './spell.ts'
import {
  applicationFolder,
  type Entry,
  type EntryContext,
  type Host,
  inProject,
  joined,
  type Launch,
  type Place,
  saying,
  strings,
} from './types.ts'

const codeSpelling: Spelling = { variable: (name) => `\${${name}}`, fills: /\$\{/ }

const codeFolder = (place: Place) => saying(place, 'CLAUDE_CONFIG_DIR') ?? place.home

export const claudeCode: Host = {
  id: 'claude-code',
  title: 'Claude Code',
  format: 'json',
  resources: '@ lists them and attaches one; the model can list and read them. No templates.',
  docs: 'https://code.claude.com/docs/en/mcp',
  files: {
    user: (place) => [joined(place, codeFolder(place), '.claude.json')],
    project: inProject('.mcp.json'),
  },
  traces: {
    programs: ['claude'],
    paths: (place) => [joined(place, place.home, '.claude'), joined(place, codeFolder(place), '.claude.json')],
  },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { place }) => {
    if (launch.transport === 'http') {
      const headers = spellAll(launch.headers, claudeCode, codeSpelling)
      return { value: { type: 'http', url: launch.url, ...unlessEmpty('headers', headers) } }
    }
    const [command, ...args] = spellCommand(launch, claudeCode, codeSpelling, place)
    return {
      value: { type: 'stdio', command, args, ...unlessEmpty('env', spellAll(launch.env, claudeCode, codeSpelling)) },
    }
  },
  foundIn: ({ command, args, url }) => ({
    ...(typeof command === 'string' ? { command: [command, ...strings(args)] } : {}),
    ...(typeof url === 'string' ? { url } : {}),
  }),
  waysOf: (launch, entry, context) => [{ label: 'The same by a command', text: addCommand(launch, entry, context) }],
  next: 'Start Claude Code anew, or type /mcp. It asks before it uses a server of a project.',
}

function addCommand(launch: Launch, { value }: Entry, { name, scope }: EntryContext): string {
  const settings = Object.keys(launch.transport === 'http' ? launch.headers : launch.env)
  // An option with a list of values would take the name as another value.
  if (settings.length > 0) return `claude mcp add-json --scope ${scope} ${name} ${joinCommand([JSON.stringify(value)])}`
  if (launch.transport === 'http') return `claude mcp add --scope ${scope} --transport http ${name} ${launch.url}`
  return `claude mcp add --scope ${scope} ${name} -- ${joinCommand([String(value.command), ...strings(value.args)])}`
}

const desktopSpelling: Spelling = {
  otherwise: 'Let the configuration read it from a file instead: { "file": "path" }.',
}

const desktopFolder = (place: Place) => joined(place, applicationFolder(place), 'Claude')

export const claudeDesktop: Host = {
  id: 'claude-desktop',
  title: 'Claude Desktop',
  format: 'json',
  refuses: { comments: true, trailingCommas: true },
  resources: 'The user attaches them from the + menu.',
  docs: 'https://modelcontextprotocol.io/docs/develop/connect-local-servers',
  files: { user: (place) => [joined(place, desktopFolder(place), 'claude_desktop_config.json')] },
  traces: { programs: [], paths: (place) => [desktopFolder(place)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch) => {
    if (launch.transport === 'http')
      throw misused(
        'The settings file of Claude Desktop takes only servers that it starts. Add a URL in its settings, under Connectors; or write a configuration that mounts the server (provider "remote"), and add that configuration.',
      )
    const [command, ...args] = spellCommand(launch, claudeDesktop, desktopSpelling)
    return { value: { command, args, ...unlessEmpty('env', spellAll(launch.env, claudeDesktop, desktopSpelling)) } }
  },
  foundIn: claudeCode.foundIn,
  waysOf: () => [{ label: 'Or as a file to double-click', text: 'hikidashi bundle mcpb' }],
  next: 'Quit Claude Desktop and start it anew: closing the window is not enough.',
}
