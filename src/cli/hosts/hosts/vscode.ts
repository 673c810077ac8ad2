import { defined } from '../../../core/kit/defined.ts'
import { joinCommand } from '../../operations/command-line.ts'
import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { applicationFolder, type Entry, type EntryContext, type Host, inProject, joined, type Way } from '../types.ts'
import { claudeCode } from './claude-code.ts'

const folderOf = (place: Parameters<typeof applicationFolder>[0]) => joined(place, applicationFolder(place), 'Code')

function spellingFor({ name, scope }: EntryContext): Spelling {
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
    user: (place) => [joined(place, folderOf(place), 'User', 'mcp.json')],
    project: inProject('.vscode', 'mcp.json'),
  },
  traces: { programs: ['code'], paths: (place) => [joined(place, folderOf(place), 'User')] },
  serversAt: () => ['servers'],
  entryOf: (launch, context) => {
    const spelling = spellingFor(context)
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
