import { defined, stringItems } from '../../core/kit/object.ts'
import { joinCommand } from '../operations/command-line.ts'
import { usageError } from '../terminal/exit.ts'
import {
  type AddInstruction,
  applicationFolder,
  configFolder,
  defaultEntry,
  type EntryContext,
  environmentValue,
  formatCommand,
  formatValues,
  type Host,
  type HostEntry,
  type HostNotation,
  type HostScope,
  isPlainData,
  joinPath,
  type Launch,
  type Machine,
  projectFile,
  unlessEmpty,
  valueAt,
} from './types.ts'

const types = { http: 'http', stdio: 'stdio' }

const codeSpelling: HostNotation = { variable: (name) => `\${${name}}`, fills: /\$\{/ }

const codeFolder = (machine: Machine) => environmentValue(machine, 'CLAUDE_CONFIG_DIR') ?? machine.home

export const claudeCode: Host = {
  id: 'claude-code',
  title: 'Claude Code',
  format: 'json',
  resources: '@ lists them and attaches one; the model can list and read them. No templates.',
  docs: 'https://code.claude.com/docs/en/mcp',
  files: {
    user: (machine) => [joinPath(machine, codeFolder(machine), '.claude.json')],
    project: projectFile('.mcp.json'),
  },
  traces: {
    programs: ['claude'],
    paths: (machine) => [
      joinPath(machine, machine.home, '.claude'),
      joinPath(machine, codeFolder(machine), '.claude.json'),
    ],
  },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { machine }) => ({ value: defaultEntry(launch, claudeCode, codeSpelling, { types, machine }) }),
  foundIn: ({ command, args, url }) => ({
    ...(typeof command === 'string' ? { command: [command, ...stringItems(args)] } : {}),
    ...(typeof url === 'string' ? { url } : {}),
  }),
  waysOf: (launch, entry, context) => [{ label: 'Or as a command', text: addCommand(launch, entry, context) }],
  next: 'Restart Claude Code, or type /mcp. It asks before it uses a server of a project.',
}

function addCommand(launch: Launch, { value }: HostEntry, { name, scope }: EntryContext): string {
  const settings = Object.keys(launch.transport === 'http' ? launch.headers : launch.env)
  // `claude mcp add` would read the name as another value of an option that takes a list.
  if (settings.length > 0) return `claude mcp add-json --scope ${scope} ${name} ${joinCommand([JSON.stringify(value)])}`
  if (launch.transport === 'http') return `claude mcp add --scope ${scope} --transport http ${name} ${launch.url}`
  return `claude mcp add --scope ${scope} ${name} -- ${joinCommand([String(value.command), ...stringItems(value.args)])}`
}

const desktopSpelling: HostNotation = {
  otherwise: 'Let the configuration read it from a file instead: { "file": "path" }.',
}

const desktopFolder = (machine: Machine) => joinPath(machine, applicationFolder(machine), 'Claude')

