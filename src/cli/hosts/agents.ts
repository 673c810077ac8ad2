import { defined } from '../../core/kit/object.ts'
import { joinCommand } from '../operations/command-line.ts'
import { misused } from '../terminal/exit.ts'
import { claudeCode } from './editors.ts'
import {
  applicationFolder,
  configFolder,
  type Host,
  inProject,
  isObject,
  type JsonObject,
  joined,
  type Launch,
  type Place,
  type Spelling,
  saying,
  spell,
  spellAll,
  spellCommand,
  strings,
  unlessEmpty,
  type Value,
  valueAt,
} from './types.ts'

const codexFolder = (place: Place) => saying(place, 'CODEX_HOME') ?? joined(place, place.home, '.codex')

export const codex: Host = {
  id: 'codex',
  title: 'Codex',
  format: 'toml',
  resources: 'The model has tools that list resources and templates, and read one.',
  docs: 'https://developers.openai.com/codex/mcp',
  files: {
    user: (place) => [joined(place, codexFolder(place), 'config.toml')],
    project: inProject('.codex', 'config.toml'),
  },
  traces: { programs: ['codex'], paths: (place) => [codexFolder(place)] },
  serversAt: () => ['mcp_servers'],
  entryOf: (launch) => ({ value: launch.transport === 'http' ? codexRemote(launch) : codexLocal(launch) }),
  foundIn: claudeCode.foundIn,
  waysOf: (launch, { value }, { name, scope }) => {
    if (scope === 'project') return []
    const { url, bearer_token_env_var: variable, http_headers, env_http_headers, env_vars } = value
    if (http_headers !== undefined || env_http_headers !== undefined || env_vars !== undefined) return []
    const label = 'The same by a command'
    if (launch.transport === 'stdio') {
      const words = joinCommand([String(value.command), ...strings(value.args)])
      return [{ label, text: `codex mcp add ${name} -- ${words}` }]
    }
    const bearer = variable === undefined ? '' : ` --bearer-token-env-var ${String(variable)}`
    return [{ label, text: `codex mcp add ${name} --url ${String(url)}${bearer}` }]
  },
  next: 'Start Codex anew; /mcp lists its servers. It reads the file of a project only where that is trusted.',
}

function codexLocal(launch: Extract<Launch, { transport: 'stdio' }>): JsonObject {
  const [command, ...args] = spellCommand(launch, codex, {})
  // Codex passes variables on by name only.
  const passed = Object.keys(launch.env).filter((name) => isVariable(launch.env[name], name))
  const literal = Object.fromEntries(Object.entries(launch.env).filter(([name]) => !passed.includes(name)))
  return {
    command,
    args,
    ...(passed.length === 0 ? {} : { env_vars: passed }),
    ...unlessEmpty('env', spellAll(literal, codex, {})),
  }
}

const isVariable = (value: Value = [], name?: string) => {
  const [piece] = value
  if (value.length !== 1 || typeof piece !== 'object' || !('variable' in piece)) return false
  return name === undefined || piece.variable === name
}

function codexRemote({ url, headers }: Extract<Launch, { transport: 'http' }>): JsonObject {
  const literal: Record<string, string> = {}
  const named: Record<string, string> = {}
  let bearer: string | undefined
  for (const [name, value] of Object.entries(headers)) {
    const variable = value.map((piece) => (typeof piece === 'object' && 'variable' in piece ? piece.variable : ''))
    if (value.every((piece) => typeof piece === 'string')) literal[name] = spell(value, codex, {})
    else if (isVariable(value)) named[name] = variable.join('')
    else if (/^authorization$/i.test(name) && value[0] === 'Bearer ' && isVariable(value.slice(1)))
      bearer = variable.join('')
    else
      throw misused(
        `Codex takes a whole header from a variable, or a bearer token: --token-env NAME, or --header '${name}: \${NAME}'.`,
      )
  }
  return {
    url,
    ...defined({ bearer_token_env_var: bearer }),
    ...unlessEmpty('http_headers', literal),
    ...unlessEmpty('env_http_headers', named),
  }
}

