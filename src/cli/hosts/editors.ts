import { defined } from '../../core/kit/defined.ts'
import { joinCommand } from '../operations/command-line.ts'
import { claudeCode } from './claude.ts'
import { type Spelling, spellAll, spellCommand, unlessEmpty } from './spell.ts'
import {
  applicationFolder,
  configFolder,
  type Entry,
  type EntryContext,
  type Host,
  inProject,
  joined,
  type Place,
  type Scope,
  type Way,
} from './types.ts'

const vscodeFolder = (place: Parameters<typeof applicationFolder>[0]) => joined(place, applicationFolder(place), 'Code')

function vscodeSpelling({ name, scope }: EntryContext): Spelling {
  return {
    variable: (variable) => `\${env:${variable}}`,
    input: (id) => `\${input:${name}-${id}}`,
    fills: /\$\{/,
    // An entry that a project shares must not name a folder of one machine.
    ...(scope === 'project' ? { folder: `\${workspaceFolder}` } : {}),
  }
}

export const vscode: Host = {
  id: 'vscode',
  title: 'VS Code',
  format: 'json',
  resources: 'Add Context > MCP Resources and MCP: Browse Resources list, complete templates and attach.',
  docs: 'https://code.visualstudio.com/docs/agents/reference/mcp-configuration',
  files: {
    user: (place) => [joined(place, vscodeFolder(place), 'User', 'mcp.json')],
    project: inProject('.vscode', 'mcp.json'),
  },
  traces: { programs: ['code'], paths: (place) => [joined(place, vscodeFolder(place), 'User')] },
  serversAt: () => ['servers'],
  entryOf: (launch, context) => {
    const spelling = vscodeSpelling(context)
    if (launch.transport === 'http') {
      const headers = spellAll(launch.headers, vscode, spelling)
      const asks = Object.values(launch.headers).some((value) => value.some((piece) => isInput(piece)))
      return {
        value: { type: 'http', url: launch.url, ...unlessEmpty('headers', headers) },
        ...(asks ? { inputs: [inputFor(context)] } : {}),
      }
    }
    const [command, ...args] = spellCommand(launch, vscode, spelling, context.place)
    return { value: { type: 'stdio', command, args, ...unlessEmpty('env', spellAll(launch.env, vscode, spelling)) } }
  },
  foundIn: claudeCode.foundIn,
  waysOf,
  next: 'Start the server in VS Code: MCP: List Servers. It asks whether the server is trusted.',
}

const isInput = (piece: object | string) => typeof piece === 'object' && 'input' in piece

function inputFor({ name }: EntryContext) {
  return { type: 'promptString', id: `${name}-token`, description: `Token for ${name}`, password: true }
}

function waysOf(_: unknown, { value, inputs }: Entry, { name, scope }: EntryContext): readonly Way[] {
  if (scope === 'project') return []
  const whole = { name, ...value, ...defined({ inputs }) }
  const config = encodeURIComponent(JSON.stringify(value))
  const asked = inputs === undefined ? '' : `&inputs=${encodeURIComponent(JSON.stringify(inputs))}`
  return [
    { label: 'The same by a command', text: `code --add-mcp ${joinCommand([JSON.stringify(whole)])}` },
    { label: 'As a link', text: `vscode:mcp/install?${encodeURIComponent(JSON.stringify(whole))}` },
    {
      label: 'As a link for web pages',
      text: `https://insiders.vscode.dev/redirect/mcp/install?name=${encodeURIComponent(name)}&config=${config}${asked}`,
    },
  ]
}

const cursorSpelling = (scope: Scope): Spelling => ({
  variable: (name) => `\${env:${name}}`,
  fills: /\$\{/,
  ...(scope === 'project' ? { folder: `\${workspaceFolder}` } : {}),
})

const cursorFolder = (place: Place) => joined(place, place.home, '.cursor')

export const cursor: Host = {
  id: 'cursor',
  title: 'Cursor',
  format: 'json',
  resources: 'Documented as supported; people report that they find no place to attach them. It gets tools instead.',
  docs: 'https://cursor.com/docs/context/mcp',
  files: {
    user: (place) => [joined(place, cursorFolder(place), 'mcp.json')],
    project: inProject('.cursor', 'mcp.json'),
  },
  traces: { programs: ['cursor'], paths: (place) => [cursorFolder(place)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { scope, place }) => {
    const spelling = cursorSpelling(scope)
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

const zedSpelling: Spelling = {
  otherwise:
    'What it starts has its own environment: leave --env out. For a URL, write a configuration in which hikidashi mounts that server (provider "remote", with a header of { "env": … }), and add that.',
}

const zedFolder = (place: Place) => {
  if (place.platform === 'win32') return joined(place, applicationFolder(place), 'Zed')
  return joined(place, place.platform === 'darwin' ? joined(place, place.home, '.config') : configFolder(place), 'zed')
}

export const zed: Host = {
  id: 'zed',
  title: 'Zed',
  format: 'json',
  resources: 'None: it takes tools and prompts. It gets tools instead.',
  docs: 'https://zed.dev/docs/ai/mcp',
  files: {
    user: (place) => [joined(place, zedFolder(place), 'settings.json')],
    project: inProject('.zed', 'settings.json'),
  },
  traces: { programs: ['zed', 'zeditor'], paths: (place) => [zedFolder(place)] },
  serversAt: () => ['context_servers'],
  entryOf: (launch) => {
    if (launch.transport === 'http')
      return { value: { url: launch.url, ...unlessEmpty('headers', spellAll(launch.headers, zed, zedSpelling)) } }
    const [command, ...args] = spellCommand(launch, zed, zedSpelling)
    return { value: { command, args, env: spellAll(launch.env, zed, zedSpelling) } }
  },
  foundIn: claudeCode.foundIn,
  next: 'Zed takes it at once; its Agent Panel shows whether it runs. In a project, Zed asks whether that is trusted.',
}
