import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { parse, relative, resolve } from 'node:path'
import { pathExistenceFindings } from '../../config/folder.ts'
import { defaultConfigName } from '../../config/state-folder.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { defined } from '../../core/kit/object.ts'
import { findSecretsByRules } from '../../secrets/find.ts'
import { secretNameStrength } from '../../secrets/keys.ts'
import { headerPattern, isPublished, npxCommand, ownCommand } from '../operations/command-line.ts'
import { splitHeaderPair } from '../operations/headers.ts'
import { loadLocalConfig, withheldNote } from '../operations/withheld.ts'
import { commandFailure, usageError } from '../terminal/exit.ts'
import type { HostValue, HostValuePiece, Launch } from './types.ts'

export interface AddLaunchOptions {
  readonly config?: string
  readonly url?: string
  readonly header?: readonly string[]
  readonly headerEnv?: readonly string[]
  readonly tokenEnv?: string
  readonly tokenPrompt?: true
  readonly env?: readonly string[]
  readonly npx?: true
}

/** @throws CommandError for missing files, contradictions and secrets */
export async function launchFor(folders: readonly string[], options: AddLaunchOptions): Promise<Launch> {
  const { url, header: literal = [], headerEnv = [], tokenEnv, tokenPrompt, config, npx, env = [] } = options
  const headers = [...literal, ...headerEnv.map(splitHeaderPair).map(([name, variable]) => `${name}: \${${variable}}`)]
  if (url !== undefined) {
    if (folders.length > 0) throw usageError('Give folders or --url, not both. A running server has its own folders.')
    return remoteLaunch({
      url,
      headers,
      ...defined({ tokenVariable: tokenEnv }),
      ...(tokenPrompt === undefined ? {} : { asksToken: true }),
    })
  }
  for (const [argument, name] of [
    [literal.length > 0, '--header'],
    [headerEnv.length > 0, '--header-env'],
    [tokenEnv !== undefined, '--token-env'],
    [tokenPrompt, '--token-prompt'],
  ])
    if (argument) throw usageError(`${name} needs --url.`)
  if (npx && !isPublished())
    throw usageError(
      'hikidashi is not in the registry of npm yet, so npx would not find it. Leave out --npx: the host then starts this installation.',
    )
  const target = await servedHere(folders, config)
  return localLaunch({ ...target, env, ...defined({ npx }) })
}

/**
 * The host would name the configuration with --config, which needs no trust. @throws CommandError for parts that need
 * trust
 */
async function refuseUntrusted(file: string): Promise<void> {
  const { isTrustedConfig } = await import('../../config/untrusted.ts')
  if (await isTrustedConfig(file, await readFile(file))) return
  const loadResult = await loadLocalConfig(file, false)
  if ('problems' in loadResult) throw commandFailure(`${file} has problems. To see them: hikidashi check`)
  const note = withheldNote(loadResult.config)
  if (note !== undefined) throw commandFailure(`${note}. Or name it: --config ${file}`)
}

async function servedHere(folders: readonly string[], config: string | undefined) {
  for (const folder of folders) {
    if (folder === '') throw usageError('The name of a folder is empty.')
    const [finding] = await pathExistenceFindings('folder', resolve(folder))
    if (finding !== undefined) throw commandFailure(finding.message)
  }
  const assumed = config === undefined && folders.length === 0
  const file = config ?? (assumed && existsSync(defaultConfigName) ? defaultConfigName : undefined)
  if (file !== undefined) {
    const [finding] = await pathExistenceFindings('file', resolve(file))
    if (finding !== undefined) throw commandFailure(finding.message)
    if (config === undefined) await refuseUntrusted(file)
    return { folders, config: file }
  }
  if (!assumed) return { folders }
  const here = process.cwd()
  if (here === parse(here).root || relative(here, homeFolder()) === '')
    throw usageError(`The current folder is ${here}, which is too much to serve. Name a folder, or give --config FILE.`)
  return { folders: [here] }
}

interface LaunchOptions {
  readonly folders: readonly string[]
  readonly config?: string
  readonly npx?: boolean
  /** Names of variables, or `NAME=value` for a value that is not secret. */
  readonly env: readonly string[]
}

