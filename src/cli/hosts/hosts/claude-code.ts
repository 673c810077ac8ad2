import { joinCommand } from '../../operations/command-line.ts'
import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import {
  type Entry,
  type EntryContext,
  type Host,
  inProject,
  joined,
  type Launch,
  type Place,
  saying,
} from '../types.ts'
import { strings } from '../values.ts'

const spelling: Spelling = { variable: (name) => `\${${name}}`, fills: /\$\{/ }

const folderOf = (place: Place) => saying(place, 'CLAUDE_CONFIG_DIR') ?? place.home

export const claudeCode: Host = {
  id: 'claude-code',
  title: 'Claude Code',
  format: 'json',
  resources: '@ lists them and attaches one; the model can list and read them. No templates.',
  docs: 'https://code.claude.com/docs/en/mcp',
  files: {
    user: (place) => [joined(place, folderOf(place), '.claude.json')],
    project: inProject('.mcp.json'),
  },
  traces: {
    programs: ['claude'],
    paths: (place) => [joined(place, place.home, '.claude'), joined(place, folderOf(place), '.claude.json')],
  },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { place }) => {
    if (launch.transport === 'http') {
      const headers = spellAll(launch.headers, claudeCode, spelling)
      return { value: { type: 'http', url: launch.url, ...unlessEmpty('headers', headers) } }
    }
    const [command, ...args] = spellCommand(launch, claudeCode, spelling, place)
    return {
      value: { type: 'stdio', command, args, ...unlessEmpty('env', spellAll(launch.env, claudeCode, spelling)) },
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
