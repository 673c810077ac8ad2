import { posix, win32 } from 'node:path'
import { misused } from '../terminal/exit.ts'
import type { Host, Launch, Place, Value } from './types.ts'

/** Notation of a host for values that it fills in. */
export interface Spelling {
  readonly variable?: (name: string) => string
  readonly input?: (id: string) => string
  /** Pattern of text that the host would replace, and that cannot be escaped. */
  readonly fills?: RegExp
  /** Advice if the host does not replace variables. */
  readonly otherwise?: string
  /** Placeholder for the folder of the project. */
  readonly folder?: string
}

type Named = Pick<Host, 'title'>

/**
 * Writes a value in the notation of a host.
 *
 * @throws CommandError if the host has no notation for it.
 */
export function spell(value: Value, { title }: Named, { variable, input, fills, otherwise }: Spelling): string {
  return value
    .map((piece) => {
      if (typeof piece === 'string') return literal(piece, title, fills)
      if ('variable' in piece) {
        if (variable !== undefined) return variable(piece.variable)
        throw misused(`${title} cannot take a value from an environment variable. ${otherwise ?? ''}`.trim())
      }
      if (input !== undefined) return input(piece.input)
      throw misused(`${title} cannot ask for a token. Give --token-env NAME, the variable that holds the token.`)
    })
    .join('')
}

function literal(text: string, title: string, fills: RegExp | undefined): string {
  if (fills?.test(text) !== true) return text
  throw misused(
    `${title} would replace a part of ${JSON.stringify(text)}, and has no escape for it. Rename the file or folder.`,
  )
}

export function spellAll(
  values: Readonly<Record<string, Value>>,
  host: Named,
  spelling: Spelling,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, spell(value, host, spelling)]))
}

type Stdio = Extract<Launch, { transport: 'stdio' }>

/**
 * The words of a command line in the notation of a host. Paths in the project are relative to its folder, if the host has a
 * variable for it.
 */
export function spellCommand(
  { command }: Pick<Stdio, 'command'>,
  host: Named,
  { fills, folder }: Spelling,
  place?: Place,
): readonly [string, ...string[]] {
  const words = command.map((word) => {
    const text = typeof word === 'string' ? word : word.path
    const below = typeof word === 'string' || place === undefined ? undefined : belowFolder(text, place)
    if (folder !== undefined && below !== undefined)
      return literal(below, host.title, fills) === '' ? folder : `${folder}/${below}`
    return literal(text, host.title, fills)
  })
  const [program = '', ...args] = words
  return [program, ...args]
}

/** The path relative to the folder of the project; undefined for a path elsewhere. */
function belowFolder(path: string, { platform, folder }: Place): string | undefined {
  const { relative, isAbsolute, sep } = platform === 'win32' ? win32 : posix
  const below = relative(folder, path)
  if (isAbsolute(below) || below === '..' || below.startsWith(`..${sep}`)) return undefined
  return below.split(sep).join('/')
}

/** Undefined for an empty object. */
export function unlessEmpty<K extends string, T extends object>(key: K, values: T): { readonly [P in K]?: T } {
  return Object.keys(values).length === 0 ? {} : ({ [key]: values } as { readonly [P in K]: T })
}
