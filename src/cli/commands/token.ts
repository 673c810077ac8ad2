import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { defaultConfig } from '../../config/folder.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { parseDuration } from '../../schema/values.ts'
import { addToken, readTokenFile, revokeToken, type StoredToken } from '../../server/auth/token-file.ts'
import { trustCommand } from '../operations/withheld.ts'
import { CommandError, exitCodeHelp, exitCodes, failed, misused } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface FileOptions {
  readonly config?: string
  readonly tokens?: string
  readonly json?: true
}

interface AddOptions extends FileOptions {
  readonly role?: readonly string[]
  readonly name?: string
  readonly expires?: number
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Manages tokens for clients that do not sign in at an authorization server: scripts, other machines.
The file holds only digests of tokens. A running server notices changes at once.`,
    )
    .addHelpText(
      'after',
      `
Examples:
  hikidashi token add --name nightly --role reader --expires 90d
  hikidashi token list
  hikidashi token revoke 1f0c2a9b
${exitCodeHelp}`,
    )
  const withFile = (sub: Command) =>
    sub
      .option('--config <file>', `the file is http.auth.tokens of this configuration (by default ${defaultConfig})`)
      .option('--tokens <file>', 'the file itself')
      .option('--json', 'print JSON')
  withFile(command.command('add').description('Makes a token, and prints it, only this once.'))
    .option('--role <role>', 'a role of the token (repeatable)', addWord)
    .option('--name <name>', 'a name of the token, for people')
    .option('--expires <duration>', 'how long it is valid, such as 90d. By default until it is revoked', parseExpiry)
    .action((options: AddOptions) => add(options, io))
  withFile(command.command('list').description('Lists the tokens: what they are for, never what they are.')).action(
    (options: FileOptions) => list(options, io),
  )
  withFile(command.command('revoke').description('Revokes a token: it becomes invalid, and its streams end.'))
    .argument('<id>', 'the id of the token, as add and list print it')
    .action((id: string, options: FileOptions) => revoke(id, options, io))
}

function addWord(word: string, words: readonly string[] = []): readonly string[] {
  if (word === '') throw new InvalidArgumentError('It is empty.')
  return [...words, word]
}

function parseExpiry(text: string): number {
  const duration = parseDuration(text)
  if (duration === undefined || duration === 0 || duration > 1e13)
    throw new InvalidArgumentError('It is a duration such as 12h or 90d.')
  return duration
}

async function add({ role: roles = [], name, expires, ...options }: AddOptions, io: Io): Promise<void> {
  if (name === '') throw misused('The name is empty.')
  const file = await fileOf(options)
  const { token, stored } = await explained(
    addToken(file, {
      roles,
      ...defined({ name }),
      ...(expires === undefined ? {} : { expires: Date.now() + expires }),
    }),
  )
  if (options.json) await writeJson(io.out, { token, ...publicPart(stored) })
  else await io.out.write(`${token}\n`)
  io.say(`Added ${stored.id} to ${file}. The token is printed this once: keep it where secrets are kept.`)
  if (roles.length === 0) io.say('It has no role: it sees what needs none.')
}

async function list(options: FileOptions, io: Io): Promise<void> {
  const { tokens } = await explained(readTokenFile(await fileOf(options)))
  if (options.json) return writeJson(io.out, tokens.map(publicPart))
  if (tokens.length === 0) return io.say('There are no tokens.')
  const layOut = createColumns(Array.from({ length: 5 }, () => ({ side: 'left' })))
  const rows = tokens.map(({ id, roles, created, expires, name = '' }) => [
    id,
    created,
    expiry(expires),
    roles.join(','),
    name,
  ])
  await io.out.write(layOut([['ID', 'CREATED', 'EXPIRES', 'ROLES', 'NAME'], ...rows.map((row) => row.map(escapeText))]))
}

function expiry(expires: string | undefined): string {
  if (expires === undefined) return 'never'
  return Date.parse(expires) > Date.now() ? expires : `${expires} (over)`
}

async function revoke(id: string, options: FileOptions, io: Io): Promise<void> {
  const file = await fileOf(options)
  const revoked = await explained(revokeToken(file, id))
  if (revoked === undefined)
    throw new CommandError(exitCodes.notFound, `There is no token with the id ${id} in ${file}.`)
  if (options.json) await writeJson(io.out, publicPart(revoked))
  io.say(`Revoked ${id}${revoked.name === undefined ? '' : ` (${revoked.name})`}.`)
}

/** Returns the public part of a token. */
function publicPart({ sha256: _, ...rest }: StoredToken) {
  return rest
}

async function fileOf({ config, tokens }: FileOptions): Promise<string> {
  if (tokens !== undefined) return resolve(tokens)
  const { findTokens } = await import('../../config/auth.ts')
  const file = resolve(config ?? defaultConfig)
  const found = await findTokens(file).catch(() => {
    throw misused(`There is no configuration ${file} to name the file. Give --tokens FILE, or --config FILE.`)
  })
  if (found === undefined)
    throw misused(`${file} names no file of tokens. Set http.auth.tokens, or give --tokens FILE.`)
  if (config === undefined) await refuseUntrusted(file, found)
  return found
}

/** @throws CommandError if a configuration that was found, and is not trusted, names a file outside its folder. */
async function refuseUntrusted(file: string, tokens: string): Promise<void> {
  const [{ leadsOut }, { isTrusted }] = await Promise.all([
    import('../../schema/effects.ts'),
    import('../../config/trust.ts'),
  ])
  if (!leadsOut(tokens, dirname(file)) || (await isTrusted(file, await readFile(file)))) return
  throw failed(
    `${file} names a file of tokens outside its folder, and you have not trusted it. Name the file with --tokens, or: ${trustCommand(file)}`,
  )
}

/** A fault of the file is not a fault of the command line. */
async function explained<T>(doing: Promise<T>): Promise<T> {
  return doing.catch((error: unknown) => {
    throw isResourceError(error) ? failed(error.message) : error
  })
}
