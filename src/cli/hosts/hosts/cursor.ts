import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { type Host, inProject, joined, type Place, type Scope } from '../types.ts'
import { claudeCode } from './claude-code.ts'

const spellingFor = (scope: Scope): Spelling => ({
  variable: (name) => `\${env:${name}}`,
  fills: /\$\{/,
  ...(scope === 'project' ? { folder: `\${workspaceFolder}` } : {}),
})

const folderOf = (place: Place) => joined(place, place.home, '.cursor')

export const cursor: Host = {
  id: 'cursor',
  title: 'Cursor',
  format: 'json',
  resources: 'Documented as supported; people report that they find no place to attach them. It gets tools instead.',
  docs: 'https://cursor.com/docs/context/mcp',
  files: {
    user: (place) => [joined(place, folderOf(place), 'mcp.json')],
    project: inProject('.cursor', 'mcp.json'),
  },
  traces: { programs: ['cursor'], paths: (place) => [folderOf(place)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { scope, place }) => {
    const spelling = spellingFor(scope)
    if (launch.transport === 'http')
      return { value: { url: launch.url, ...unlessEmpty('headers', spellAll(launch.headers, cursor, spelling)) } }
    const [command, ...args] = spellCommand(launch, cursor, spelling, place)
    return { value: { type: 'stdio', command, args, ...unlessEmpty('env', spellAll(launch.env, cursor, spelling)) } }
  },
  foundIn: claudeCode.foundIn,
  waysOf: (_, { value }, { name, scope }) => {
    if (scope === 'project') return []
    const config = encodeURIComponent(Buffer.from(JSON.stringify(value)).toString('base64'))
    return [
      {
        label: 'The same as a link',
        text: `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${config}`,
      },
    ]
  },
  next: 'Turn it on in Cursor: Settings > MCP.',
}
