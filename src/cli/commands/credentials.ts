import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defaultConfigName } from '../../config/state-folder.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { defined } from '../../core/kit/object.ts'
import { parseDuration } from '../../schema/values.ts'
import { absentFileMark, addToken, readTokenFile, revokeToken, type StoredToken } from '../../server/auth/token-file.ts'
import { loadLocalConfig, trustCommand, withheldNote } from '../operations/withheld.ts'
import {
  CommandError,
  commandFailure,
  exitCodes,
  helpExamples,
  rethrowAsFailure,
  usageError,
} from '../terminal/exit.ts'
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

export function defineToken(command: Command, io: Io): void {
  command
    .description(
      `Manages tokens for clients that do not sign in at an authorization server: scripts, other machines.
The token file holds digests, not the tokens themselves. A running server notices its changes at once.`,
    )
    .addHelpText(
      ...helpExamples(`
  hikidashi token add --name nightly --role reader --expires 90d
  hikidashi token list
  hikidashi token revoke 1f0c2a9b`),
    )
  const withFile = (sub: Command) =>
    sub
      .option(
        '--config <file>',
        `use the token file that http.auth.tokens of this configuration names (by default ${defaultConfigName})`,
      )
      .option('--tokens <file>', 'use this token file')
      .option('--json', 'print JSON')
  withFile(command.command('add').description('Creates a token, and prints it. It is not shown again.'))
    .option('--role <role>', 'a role of the token (repeatable)', addWord)
    .option('--name <name>', 'a name of the token, for people')
    .option('--expires <duration>', 'lifetime of the token, such as 90d; by default until it is revoked', parseExpiry)
    .action((options: AddOptions) => issueToken(options, io))
  withFile(
    command.command('list').description('Lists the tokens by id, name and roles; never the tokens themselves.'),
  ).action((options: FileOptions) => list(options, io))
  withFile(command.command('revoke').description('Revokes a token: it becomes invalid, and its streams end.'))
    .argument('<id>', 'the id of the token, as add and list print it')
    .action((id: string, options: FileOptions) => revoke(id, options, io))
}

function addWord(word: string, words: readonly string[] = []): readonly string[] {
  if (word === '') throw new InvalidArgumentError('The name of the role is empty.')
  return [...words, word]
}

/**
 * @param least In milliseconds, as is `most`.
 * @param what Examples of a duration, for the error message.
 */
function parseBetween(text: string, least: number, most: number, what: string): number {
  const duration = parseDuration(text)
  if (duration === undefined || duration < least || duration > most)
    throw new InvalidArgumentError(`Give a duration such as ${what}.`)
  return duration
}

const parseExpiry = (text: string) => parseBetween(text, 1, 8.64e12, '12h or 90d, up to 100000d')
const parseWait = (text: string) => parseBetween(text, 1000, 3_600_000, '5m, from 1s to 1h')

async function issueToken({ role: roles = [], name, expires, ...options }: AddOptions, io: Io): Promise<void> {
  if (name === '') throw usageError('The name of the token is empty.')
  const file = await resolveTokenFile(options)
  const { token, stored } = await addToken(file, {
    roles,
    ...defined({ name }),
    ...(expires === undefined ? {} : { expires: Date.now() + expires }),
  }).catch(rethrowAsFailure)
  if (options.json) await writeJson(io.out, { token, ...publicPart(stored) })
  else await io.out.write(`${token}\n`)
  io.say(`Added ${stored.id} to ${file}. The token is not shown again: store it with your secrets.`)
  if (roles.length === 0) io.say('The token has no role: its callers see only resources that need none.')
}

async function list(options: FileOptions, io: Io): Promise<void> {
  const file = await resolveTokenFile(options)
  const { tokens, mark } = await readTokenFile(file).catch(rethrowAsFailure)
  if (options.json) return writeJson(io.out, tokens.map(publicPart))
  if (tokens.length === 0)
    return io.say(
      mark === absentFileMark ? `The file ${file} does not exist yet, so there are no tokens.` : 'There are no tokens.',
    )
  const layOut = createColumns()
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
  return Date.parse(expires) > Date.now() ? expires : `${expires} (expired)`
}

async function revoke(id: string, options: FileOptions, io: Io): Promise<void> {
  const file = await resolveTokenFile(options)
  const revoked = await revokeToken(file, id).catch(rethrowAsFailure)
  if (revoked === undefined)
    throw new CommandError(
      exitCodes.notFound,
      `${file} has no token with the id ${id}. To list the tokens: hikidashi token list`,
    )
  if (options.json) await writeJson(io.out, publicPart(revoked))
  io.say(`Revoked ${id}${revoked.name === undefined ? '' : ` (${revoked.name})`}.`)
}

function publicPart({ sha256: _, ...rest }: StoredToken) {
  return rest
}

