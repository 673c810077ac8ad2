import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { defined } from '../../core/kit/defined.ts'
import { CommandError } from '../terminal/exit.ts'
import { fileOf, isOurs, openHostFile, serversOf } from './change.ts'
import { type Found, type Host, joined, type Place, type Scope, scopes } from './types.ts'

/** An entry of hikidashi in a host's file. */
export interface OwnServer {
  readonly name: string
  readonly transport: 'stdio' | 'http'
  /** The command line, or the URL without possible secrets. */
  readonly target: string
  /** A missing requirement of the entry. */
  readonly missing?: string
}

export interface FileReport {
  readonly scope: Scope
  readonly file: string
  readonly exists: boolean
  readonly servers: readonly OwnServer[]
  /** Why the file cannot be read. */
  readonly problem?: string
}

/** A host on this machine. */
export interface HostReport {
  readonly host: string
  readonly title: string
  readonly found: boolean
  readonly resources: string
  readonly docs: string
  readonly files: readonly FileReport[]
}

export async function reportHost(host: Host, place: Place): Promise<HostReport> {
  const { id, title, resources, docs } = host
  const own = scopes.filter((scope) => host.files[scope] !== undefined)
  const files: FileReport[] = []
  for (const scope of own) files.push(await reportFile(host, scope, place))
  return { host: id, title, found: isFound(host, place), resources, docs, files }
}

/** Whether a host seems to be installed: by a program of its name, or a folder that it makes. */
export function isFound({ traces }: Host, place: Place): boolean {
  return traces.paths(place).some((path) => existsSync(path)) || traces.programs.some((name) => isProgram(name, place))
}

function isProgram(name: string, place: Place): boolean {
  const { platform, env } = place
  const isWindows = platform === 'win32'
  const endings = isWindows ? (env.PATHEXT ?? '.EXE;.CMD;.BAT').split(';') : ['']
  const folders = (env.PATH ?? env.Path ?? '').split(isWindows ? ';' : ':').filter((folder) => folder !== '')
  return folders.some((folder) => endings.some((ending) => existsSync(joined(place, folder, name + ending))))
}

async function reportFile(host: Host, scope: Scope, place: Place): Promise<FileReport> {
  const file = fileOf(host, scope, place)
  const exists = existsSync(file)
  try {
    const servers = Object.entries(serversOf(await openHostFile(host, scope, place))).flatMap(([name, value]) => {
      const found = host.foundIn(value)
      return isOurs(name, found) ? [ownServer(name, found, place)] : []
    })
    return { scope, file, exists, servers }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return { scope, file, exists, servers: [], problem: error.message }
  }
}

function ownServer(name: string, { command = [], url = '' }: Found, place: Place): OwnServer {
  if (command.length === 0) return { name, transport: 'http', target: withoutSecrets(url) }
  const missing = missingIn(command, place)
  return { name, transport: 'stdio', target: command.join(' '), ...defined({ missing }) }
}

/** The program, or the script that the program runs. */
function missingIn([program = '', script = '']: readonly string[], place: Place): string | undefined {
  if (isAbsolute(program) ? !existsSync(program) : !isProgram(program, place)) return program
  return isAbsolute(script) && /\.[cm]?js$/.test(script) && !existsSync(script) ? script : undefined
}

function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return '(not a URL)'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}
