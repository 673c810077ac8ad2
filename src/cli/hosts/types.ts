import { posix, win32 } from 'node:path'
import { homeFolder } from '../../core/kit/home.ts'
import { usageError } from '../terminal/exit.ts'

export type HostValuePiece = string | { readonly variable: string } | { readonly input: string }

export type HostValue = readonly HostValuePiece[]

/** How a host reaches a server: it starts a command, or connects to a URL. */
export type Launch =
  | {
      readonly transport: 'stdio'
      /** Paths of this machine are marked, because a host may have another notation for them. */
      readonly command: readonly (string | { readonly path: string })[]
      readonly env: Readonly<Record<string, HostValue>>
    }
  | { readonly transport: 'http'; readonly url: string; readonly headers: Readonly<Record<string, HostValue>> }

export const hostScopes = ['user', 'project'] as const
/** Of an entry: for the user everywhere, or for everybody in a project. */
export type HostScope = (typeof hostScopes)[number]

/** The machine and the project folder in which the files of hosts are searched. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly folder: string
}

export interface HostEntry {
  readonly value: JsonObject
  /** Inputs that the host asks its user for, if its file has a list of them (`inputs` of VS Code). */
  readonly inputs?: readonly JsonObject[]
}

export interface EntryLaunch {
  readonly command?: readonly string[]
  readonly url?: string
}

export interface AddInstruction {
  readonly label: string
  readonly text: string
}

export interface EntryContext {
  readonly name: string
  readonly scope: HostScope
  readonly machine: Machine
}

export interface Host {
  readonly id: string
  readonly title: string
  readonly format: 'json' | 'toml' | 'yaml' | 'text'
  readonly refuses?: { readonly comments: boolean; readonly trailingCommas: boolean }
  /** How the host uses resources, in a few words. */
  readonly resources: string
  readonly docs: string
  /** Possible settings files in each scope. The first existing one is used, else the first. */
  readonly files: Readonly<Partial<Record<HostScope, (machine: Machine) => readonly string[]>>>
  /** Programs, and folders or files, that show that the host is installed. */
  readonly traces: { readonly programs: readonly string[]; readonly paths: (machine: Machine) => readonly string[] }
  /** Returns the path of keys to the servers. @param settings The parsed file. */
  serversAt(settings: unknown): readonly string[]
  /** Returns the name of an entry in the form that the host accepts. By default the name stays. */
  nameOf?(name: string): string
  /** @throws CommandError for a value that the host has no notation for */
  entryOf(launch: Launch, context: EntryContext, settings: unknown): HostEntry
  /** The result is empty for an entry in another form. */
  foundIn(value: JsonObject): EntryLaunch
  /** Returns commands and links that add the same entry. They contain no secret, because a shell stores its history. */
  waysOf?(launch: Launch, entry: HostEntry, context: EntryContext): readonly AddInstruction[]
  readonly next: string
}

export type KeyPath = readonly (string | number)[]

/** A format of settings that is edited in place: other values and comments stay. */
export interface SettingsEditor {
  /** @throws Error for a malformed text */
  parse(text: string): unknown
  /** @throws Error for a text that cannot be edited */
  set(text: string, path: KeyPath, value: Json): string
  remove(text: string, path: KeyPath): string
  /** Formats a value at a path as a separate text. */
  show(path: KeyPath, value: Json): string
}

export function thisMachine(folder = process.cwd()): Machine {
  return { platform: process.platform, env: process.env, home: homeFolder(), folder }
}

export function joinPath({ platform }: Pick<Machine, 'platform'>, ...parts: readonly string[]): string {
  return (platform === 'win32' ? win32 : posix).join(...parts)
}

/** Returns `undefined` for an unset or empty variable. */
export function environmentValue({ env }: Machine, name: string): string | undefined {
  const value = env[name]
  return value === undefined || value === '' ? undefined : value
}

/** The folder for settings of programs on Linux, and of terminal programs on macOS. */
export function configFolder(machine: Machine): string {
  return environmentValue(machine, 'XDG_CONFIG_HOME') ?? joinPath(machine, machine.home, '.config')
}

export function applicationFolder(machine: Machine): string {
  if (machine.platform === 'darwin') return joinPath(machine, machine.home, 'Library', 'Application Support')
  if (machine.platform !== 'win32') return configFolder(machine)
  return environmentValue(machine, 'APPDATA') ?? joinPath(machine, machine.home, 'AppData', 'Roaming')
}

export function projectFile(...parts: readonly string[]): (machine: Machine) => readonly string[] {
  return (machine) => [joinPath(machine, machine.folder, ...parts)]
}

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

export function isPlainData(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (typeof key === 'number') return Array.isArray(inner) ? inner[key] : undefined
    return isPlainData(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined
  }, value)
}

