import { Argument, InvalidArgumentError, Option } from 'commander'
import { defined, stringItems } from '../../core/kit/object.ts'
import { nearestWord } from '../../schema/refusals.ts'
import { joinCommand, toHostServerName } from '../operations/command-line.ts'
import { usageError } from '../terminal/exit.ts'
import { claudeCode, claudeDesktop, cursorEditor, opencode, vscode, zed } from './editors.ts'
import {
  applicationFolder,
  configFolder,
  defaultEntry,
  environmentValue,
  formatCommand,
  formatValue,
  formatValues,
  type Host,
  type HostNotation,
  type HostValue,
  hostScopes,
  type JsonObject,
  joinPath,
  type Launch,
  type Machine,
  projectFile,
  unlessEmpty,
} from './types.ts'

const codexFolder = (machine: Machine) =>
  environmentValue(machine, 'CODEX_HOME') ?? joinPath(machine, machine.home, '.codex')

const codex: Host = {
  id: 'codex',
  title: 'Codex',
  format: 'toml',
  resources: 'The model has tools that list resources and templates, and read one.',
  docs: 'https://developers.openai.com/codex/mcp',
  files: {
    user: (machine) => [joinPath(machine, codexFolder(machine), 'config.toml')],
    project: projectFile('.codex', 'config.toml'),
  },
  traces: { programs: ['codex'], paths: (machine) => [codexFolder(machine)] },
  serversAt: () => ['mcp_servers'],
  entryOf: (launch) => ({ value: launch.transport === 'http' ? codexRemote(launch) : codexLocal(launch) }),
  foundIn: claudeCode.foundIn,
  waysOf: (launch, { value }, { name, scope }) => {
    if (scope === 'project') return []
    const { url, bearer_token_env_var: variable, http_headers, env_http_headers, env_vars } = value
    if (http_headers !== undefined || env_http_headers !== undefined || env_vars !== undefined) return []
    const label = 'Or as a command'
    if (launch.transport === 'stdio') {
      const words = joinCommand([String(value.command), ...stringItems(value.args)])
      return [{ label, text: `codex mcp add ${name} -- ${words}` }]
    }
    const bearer = variable === undefined ? '' : ` --bearer-token-env-var ${String(variable)}`
    return [{ label, text: `codex mcp add ${name} --url ${String(url)}${bearer}` }]
  },
  next: 'Restart Codex; /mcp lists its servers. It reads the file of a project only if the project is trusted.',
}

function codexLocal(launch: Extract<Launch, { transport: 'stdio' }>): JsonObject {
  const [command, ...args] = formatCommand(launch, codex, {})
  // Codex can only forward a variable under its own name.
  const passed = Object.keys(launch.env).filter((name) => isVariable(launch.env[name], name))
  const literal = Object.fromEntries(Object.entries(launch.env).filter(([name]) => !passed.includes(name)))
  return {
    command,
    args,
    ...(passed.length === 0 ? {} : { env_vars: passed }),
    ...unlessEmpty('env', formatValues(literal, codex, {})),
  }
}

const isVariable = (value: HostValue = [], name?: string) => {
  const [piece] = value
  if (value.length !== 1 || typeof piece !== 'object' || !('variable' in piece)) return false
  return name === undefined || piece.variable === name
}

function codexRemote({ url, headers }: Extract<Launch, { transport: 'http' }>): JsonObject {
  const literal: Record<string, string> = {}
  const variables: Record<string, string> = {}
  let bearer: string | undefined
  for (const [name, value] of Object.entries(headers)) {
    const variable = value.map((piece) => (typeof piece === 'object' && 'variable' in piece ? piece.variable : ''))
    if (value.every((piece) => typeof piece === 'string')) literal[name] = formatValue(value, codex, {})
    else if (isVariable(value)) variables[name] = variable.join('')
    else if (/^authorization$/i.test(name) && value[0] === 'Bearer ' && isVariable(value.slice(1)))
      bearer = variable.join('')
    else
      throw usageError(
        `Codex takes a whole header from a variable, or a bearer token: --token-env NAME, or --header '${name}: \${NAME}'.`,
      )
  }
  return {
    url,
    ...defined({ bearer_token_env_var: bearer }),
    ...unlessEmpty('http_headers', literal),
    ...unlessEmpty('env_http_headers', variables),
  }
}