const geminiSpelling: Spelling = { variable: (name) => `\${${name}}`, fills: /\$[\w{]/ }

const geminiFolder = (place: Place) => joined(place, saying(place, 'GEMINI_CLI_HOME') ?? place.home, '.gemini')

export const geminiCli: Host = {
  id: 'gemini-cli',
  title: 'Gemini CLI',
  format: 'json',
  refuses: { comments: false, trailingCommas: true },
  resources: '@ lists them and puts one into the prompt; the model can list and read them. No templates.',
  docs: 'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md',
  files: {
    user: (place) => [joined(place, geminiFolder(place), 'settings.json')],
    project: inProject('.gemini', 'settings.json'),
  },
  traces: { programs: ['gemini'], paths: (place) => [geminiFolder(place)] },
  serversAt: () => ['mcpServers'],
  // Its policies treat the text before the first _ as the whole server name.
  nameOf: (name) => name.replaceAll('_', '-'),
  entryOf: (launch) => {
    if (launch.transport === 'http') {
      const headers = spellAll(launch.headers, geminiCli, geminiSpelling)
      return { value: { url: launch.url, type: 'http', ...unlessEmpty('headers', headers) } }
    }
    const [command, ...args] = spellCommand(launch, geminiCli, geminiSpelling)
    return { value: { command, args, ...unlessEmpty('env', spellAll(launch.env, geminiCli, geminiSpelling)) } }
  },
  foundIn: ({ httpUrl, ...rest }) => {
    const found = claudeCode.foundIn(rest)
    return typeof httpUrl === 'string' ? { ...found, url: httpUrl } : found
  },
  next: 'Start Gemini CLI anew; /mcp lists its servers. It starts servers only in folders that are trusted.',
}

const gooseDescription = 'Resources of hikidashi'
const gooseTimeoutSeconds = 300

const gooseFolder = (place: Place) =>
  place.platform === 'win32'
    ? joined(place, applicationFolder(place), 'Block', 'goose', 'config')
    : joined(place, configFolder(place), 'goose')

export const goose: Host = {
  id: 'goose',
  title: 'Goose',
  format: 'yaml',
  resources: 'The model gets tools that list and read them.',
  docs: 'https://github.com/block/goose/blob/main/documentation/docs/getting-started/using-extensions.md',
  files: { user: (place) => [joined(place, gooseFolder(place), 'config.yaml')] },
  traces: { programs: ['goose'], paths: (place) => [gooseFolder(place)] },
  serversAt: () => ['extensions'],
  // Goose finds an extension by its name in lower case.
  nameOf: (name) => name.toLowerCase(),
  entryOf: (launch, { name }) => ({
    value: launch.transport === 'http' ? gooseRemote(launch, name) : gooseLocal(launch, name),
  }),
  foundIn: ({ cmd, args, uri }) => ({
    ...(typeof cmd === 'string' ? { command: [cmd, ...strings(args)] } : {}),
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
        : [['cmd', 'npx'], ...strings(value.args).map((arg): [string, string] => ['arg', arg])],
    )
    for (const [key, text] of [
      ['id', name],
      ['name', name],
      ['description', gooseDescription],
    ] as const)
      query.append(key, text)
    return [{ label: 'As a link', text: `goose://extension?${query.toString().replaceAll('+', '%20')}` }]
  },
  next: 'Start a new session of Goose.',
}

/** The variables that Goose looks up in its environment or its secret store. */
function variablesIn(values: readonly Value[]): readonly string[] {
  return values.flat().flatMap((piece) => (typeof piece === 'object' && 'variable' in piece ? [piece.variable] : []))
}

function gooseLocal(launch: Extract<Launch, { transport: 'stdio' }>, name: string): JsonObject {
  const [cmd, ...args] = spellCommand(launch, goose, {})
  const keys = variablesIn(Object.values(launch.env))
  const literal = Object.fromEntries(Object.entries(launch.env).filter(([key]) => !keys.includes(key)))
  return {
    type: 'stdio',
    name,
    description: gooseDescription,
    cmd,
    args,
    ...unlessEmpty('envs', spellAll(literal, goose, {})),
    ...unlessEmpty('env_keys', keys),
    enabled: true,
    timeout: gooseTimeoutSeconds,
  }
}

function gooseRemote({ url, headers }: Extract<Launch, { transport: 'http' }>, name: string): JsonObject {
  const keys = variablesIn(Object.values(headers))
  const spelling = { variable: (variable: string) => `\${${variable}}`, fills: /\$[\w{]/ }
  const written = Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [key, spell(value, goose, spelling)]),
  )
  return {
    type: 'streamable_http',
    name,
    description: gooseDescription,
    uri: url,
    ...unlessEmpty('headers', written),
    ...unlessEmpty('env_keys', keys),
    enabled: true,
    timeout: gooseTimeoutSeconds,
  }
}

const opencodeSpelling: Spelling = { variable: (name) => `{env:${name}}`, fills: /\{(?:env|file):/ }

const filesIn = (place: Place, ...folder: readonly string[]) =>
  ['opencode.json', 'opencode.jsonc'].map((name) => joined(place, ...folder, name))

const opencodeFolder = (place: Place) => joined(place, configFolder(place), 'opencode')

/** Version 2 keeps servers one level deeper, and still reads the place of version 1. */
const isSecond = (settings: unknown) => {
  const servers = valueAt(settings, ['mcp', 'servers'])
  return isObject(servers) && typeof servers.type !== 'string'
}

export const opencode: Host = {
  id: 'opencode',
  title: 'opencode',
  format: 'json',
  resources: '@ lists all of them and attaches one; newer versions let the model list and read them too.',
  docs: 'https://opencode.ai/docs/mcp-servers/',
  files: {
    user: (place) => filesIn(place, opencodeFolder(place)),
    project: (place) => [...filesIn(place, place.folder), ...filesIn(place, place.folder, '.opencode')],
  },
  traces: { programs: ['opencode'], paths: (place) => [opencodeFolder(place)] },
  serversAt: (settings) => (isSecond(settings) ? ['mcp', 'servers'] : ['mcp']),
  entryOf: (launch, _, settings) => {
    const enabled = isSecond(settings) ? {} : { enabled: true }
    if (launch.transport === 'http') {
      const headers = unlessEmpty('headers', spellAll(launch.headers, opencode, opencodeSpelling))
      return { value: { type: 'remote', url: launch.url, ...headers, ...enabled } }
    }
    const environment = unlessEmpty('environment', spellAll(launch.env, opencode, opencodeSpelling))
    return {
      value: { type: 'local', command: spellCommand(launch, opencode, opencodeSpelling), ...environment, ...enabled },
    }
  },
  foundIn: ({ command, url }) => ({
    ...(Array.isArray(command) ? { command: strings(command) } : {}),
    ...(typeof url === 'string' ? { url } : {}),
  }),
  next: 'Start opencode anew; opencode mcp list shows its servers.',
}
