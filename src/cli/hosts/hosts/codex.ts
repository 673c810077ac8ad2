import { defined } from '../../../core/kit/defined.ts'
import { joinCommand } from '../../operations/command-line.ts'
import { misused } from '../../terminal/exit.ts'
import { spell, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { type Host, inProject, joined, type Launch, type Place, saying, type Value } from '../types.ts'
import { type JsonObject, strings } from '../values.ts'
import { claudeCode } from './claude-code.ts'

const folderOf = (place: Place) => saying(place, 'CODEX_HOME') ?? joined(place, place.home, '.codex')

export const codex: Host = {
  id: 'codex',
  title: 'Codex',
  format: 'toml',
  resources: 'The model has tools that list resources and templates, and read one.',
  docs: 'https://developers.openai.com/codex/mcp',
  files: {
    user: (place) => [joined(place, folderOf(place), 'config.toml')],
    project: inProject('.codex', 'config.toml'),
  },
  traces: { programs: ['codex'], paths: (place) => [folderOf(place)] },
  serversAt: () => ['mcp_servers'],
  entryOf: (launch) => ({ value: launch.transport === 'http' ? remote(launch) : local(launch) }),
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

function local(launch: Extract<Launch, { transport: 'stdio' }>): JsonObject {
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

function remote({ url, headers }: Extract<Launch, { transport: 'http' }>): JsonObject {
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
