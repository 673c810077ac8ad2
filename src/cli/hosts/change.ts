import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { maxDiffEdits, unifiedDiff } from '../../core/kit/line-diff.ts'
import { defined } from '../../core/kit/object.ts'
import { leadsOut } from '../../schema/values.ts'
import { redactPhrase } from '../../secrets/find.ts'
import { CommandError, commandFailure, usageError } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { escapeLines } from '../terminal/text.ts'
import { type HostFile, readHostFile } from './files.ts'
import { settingsEditorFor } from './format.ts'
import {
  type EntryLaunch,
  type Host,
  type HostEntry,
  type HostScope,
  hostScopes,
  isPlainData,
  type JsonObject,
  joinPath,
  type Machine,
  type SettingsEditor,
  valueAt,
} from './types.ts'

export interface OpenedHostFile {
  readonly host: Host
  readonly scope: HostScope
  readonly before: HostFile
  readonly format: SettingsEditor
  readonly settings: unknown
}

/**
 * Returns the first existing file that the host reads in a scope, else the one that it would create. @throws
 * CommandError for a scope that the host does not have
 */
export function hostSettingsFile(host: Host, scope: HostScope, machine: Machine): string {
  const names = host.files[scope]?.(machine) ?? []
  const file = names.find((name) => existsSync(name)) ?? names[0]
  if (file !== undefined) return file
  throw usageError(
    `${host.title} has no settings for a ${scope}. It has them for a ${Object.keys(host.files).join(', ')}.`,
  )
}

/** @throws CommandError if the file cannot be read or parsed, or is a link out of the project */
export async function openHostFile(host: Host, scope: HostScope, machine: Machine): Promise<OpenedHostFile> {
  const file = hostSettingsFile(host, scope, machine)
  // A project may come from elsewhere, so its links are not those of the user.
  if (scope === 'project' && leadsOut(file, machine.folder))
    throw commandFailure(
      `${file} leads out of ${machine.folder} through a symbolic link, so it was not read or changed. Remove the link, or use the settings file of the user: --scope user.`,
    )
  const before = await readHostFile(file)
  const format = settingsEditorFor(host, before.file)
  return { host, scope, before, format, settings: format.parse(before.text ?? '') }
}

export function serversOf({ host, settings }: OpenedHostFile): Readonly<Record<string, JsonObject>> {
  const servers = valueAt(settings, host.serversAt(settings))
  if (!isPlainData(servers)) return {}
  return Object.fromEntries(Object.entries(servers).filter(([, value]) => isPlainData(value))) as Record<
    string,
    JsonObject
  >
}

/** Judges an entry by its program and the word `serve` after it; one with a URL by the name of the entry. */
export function startsHikidashi(name: string, { command }: EntryLaunch): boolean {
  if (command === undefined) return /hikidashi/i.test(name)
  return command.some((word, i) => {
    if (/(?:^|[\\/])hikidashi(?:\.cmd|\.exe)?(?:@[\w.-]+)?$/.test(word)) return command[i + 1] === 'serve'
    return /[\\/]cli[\\/]main\.js$/.test(word) && command[i + 1] === 'serve'
  })
}

/** Returns the text of the file with an entry and its inputs; unchanged if the file has the same. */
export function withEntry({ host, before, format, settings }: OpenedHostFile, name: string, entry: HostEntry): string {
  const path = [...host.serversAt(settings), name]
  const text = before.text ?? ''
  const isThere = isDeepStrictEqual({ ...(valueAt(settings, path) as object | undefined) }, { ...entry.value })
  const set = isThere ? text : format.set(text, path, entry.value)
  return (entry.inputs ?? []).reduce((whole, input) => {
    const list = valueAt(format.parse(whole), ['inputs'])
    const inputs = Array.isArray(list) ? list : []
    const at = inputs.findIndex((other: unknown) => isPlainData(other) && other.id === input.id)
    if (at !== -1) return whole
    return list === undefined
      ? format.set(whole, ['inputs'], [input])
      : format.set(whole, ['inputs', inputs.length], input)
  }, set)
}

/** Returns the text without an entry, and without the inputs for its token if no other entry uses them. */
export function withoutEntry(file: OpenedHostFile, name: string): string {
  const { host, before, format, settings } = file
  const { text = '' } = before
  const value = serversOf(file)[name]
  if (value === undefined) return text
  const rest = format.remove(text, [...host.serversAt(settings), name])
  return inputsFor(settings, name, value).reduceRight((whole, at) => format.remove(whole, ['inputs', at]), rest)
}