async function resolveTokenFile({ config, tokens }: FileOptions): Promise<string> {
  if (tokens !== undefined) return resolve(tokens)
  const { findTokenFile } = await import('../../config/auth.ts')
  const file = resolve(config ?? defaultConfigName)
  const tokenFile = await findTokenFile(file).catch(() => {
    throw usageError(
      `No token file is known, because the configuration ${file} cannot be read. Give --tokens FILE, or --config FILE.`,
    )
  })
  if (tokenFile === undefined)
    throw usageError(`The configuration ${file} names no token file. Set http.auth.tokens, or give --tokens FILE.`)
  if (config === undefined) await refuseUntrusted(file, tokenFile)
  return tokenFile
}

async function refuseUntrusted(file: string, tokens: string): Promise<void> {
  const [{ leadsOut }, { isTrustedConfig }] = await Promise.all([
    import('../../schema/values.ts'),
    import('../../config/untrusted.ts'),
  ])
  if (!leadsOut(tokens, dirname(file)) || (await isTrustedConfig(file, await readFile(file)))) return
  throw commandFailure(
    `The configuration ${file} names a token file outside its folder, and you have not trusted the configuration. Name the file with --tokens, or: ${trustCommand(file)}`,
  )
}

interface AuthOptions {
  readonly config?: string
  readonly open?: true
  readonly wait: number
}

export function defineAuth(command: Command, io: Io): void {
  command
    .description('Lets a person allow hikidashi to read their files at a service, and stores the token in a file.')
    .addHelpText(
      ...helpExamples(`
  hikidashi auth gdrive                       for the mount of Drive in ${defaultConfigName}
  hikidashi auth gdrive gdrive://me --open    for one of several mounts; opens the browser`),
    )
  command
    .command('gdrive')
    .description(
      `Asks Google only for the right to read Drive. It prints an address to open in a browser on this machine; Google then redirects
the browser to this command. The token is stored in the file "tokenFile" of the mount, which only this user can read.`,
    )
    .argument('[address]', 'the address of the mount, if there are several')
    .option('--config <file>', `the configuration (by default ${defaultConfigName})`)
    .option('--open', 'open the browser')
    .addOption(
      new Option('--wait <duration>', 'how long to wait for the browser').argParser(parseWait).default(300_000, '5m'),
    )
    .action((address: string | undefined, options: AuthOptions) => authorize(address, options, io))
}

async function authorize(address: string | undefined, { config, open, wait }: AuthOptions, io: Io): Promise<void> {
  const [{ formatConfigProblem }, { sourceNamed }] = await Promise.all([
    import('../../config/problem.ts'),
    import('../../providers/index.ts'),
  ])
  const loadResult = await loadLocalConfig(resolve(config ?? defaultConfigName), config !== undefined)
  if ('problems' in loadResult) throw commandFailure(loadResult.problems.map(formatConfigProblem).join('\n'))
  const note = withheldNote(loadResult.config)
  if (note !== undefined) io.say(note)
  const { mounts, folder, secrets } = loadResult.config
  const accountMounts = Object.entries(mounts).flatMap(([at, mount]) => {
    const load = sourceNamed(mount.provider)?.account
    return load !== undefined && (address === undefined || at === address)
      ? [{ at, load, options: mount as never }]
      : []
  })
  const [one, other] = accountMounts
  const isWhole = loadResult.config.withheld.length === 0
  const where = isWhole ? 'The configuration has' : 'Without the parts that are left out, the configuration has'
  const advice = isWhole
    ? 'Add one with "provider": "gdrive".'
    : `To trust them: ${trustCommand(loadResult.config.file)}`
  if (one === undefined)
    throw address === undefined
      ? usageError(`${where} no mount of Google Drive. ${advice}`)
      : new CommandError(exitCodes.notFound, `${where} no mount of Google Drive at ${address}.`)
  if (other !== undefined)
    throw usageError(`The configuration has several mounts of Google Drive. Name one, such as ${one.at}.`)
  try {
    const { account } = await one.load()
    const client = await account.clientOf(one.options, folder)
    if (client === undefined)
      throw commandFailure(`The mount ${one.at} has no "clientId". docs/providers/gdrive.md tells how to get one.`)
    // The id is part of the printed address, so it is not removed from messages.
    io.secrets.add(secrets.filter((value) => value !== client.id))
    const file = account.tokenFileOf(one.options, folder)
    const text = await account.ask(one.options, client, {
      timeoutMs: wait,
      show: (url) => {
        io.say(`Open this address in a browser on this machine, and allow what it asks for:\n\n${url}\n`)
        if (open) void openBrowser(url, io)
      },
    })
    const { replaceFile } = await import('../../server/auth/token-file.ts')
    makeFolder(dirname(file), 0o700)
    await replaceFile(file, text)
    io.say(`hikidashi may read Drive. The token is in ${file}: protect it like a password.`)
  } catch (error) {
    rethrowAsFailure(error)
  }
}

async function openBrowser(url: string, io: Io): Promise<void> {
  const { openInBrowser } = await import('./ui.ts')
  if (!(await openInBrowser(url))) io.say('No browser could be opened. Open the address yourself.')
}
