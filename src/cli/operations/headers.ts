import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { errorCodeOf } from '../../core/errors.ts'
import { usageError } from '../terminal/exit.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { headerPattern } from './command-line.ts'

/** Other users of a machine can read a command line, so secrets come from a variable or a file. */
export interface HeaderOptions {
  readonly header?: readonly string[]
  /** Written `NAME=VARIABLE`: the header and the environment variable with its value. */
  readonly headerEnv?: readonly string[]
  readonly bearerFile?: string
}

export function addHeaderOptions(command: Command): Command {
  return command
    .option(
      '--bearer-file <file>',
      'with --url: send the token in this file as the bearer token, which keeps it out of the list of processes',
    )
    .option(
      '--header-env <name=variable>',
      'with --url: send a header whose value is in an environment variable (repeatable)',
      addHeaderEnv,
    )
    .option('--header <header>', 'with --url: send a header that is not secret, "Name: value" (repeatable)', addHeader)
}

function addHeader(header: string, headers: readonly string[] = []): readonly string[] {
  if (!headerPattern.test(header)) throw new InvalidArgumentError('Write "Name: value".')
  return [...headers, header]
}

export function addHeaderEnv(pair: string, pairs: readonly string[] = []): readonly string[] {
  const [name = '', variable = ''] = splitHeaderPair(pair)
  if (!headerPattern.test(`${name}:`) || variable === '')
    throw new InvalidArgumentError(
      'Write NAME=VARIABLE: the name of a header, and the name of an environment variable.',
    )
  return [...pairs, pair]
}

/** The name of a header cannot contain an equals sign. Without one, the variable is empty. */
export function splitHeaderPair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=')
  return at === -1 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
}

/** @throws CommandError if a header option is given without a URL */
export function requireUrlForHeaders(options: HeaderOptions & { readonly url?: string }): void {
  if (options.url !== undefined) return
  if (options.header !== undefined) throw usageError('--header needs --url.')
  if (options.headerEnv !== undefined) throw usageError('--header-env needs --url.')
  if (options.bearerFile !== undefined) throw usageError('--bearer-file needs --url.')
}

/**
 * Adds values of variables and of the file to the secrets.
 * @throws CommandError for a variable or a file without a valid value, and for a header that is given twice
 */
export function headersOf(
  { header = [], headerEnv = [], bearerFile }: HeaderOptions,
  secrets: Pick<Secrets, 'add'>,
): Readonly<Record<string, string>> {
  const all: [string, string][] = header.map((text) => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon), text.slice(colon + 1).trim()]
  })
  for (const [name, variable] of headerEnv.map(splitHeaderPair)) {
    const value = (process.env[variable] ?? '').trim()
    if (value === '') throw usageError(`--header-env ${name}: The variable ${variable} is not set, or it is empty.`)
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw usageError(
        `--header-env ${name}: The variable ${variable} contains characters that a header must not contain.`,
      )
    secrets.add([value, value.replace(/^(?:bearer|basic|digest|token|apikey)\s+/i, '')])
    all.push([name, value])
  }
  if (bearerFile !== undefined) {
    const token = bearerTokenIn(bearerFile)
    secrets.add([token])
    all.push(['Authorization', `Bearer ${token}`])
  }
  const names = all.map(([name]) => name.toLowerCase())
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw usageError(`The header ${twice} is given twice.`)
  return Object.fromEntries(all)
}

function bearerTokenIn(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw usageError(`--bearer-file: ${file} cannot be read (${errorCodeOf(error) ?? 'unknown'}).`)
  }
  const token = text.replace(/^\uFEFF/, '').trim()
  if (token === '') throw usageError(`--bearer-file: ${file} is empty.`)
  // The characters of a bearer token (RFC 6750, section 2.1).
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(token))
    throw usageError(`--bearer-file: ${file} must contain exactly one bearer token.`)
  return token
}