function inputsFor(settings: unknown, name: string, value: JsonObject): readonly number[] {
  const list = valueAt(settings, ['inputs'])
  const [whole, own] = [JSON.stringify(settings), JSON.stringify(value)]
  const uses = (text: string, id: string) => text.split(`\${input:${id}}`).length - 1
  return (Array.isArray(list) ? list : []).flatMap((input: unknown, at) => {
    if (!isPlainData(input) || input.id !== `${name}-token`) return []
    return uses(own, input.id) === uses(whole, input.id) ? [at] : []
  })
}

/**
 * Returns a unified diff, as `patch` reads it; empty for equal states. For too many changes, a sentence replaces the
 * hunks. `undefined` is the state without the file.
 */
export function fileDiff(file: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  const names = [before === undefined ? '/dev/null' : file, after === undefined ? '/dev/null' : file]
  const hunks = unifiedDiff(before ?? '', after ?? '') ?? `More than ${maxDiffEdits} lines differ.\n`
  return `--- ${names[0]}\n+++ ${names[1]}\n${hunks}`
}

/** Likely secrets in context lines and removed lines are redacted, because people share diffs. */
export async function showDiff(diff: string, { out }: Pick<Io, 'out'>): Promise<void> {
  const clean = diff.replace(/^[ -](?!-- ).*$/gm, redactPhrase)
  await out.write(out.isTerminal ? escapeLines(clean) : clean)
}

/** An entry that starts hikidashi. */
export interface OwnServer {
  readonly name: string
  readonly transport: 'stdio' | 'http'
  /** The command line, or the URL without user, password and query. */
  readonly target: string
  /** The program or script of the entry, if it does not exist. */
  readonly missing?: string
}

export interface HostFileReport {
  readonly scope: HostScope
  readonly file: string
  readonly exists: boolean
  readonly servers: readonly OwnServer[]
  readonly problem?: string
}

export interface HostReport {
  readonly host: string
  readonly title: string
  readonly found: boolean
  readonly resources: string
  readonly docs: string
  readonly files: readonly HostFileReport[]
}

export async function reportHost(host: Host, machine: Machine): Promise<HostReport> {
  const { id, title, resources, docs } = host
  const own = hostScopes.filter((scope) => host.files[scope] !== undefined)
  const files: HostFileReport[] = []
  for (const scope of own) files.push(await reportFile(host, scope, machine))
  return { host: id, title, found: isInstalled(host, machine), resources, docs, files }
}

/** Whether a program of the host is on the PATH, or one of its folders or files exists. */
export function isInstalled({ traces }: Host, machine: Machine): boolean {
  return (
    traces.paths(machine).some((path) => existsSync(path)) || traces.programs.some((name) => isProgram(name, machine))
  )
}

function isProgram(name: string, machine: Machine): boolean {
  const { platform, env } = machine
  const isWindows = platform === 'win32'
  const endings = isWindows ? (env.PATHEXT ?? '.EXE;.CMD;.BAT').split(';') : ['']
  const folders = (env.PATH ?? env.Path ?? '').split(isWindows ? ';' : ':').filter((folder) => folder !== '')
  return folders.some((folder) => endings.some((ending) => existsSync(joinPath(machine, folder, name + ending))))
}

async function reportFile(host: Host, scope: HostScope, machine: Machine): Promise<HostFileReport> {
  const file = hostSettingsFile(host, scope, machine)
  const exists = existsSync(file)
  try {
    const servers = Object.entries(serversOf(await openHostFile(host, scope, machine))).flatMap(([name, value]) => {
      const launch = host.foundIn(value)
      return startsHikidashi(name, launch) ? [ownServer(name, launch, machine)] : []
    })
    return { scope, file, exists, servers }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return { scope, file, exists, servers: [], problem: error.message }
  }
}

function ownServer(name: string, { command = [], url = '' }: EntryLaunch, machine: Machine): OwnServer {
  if (command.length === 0) return { name, transport: 'http', target: withoutSecrets(url) }
  const missing = missingIn(command, machine)
  return { name, transport: 'stdio', target: command.join(' '), ...defined({ missing }) }
}

function missingIn([program = '', script = '']: readonly string[], machine: Machine): string | undefined {
  if (isAbsolute(program) ? !existsSync(program) : !isProgram(program, machine)) return program
  return isAbsolute(script) && /\.[cm]?js$/.test(script) && !existsSync(script) ? script : undefined
}

function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return '(not a URL)'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}