export const claudeDesktop: Host = {
  id: 'claude-desktop',
  title: 'Claude Desktop',
  format: 'json',
  refuses: { comments: true, trailingCommas: true },
  resources: 'The user attaches them from the + menu.',
  docs: 'https://modelcontextprotocol.io/docs/develop/connect-local-servers',
  files: { user: (machine) => [joinPath(machine, desktopFolder(machine), 'claude_desktop_config.json')] },
  traces: { programs: [], paths: (machine) => [desktopFolder(machine)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch) => {
    if (launch.transport === 'http')
      throw usageError(
        'The settings file of Claude Desktop takes only servers that it starts. Add a URL in its settings, under Connectors; or write a configuration that mounts the server (provider "remote"), and add that configuration.',
      )
    return { value: defaultEntry(launch, claudeDesktop, desktopSpelling) }
  },
  foundIn: claudeCode.foundIn,
  waysOf: () => [{ label: 'Or as a file to double-click', text: 'hikidashi bundle mcpb' }],
  next: 'Quit Claude Desktop and start it again: closing the window is not enough.',
}

const vscodeFolder = (machine: Parameters<typeof applicationFolder>[0]) =>
  joinPath(machine, applicationFolder(machine), 'Code')

function vscodeSpelling({ name, scope }: EntryContext): HostNotation {
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
  resources:
    '“Add Context > MCP Resources” and “MCP: Browse Resources” list them, complete templates, and attach them.',
  docs: 'https://code.visualstudio.com/docs/agents/reference/mcp-configuration',
  files: {
    user: (machine) => [joinPath(machine, vscodeFolder(machine), 'User', 'mcp.json')],
    project: projectFile('.vscode', 'mcp.json'),
  },
  traces: { programs: ['code'], paths: (machine) => [joinPath(machine, vscodeFolder(machine), 'User')] },
  serversAt: () => ['servers'],
  entryOf: (launch, context) => {
    const value = defaultEntry(launch, vscode, vscodeSpelling(context), { types, machine: context.machine })
    const asks = launch.transport === 'http' && Object.values(launch.headers).flat().some(isInput)
    return { value, ...(asks ? { inputs: [inputFor(context)] } : {}) }
  },
  foundIn: claudeCode.foundIn,
  waysOf,
  next: 'Start the server in VS Code: MCP: List Servers. It asks whether the server is trusted.',
}

const isInput = (piece: object | string) => typeof piece === 'object' && 'input' in piece

function inputFor({ name }: EntryContext) {
  return { type: 'promptString', id: `${name}-token`, description: `Token for ${name}`, password: true }
}

function waysOf(_: unknown, { value, inputs }: HostEntry, { name, scope }: EntryContext): readonly AddInstruction[] {
  if (scope === 'project') return []
  const whole = { name, ...value, ...defined({ inputs }) }
  const config = encodeURIComponent(JSON.stringify(value))
  const inputsQuery = inputs === undefined ? '' : `&inputs=${encodeURIComponent(JSON.stringify(inputs))}`
  return [
    { label: 'Or as a command', text: `code --add-mcp ${joinCommand([JSON.stringify(whole)])}` },
    { label: 'Or as a link', text: `vscode:mcp/install?${encodeURIComponent(JSON.stringify(whole))}` },
    {
      label: 'Or as a link for web pages',
      text: `https://insiders.vscode.dev/redirect/mcp/install?name=${encodeURIComponent(name)}&config=${config}${inputsQuery}`,
    },
  ]
}

const cursorSpelling = (scope: HostScope): HostNotation => ({
  variable: (name) => `\${env:${name}}`,
  fills: /\$\{/,
  ...(scope === 'project' ? { folder: `\${workspaceFolder}` } : {}),
})

const cursorFolder = (machine: Machine) => joinPath(machine, machine.home, '.cursor')

export const cursorEditor: Host = {
  id: 'cursor',
  title: 'Cursor',
  format: 'json',
  resources:
    'Documented as supported; people report that they find no place to attach them. hikidashi gives it tools instead.',
  docs: 'https://cursor.com/docs/context/mcp',
  files: {
    user: (machine) => [joinPath(machine, cursorFolder(machine), 'mcp.json')],
    project: projectFile('.cursor', 'mcp.json'),
  },
  traces: { programs: ['cursor'], paths: (machine) => [cursorFolder(machine)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch, { scope, machine }) => ({
    value: defaultEntry(launch, cursorEditor, cursorSpelling(scope), { types: { stdio: 'stdio' }, machine }),
  }),
  foundIn: claudeCode.foundIn,
  waysOf: (_, { value }, { name, scope }) => {
    if (scope === 'project') return []
    const config = encodeURIComponent(Buffer.from(JSON.stringify(value)).toString('base64'))
    return [
      {
        label: 'Or as a link',
        text: `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${config}`,
      },
    ]
  },
  next: 'Turn the server on in Cursor: Settings > MCP.',
}

const zedSpelling: HostNotation = {
  otherwise:
    'Zed gives each server its whole environment. Leave out --env. For a URL, write a configuration in which hikidashi mounts that server (provider "remote", with a header of { "env": … }), and add that configuration.',
}

const zedFolder = (machine: Machine) => {
  if (machine.platform === 'win32') return joinPath(machine, applicationFolder(machine), 'Zed')
  return joinPath(
    machine,
    machine.platform === 'darwin' ? joinPath(machine, machine.home, '.config') : configFolder(machine),
    'zed',
  )
}

export const zed: Host = {
  id: 'zed',
  title: 'Zed',
  format: 'json',
  resources: 'None: it supports tools and prompts only. hikidashi gives it tools instead.',
  docs: 'https://zed.dev/docs/ai/mcp',
  files: {
    user: (machine) => [joinPath(machine, zedFolder(machine), 'settings.json')],
    project: projectFile('.zed', 'settings.json'),
  },
  traces: { programs: ['zed', 'zeditor'], paths: (machine) => [zedFolder(machine)] },
  serversAt: () => ['context_servers'],
  entryOf: (launch) => {
    const value = defaultEntry(launch, zed, zedSpelling)
    return { value: launch.transport === 'http' ? value : { ...value, env: value.env ?? {} } }
  },
  foundIn: claudeCode.foundIn,
  next: 'Zed applies the change at once; its Agent Panel shows whether the server runs. Zed asks whether a project is trusted.',
}

const opencodeSpelling: HostNotation = { variable: (name) => `{env:${name}}`, fills: /\{(?:env|file):/ }

const opencodeConfigPaths = (machine: Machine, ...folder: readonly string[]) =>
  ['opencode.json', 'opencode.jsonc'].map((name) => joinPath(machine, ...folder, name))

const opencodeFolder = (machine: Machine) => joinPath(machine, configFolder(machine), 'opencode')

/** opencode 2 has the servers one level deeper. It still reads the form of version 1. */
const isSecond = (settings: unknown) => {
  const servers = valueAt(settings, ['mcp', 'servers'])
  return isPlainData(servers) && typeof servers.type !== 'string'
}

export const opencode: Host = {
  id: 'opencode',
  title: 'opencode',
  format: 'json',
  resources: '@ lists all of them and attaches one; newer versions let the model list and read them too.',
  docs: 'https://opencode.ai/docs/mcp-servers/',
  files: {
    user: (machine) => opencodeConfigPaths(machine, opencodeFolder(machine)),
    project: (machine) => [
      ...opencodeConfigPaths(machine, machine.folder),
      ...opencodeConfigPaths(machine, machine.folder, '.opencode'),
    ],
  },
  traces: { programs: ['opencode'], paths: (machine) => [opencodeFolder(machine)] },
  serversAt: (settings) => (isSecond(settings) ? ['mcp', 'servers'] : ['mcp']),
  entryOf: (launch, _, settings) => {
    const enabled = isSecond(settings) ? {} : { enabled: true }
    if (launch.transport === 'http') {
      const headers = unlessEmpty('headers', formatValues(launch.headers, opencode, opencodeSpelling))
      return { value: { type: 'remote', url: launch.url, ...headers, ...enabled } }
    }
    const environment = unlessEmpty('environment', formatValues(launch.env, opencode, opencodeSpelling))
    return {
      value: { type: 'local', command: formatCommand(launch, opencode, opencodeSpelling), ...environment, ...enabled },
    }
  },
  foundIn: ({ command, url }) => ({
    ...(Array.isArray(command) ? { command: stringItems(command) } : {}),
    ...(typeof url === 'string' ? { url } : {}),
  }),
  next: 'Restart opencode; opencode mcp list shows its servers.',
}