/** Returns a copy with `next` at a path; `undefined` removes the value. Missing containers are created. */
export function withValueAt(value: unknown, path: readonly (string | number)[], next: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return next
  if (typeof key === 'number') {
    const list = Array.isArray(value) ? [...value] : []
    const item = withValueAt(list[key], rest, next)
    list.splice(key, 1, ...(item === undefined ? [] : [item]))
    return list
  }
  const inner = withValueAt(valueAt(value, [key]), rest, next)
  const others = isPlainData(value) ? value : {}
  if (inner !== undefined) return { ...others, [key]: inner }
  return Object.fromEntries(Object.entries(others).filter(([name]) => name !== key))
}

/** The message is to be appended to the name of the file. */
export function settingsError(text: string, offset: number | undefined, message: string): Error {
  const error = new Error(offset === undefined ? `: ${message}` : `:${lineAndColumn(text, offset)}: ${message}`)
  error.name = 'FormatError'
  return error
}

function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  return `${line}:${offset - before.lastIndexOf('\n')}`
}

export function lineEndOf(text: string): string {
  return /\r?\n/.exec(text)?.[0] ?? '\n'
}

/** Returns a text without values, with a line end. White space alone is dropped. */
export function leadingComments(text: string): string {
  if (text.trim() === '') return ''
  return text.endsWith('\n') ? text : text + lineEndOf(text)
}

/** Returns an object for each key of a path, or an array for a number, with the value in the last one. */
export function nestedValue(path: KeyPath, value: Json): JsonObject {
  return path.reduceRight<Json>(
    (inner, key) => (typeof key === 'number' ? [inner] : { [key]: inner }),
    value,
  ) as JsonObject
}

export interface HostNotation {
  readonly variable?: (name: string) => string
  readonly input?: (id: string) => string
  /** Pattern of text that the host would replace, and that cannot be escaped. */
  readonly fills?: RegExp
  readonly otherwise?: string
  readonly folder?: string
}

type Titled = Pick<Host, 'title'>

/** @throws CommandError if the host has no notation for the value */
export function formatValue(
  value: HostValue,
  { title }: Titled,
  { variable, input, fills, otherwise }: HostNotation,
): string {
  return value
    .map((piece) => {
      if (typeof piece === 'string') return literal(piece, title, fills)
      if ('variable' in piece) {
        if (variable !== undefined) return variable(piece.variable)
        throw usageError(`${title} cannot take a value from an environment variable. ${otherwise ?? ''}`.trim())
      }
      if (input !== undefined) return input(piece.input)
      throw usageError(`${title} cannot ask for a token. Give --token-env NAME, the variable that holds the token.`)
    })
    .join('')
}

function literal(text: string, title: string, fills: RegExp | undefined): string {
  if (fills?.test(text) !== true) return text
  throw usageError(
    `${title} would take a part of ${JSON.stringify(text)} for a variable, and has no escape for it. Choose another name or value.`,
  )
}

export function formatValues(
  values: Readonly<Record<string, HostValue>>,
  host: Titled,
  spelling: HostNotation,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, formatValue(value, host, spelling)]))
}

/**
 * Returns the words in the notation of a host. If it has a placeholder for the project folder, paths in the project
 * begin with the placeholder.
 */
export function formatCommand(
  { command }: Pick<Extract<Launch, { transport: 'stdio' }>, 'command'>,
  host: Titled,
  { fills, folder }: HostNotation,
  machine?: Machine,
): readonly [string, ...string[]] {
  const words = command.map((word) => {
    const text = typeof word === 'string' ? word : word.path
    const below = typeof word === 'string' || machine === undefined ? undefined : belowFolder(text, machine)
    if (folder !== undefined && below !== undefined)
      return literal(below, host.title, fills) === '' ? folder : `${folder}/${below}`
    return literal(text, host.title, fills)
  })
  const [program = '', ...args] = words
  return [program, ...args]
}

/**
 * Returns the value of an entry in the form that most hosts use.
 * @param types The names of the transports, if entries of the host have them.
 */
export function defaultEntry(
  launch: Launch,
  host: Titled,
  spelling: HostNotation,
  { types, machine }: { types?: Partial<Record<Launch['transport'], string>>; machine?: Machine } = {},
): JsonObject {
  const type = types?.[launch.transport]
  const typeMember = type === undefined ? {} : { type }
  if (launch.transport === 'http')
    return { ...typeMember, url: launch.url, ...unlessEmpty('headers', formatValues(launch.headers, host, spelling)) }
  const [command, ...args] = formatCommand(launch, host, spelling, machine)
  return { ...typeMember, command, args, ...unlessEmpty('env', formatValues(launch.env, host, spelling)) }
}

function belowFolder(path: string, { platform, folder }: Machine): string | undefined {
  const { relative, isAbsolute, sep } = platform === 'win32' ? win32 : posix
  const below = relative(folder, path)
  if (isAbsolute(below) || below === '..' || below.startsWith(`..${sep}`)) return undefined
  return below.split(sep).join('/')
}

export function unlessEmpty<K extends string, T extends object>(key: K, values: T): { readonly [P in K]?: T } {
  return Object.keys(values).length === 0 ? {} : ({ [key]: values } as { readonly [P in K]: T })
}
