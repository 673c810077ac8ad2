import { resolve } from 'node:path'
import { findOwn } from '../../secrets/find.ts'
import { kindOfKey } from '../../secrets/keys.ts'
import { misused } from '../terminal/exit.ts'
import { npxCommand, ownCommand } from './own-command.ts'
import type { Launch, Piece, Value } from './types.ts'

export interface LaunchOptions {
  /** Folders and a configuration of this machine, as absolute paths. */
  readonly folders: readonly string[]
  readonly config?: string
  readonly npx?: boolean
  /** Variables that the server needs, by name, or `NAME=value` for what is no secret. */
  readonly env: readonly string[]
}

export interface RemoteOptions {
  readonly url: string
  readonly headers: readonly string[]
  readonly tokenVariable?: string
  readonly asksToken?: boolean
}

/** A server that the host starts. */
export function localLaunch({ folders, config, npx, env }: LaunchOptions): Launch {
  const paths = [...folders, ...(config === undefined ? [] : [config])].map((path) => resolve(path))
  const args = [
    'serve',
    ...folders.map((folder) => resolve(folder)),
    ...(config === undefined ? [] : ['--config', resolve(config)]),
    '--stdio',
  ]
  const command = npx === true ? npxCommand(args) : ownCommand(args)
  if (command[0] === 'cmd') paths.forEach(refuseForCmd)
  return {
    transport: 'stdio',
    command: command.map((word) => (paths.includes(word) ? { path: word } : word)),
    env: Object.fromEntries(env.map(variableOf)),
  }
}

/** Refuses characters that `cmd /c` interprets, and that hosts do not escape when they start it. */
function refuseForCmd(path: string): void {
  const [character] = /[&|<>^%!"()=;,`'\p{Cc}]/u.exec(path) ?? []
  if (character !== undefined)
    throw misused(
      `${path} cannot be handed to npx on Windows: cmd would take its ${character} for something else. Leave --npx out, or rename the folder.`,
    )
}

/** A server that runs somewhere. */
export function remoteLaunch({ url, headers, tokenVariable, asksToken }: RemoteOptions): Launch {
  refuseUrl(url)
  const token: readonly Piece[] = [
    ...(tokenVariable === undefined ? [] : [{ variable: variableName(tokenVariable) }]),
    ...(asksToken === true ? [{ input: 'token' }] : []),
  ]
  const authorization = token.map((piece): [string, Value] => ['Authorization', ['Bearer ', piece]])
  const all = [...headers.map(headerOf), ...authorization]
  const names = all.map(([name]) => name.toLowerCase())
  const twice = all.find(([name], i) => names.indexOf(name.toLowerCase()) !== i)
  if (twice !== undefined) throw misused(`The header ${twice[0]} is given twice.`)
  return { transport: 'http', url, headers: Object.fromEntries(all) }
}

const howToKeep =
  'Files of hosts are read by other programs, backed up and shared. Keep it in an environment variable, and name that'

function refuseUrl(url: string): void {
  if (!URL.canParse(url)) throw misused('--url is not a URL. It is like https://context.example.org/mcp.')
  const { protocol, username, password, searchParams, hash } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') throw misused('--url begins with http:// or https://.')
  const isSecret = [...searchParams].some(([name, value]) => value !== '' && kindOfKey(name) !== undefined)
  if (username !== '' || password !== '' || isSecret || hasSecret(url))
    throw misused(`There is a secret in the URL. ${howToKeep}: --token-env NAME sends it as a header instead.`)
  if (hash !== '') throw misused('What follows # in a URL never reaches a server. Leave it out.')
}

function headerOf(header: string): [string, Value] {
  const colon = header.indexOf(':')
  const name = header.slice(0, colon).trim()
  const value = pieces(header.slice(colon + 1).trim())
  const literal = value.filter((piece) => typeof piece === 'string').join('')
  const plain = literal.replace(/^(?:bearer|basic|digest|token|apikey)\s+/i, '').trim()
  if ((kindOfKey(name) !== undefined && plain !== '') || hasSecret(literal))
    throw misused(
      `The header ${name} holds a secret. ${howToKeep}: --header '${name}: \${NAME}' (in single quotes), or --token-env NAME for a bearer token.`,
    )
  return [name, value]
}

/** Text with `${NAME}` for environment variables. */
function pieces(text: string): Value {
  return text
    .split(/(\$\{[A-Za-z_][A-Za-z0-9_]*\})/)
    .filter((part) => part !== '')
    .map((part) => (/^\$\{\w+\}$/.test(part) ? { variable: part.slice(2, -1) } : part))
}

function variableOf(text: string): [string, Value] {
  const equals = text.indexOf('=')
  if (equals === -1) return [variableName(text), [{ variable: text }]]
  const [name, value] = [variableName(text.slice(0, equals)), text.slice(equals + 1)]
  if ((kindOfKey(name) !== undefined && value !== '') || hasSecret(value))
    throw misused(`The variable ${name} holds a secret. ${howToKeep} alone: --env ${name}.`)
  return [name, [value]]
}

function variableName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name
  throw misused('An environment variable is named by letters, digits and _. Give its name, not what is in it.')
}

const hasSecret = (text: string) => findOwn(text, { path: 'value.txt' }).length > 0