interface RemoteOptions {
  readonly url: string
  readonly headers: readonly string[]
  readonly tokenVariable?: string
  readonly asksToken?: boolean
}

/** The paths become absolute, because hosts start servers in other folders. */
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

/**
 * Hosts do not escape the words of a command for `cmd`. @throws CommandError for a path with a character that `cmd /c`
 * interprets
 */
function refuseForCmd(path: string): void {
  const [character] = /[&|<>^%!"()=;,`'\p{Cc}]/u.exec(path) ?? []
  if (character !== undefined)
    throw usageError(
      `The path ${path} cannot be passed to npx on Windows, because cmd would interpret its ${character}. Leave out --npx, or rename the file or folder.`,
    )
}

export function remoteLaunch({ url, headers, tokenVariable, asksToken }: RemoteOptions): Launch {
  refuseUrl(url)
  const token: readonly HostValuePiece[] = [
    ...(tokenVariable === undefined ? [] : [{ variable: variableName(tokenVariable) }]),
    ...(asksToken === true ? [{ input: 'token' }] : []),
  ]
  const authorization = token.map((piece): [string, HostValue] => ['Authorization', ['Bearer ', piece]])
  const all = [...headers.map(headerOf), ...authorization]
  const names = all.map(([name]) => name.toLowerCase())
  const twice = all.find(([name], i) => names.indexOf(name.toLowerCase()) !== i)
  if (twice !== undefined) throw usageError(`The header ${twice[0]} is given twice.`)
  return { transport: 'http', url, headers: Object.fromEntries(all) }
}

const howToKeep =
  'Files of hosts are read by other programs, backed up and shared. Keep the secret in an environment variable, and give the name of the variable'

function refuseUrl(url: string): void {
  if (!URL.canParse(url)) throw usageError('--url is not a URL. Write one such as https://context.example.org/mcp.')
  const { protocol, username, password, searchParams, hash } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') throw usageError('--url must begin with http:// or https://.')
  const isSecret = [...searchParams].some(([name, value]) => value !== '' && secretNameStrength(name) !== undefined)
  if (username !== '' || password !== '' || isSecret || hasSecret(url))
    throw usageError(`The URL contains a secret. ${howToKeep}: --token-env NAME sends it as a header instead.`)
  if (hash !== '') throw usageError('Remove the part after # in the URL: it is never sent to a server.')
}

function headerOf(header: string): [string, HostValue] {
  if (!headerPattern.test(header)) throw usageError('Write a header as "Name: value".')
  const colon = header.indexOf(':')
  const name = header.slice(0, colon).trim()
  const value = pieces(header.slice(colon + 1).trim())
  const literal = value.filter((piece) => typeof piece === 'string').join('')
  const plain = literal.replace(/^(?:bearer|basic|digest|token|apikey)\s+/i, '').trim()
  if ((secretNameStrength(name) !== undefined && plain !== '') || hasSecret(literal))
    throw usageError(
      `The header ${name} holds a secret. ${howToKeep}: --header '${name}: \${NAME}' (in single quotes), or --token-env NAME for a bearer token.`,
    )
  return [name, value]
}

/** Parses a text in which `${NAME}` stands for an environment variable. */
function pieces(text: string): HostValue {
  return text
    .split(/(\$\{[A-Za-z_][A-Za-z0-9_]*\})/)
    .filter((part) => part !== '')
    .map((part) => (/^\$\{\w+\}$/.test(part) ? { variable: part.slice(2, -1) } : part))
}

function variableOf(text: string): [string, HostValue] {
  const equals = text.indexOf('=')
  if (equals === -1) return [variableName(text), [{ variable: text }]]
  const [name, value] = [variableName(text.slice(0, equals)), text.slice(equals + 1)]
  if ((secretNameStrength(name) !== undefined && value !== '') || hasSecret(value))
    throw usageError(`The variable ${name} holds a secret. ${howToKeep} alone: --env ${name}.`)
  return [name, [value]]
}

function variableName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name
  throw usageError(
    'The name of an environment variable has letters, digits and _, and begins with no digit. Give the name, not the value.',
  )
}

const hasSecret = (text: string) => findSecretsByRules(text, { path: 'value.txt' }).length > 0