const dollarSpelling: HostNotation = { variable: (name) => `\${${name}}`, fills: /\$[\w{]/ }

const geminiFolder = (machine: Machine) =>
  joinPath(machine, environmentValue(machine, 'GEMINI_CLI_HOME') ?? machine.home, '.gemini')

const geminiCli: Host = {
  id: 'gemini-cli',
  title: 'Gemini CLI',
  format: 'json',
  refuses: { comments: false, trailingCommas: true },
  resources: '@ lists them and puts one into the prompt; the model can list and read them. No templates.',
  docs: 'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md',
  files: {
    user: (machine) => [joinPath(machine, geminiFolder(machine), 'settings.json')],
    project: projectFile('.gemini', 'settings.json'),
  },
  traces: { programs: ['gemini'], paths: (machine) => [geminiFolder(machine)] },
  serversAt: () => ['mcpServers'],
  // The policies of Gemini CLI take the text before the first _ for the whole server name.
  nameOf: (name) => name.replaceAll('_', '-'),
  entryOf: (launch) => {
    const value = defaultEntry(launch, geminiCli, dollarSpelling)
    return { value: launch.transport === 'http' ? { url: launch.url, type: 'http', ...value } : value }
  },
  foundIn: ({ httpUrl, ...rest }) => {
    const launch = claudeCode.foundIn(rest)
    return typeof httpUrl === 'string' ? { ...launch, url: httpUrl } : launch
  },
  next: 'Restart Gemini CLI; /mcp lists its servers. It starts servers only in folders that are trusted.',
}

const gooseDescription = 'Resources of hikidashi'
const gooseTimeoutSeconds = 300

const gooseFolder = (machine: Machine) =>
  machine.platform === 'win32'
    ? joinPath(machine, applicationFolder(machine), 'Block', 'goose', 'config')
    : joinPath(machine, configFolder(machine), 'goose')

const goose: Host = {
  id: 'goose',
  title: 'Goose',
  format: 'yaml',
  resources: 'The model gets tools that list and read them.',
  docs: 'https://github.com/block/goose/blob/main/documentation/docs/getting-started/using-extensions.md',
  files: { user: (machine) => [joinPath(machine, gooseFolder(machine), 'config.yaml')] },
  traces: { programs: ['goose'], paths: (machine) => [gooseFolder(machine)] },
  serversAt: () => ['extensions'],
  // Goose finds an extension by its name in lower case.
  nameOf: (name) => name.toLowerCase(),
  entryOf: (launch, { name }) => ({ value: gooseValue(launch, name) }),
  foundIn: ({ cmd, args, uri }) => ({
    ...(typeof cmd === 'string' ? { command: [cmd, ...stringItems(args)] } : {}),
    ...(typeof uri === 'string' ? { url: uri } : {}),
  }),
  waysOf: (launch, { value }, { name }) => {
    // A link cannot contain variables and headers, and Goose accepts few programs from a link.
    const isPlain = value.env_keys === undefined && value.envs === undefined && value.headers === undefined
    if (!isPlain || (launch.transport === 'stdio' && value.cmd !== 'npx')) return []
    const query = new URLSearchParams(
      launch.transport === 'http'
        ? [
            ['url', launch.url],
            ['type', 'streamable_http'],
          ]
        : [['cmd', 'npx'], ...stringItems(value.args).map((arg): [string, string] => ['arg', arg])],
    )
    for (const [key, text] of [
      ['id', name],
      ['name', name],
      ['description', gooseDescription],
    ] as const)
      query.append(key, text)
    return [{ label: 'Or as a link', text: `goose://extension?${query.toString().replaceAll('+', '%20')}` }]
  },
  next: 'Start a new session of Goose.',
}

function variablesIn(values: readonly HostValue[]): readonly string[] {
  return values.flat().flatMap((piece) => (typeof piece === 'object' && 'variable' in piece ? [piece.variable] : []))
}

function gooseValue(launch: Launch, name: string): JsonObject {
  const headers = launch.transport === 'http' ? launch.headers : launch.env
  const keys = variablesIn(Object.values(headers))
  return {
    type: launch.transport === 'http' ? 'streamable_http' : 'stdio',
    name,
    description: gooseDescription,
    ...(launch.transport === 'http' ? gooseRemote(launch) : gooseLocal(launch, keys)),
    ...unlessEmpty('env_keys', keys),
    enabled: true,
    timeout: gooseTimeoutSeconds,
  }
}

function gooseLocal(launch: Extract<Launch, { transport: 'stdio' }>, keys: readonly string[]): JsonObject {
  const [cmd, ...args] = formatCommand(launch, goose, {})
  const literal = Object.fromEntries(Object.entries(launch.env).filter(([key]) => !keys.includes(key)))
  return { cmd, args, ...unlessEmpty('envs', formatValues(literal, goose, {})) }
}

function gooseRemote({ url, headers }: Extract<Launch, { transport: 'http' }>): JsonObject {
  return { uri: url, ...unlessEmpty('headers', formatValues(headers, goose, dollarSpelling)) }
}

export const hosts: readonly Host[] = [
  claudeCode,
  claudeDesktop,
  vscode,
  cursorEditor,
  codex,
  geminiCli,
  goose,
  opencode,
  zed,
]

export const hostArgument = () =>
  new Argument('<host>', 'the host whose settings are changed').choices(ids).argParser(parseHost)

const ids = hosts.map(({ id }) => id)

function parseHost(word: string): string {
  if (ids.includes(word)) return word
  // People often leave out a part of a name, or mistype it.
  const candidates = word.length < 3 ? [] : ids.filter((id) => id.includes(word.toLowerCase()))
  const near = candidates.length > 0 ? candidates : [nearestWord(word, ids)].filter((id) => id !== undefined)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  throw new InvalidArgumentError(`${hint} The hosts are: ${ids.join(', ')}.`.trim())
}

export const scopeOption = () =>
  new Option('--scope <scope>', 'the settings to change: yours, or those of the current folder as a project')
    .choices(hostScopes)
    .default('user')

export function hostNamed(id: string): Host {
  const host = hosts.find((other) => other.id === id)
  if (host === undefined) throw usageError(`The host ${id} is unknown. The hosts are: ${ids.join(', ')}.`)
  return host
}

/** @throws CommandError for characters that some host refuses */
export function entryName(host: Host, name: string): string {
  if (toHostServerName(name) !== name)
    throw usageError(
      `${JSON.stringify(name)} is not a name that every host accepts: use letters, digits, - and _, without - at its ends.`,
    )
  return host.nameOf?.(name) ?? name
}
