import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { defaultConfig } from '../../config/folder.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { parseDuration } from '../../schema/values.ts'
import { loadFound, withheldNote } from '../operations/withheld.ts'
import { CommandError, exitCodeHelp, exitCodes, failed, misused } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

interface AuthOptions {
  readonly config?: string
  readonly open?: true
  readonly wait: number
}

export function define(command: Command, io: Io): void {
  command
    .description('Lets a person allow hikidashi to read their files at a service, and stores the token in a file.')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi auth gdrive                       for the mount of Drive in ${defaultConfig}
  hikidashi auth gdrive gdrive://me --open    for one of several mounts; opens the browser
${exitCodeHelp}`,
    )
  command
    .command('gdrive')
    .description(
      `Asks Google only for the right to read Drive. It prints an address to open in a browser on this machine; Google then redirects
the browser to this command. The token is stored in the file "tokenFile" of the mount, which only this user can read.`,
    )
    .argument('[address]', 'the mount, if there are several')
    .option('--config <file>', `the configuration (by default ${defaultConfig})`)
    .option('--open', 'open the browser')
    .option('--wait <duration>', 'how long to wait for an answer', parseWait, 300_000)
    .action((address: string | undefined, options: AuthOptions) => authorize(address, options, io))
}

function parseWait(text: string): number {
  const duration = parseDuration(text)
  if (duration === undefined || duration < 1000 || duration > 3_600_000)
    throw new InvalidArgumentError('It is a duration such as 5m, from 1s to 1h.')
  return duration
}

async function authorize(address: string | undefined, { config, open, wait }: AuthOptions, io: Io): Promise<void> {
  const [{ formatConfigProblem }, { gdriveClient, tokenFileOf }] = await Promise.all([
    import('../../config/problem.ts'),
    import('../../providers/gdrive/config.ts'),
  ])
  const loaded = await loadFound(resolve(config ?? defaultConfig), config !== undefined)
  if ('problems' in loaded) throw failed(loaded.problems.map(formatConfigProblem).join('\n'))
  const note = withheldNote(loaded.config)
  if (note !== undefined) io.say(note)
  const { mounts, folder, secrets } = loaded.config
  const found = Object.entries(mounts).flatMap(([at, mount]) =>
    mount.provider === 'gdrive' && (address === undefined || at === address) ? [{ at, mount }] : [],
  )
  const [one, other] = found
  if (one === undefined)
    throw address === undefined
      ? misused('The configuration mounts no Drive: add a mount with "provider": "gdrive".')
      : new CommandError(exitCodes.notFound, `The configuration mounts no Drive at ${address}.`)
  if (other !== undefined) throw misused(`There are several mounts of Drive: name one, such as ${one.at}.`)
  try {
    const client = await gdriveClient(one.mount, folder)
    if (client === undefined)
      throw failed(`${one.at} has no "clientId". docs/providers/gdrive.md tells how to get one.`)
    // The id is part of the printed address, so it is not a secret.
    io.secrets.add(secrets.filter((value) => value !== client.id))
    const file = tokenFileOf(one.mount, folder)
    const { endpoint } = one.mount
    const { askGrant } = await import('../../providers/gdrive/grant.ts')
    const grant = await askGrant({
      client,
      patienceMs: wait,
      show: (url) => {
        io.say(`Open this address in a browser on this machine, and allow what it asks for:\n\n${url}\n`)
        if (open) openBrowser(url, io)
      },
      ...defined({ endpoint }),
    })
    const { replaceFile } = await import('../../server/auth/token-file.ts')
    await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => {})
    await replaceFile(file, `${JSON.stringify(grant, undefined, 2)}\n`)
    io.say(`hikidashi may read Drive. The permission is in ${file}: keep it as a password is kept.`)
  } catch (error) {
    throw isResourceError(error) ? failed(error.message) : error
  }
}

/** The address is its own argument: no shell sees it. */
function openBrowser(url: string, io: Io): void {
  const [program, ...words] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  const child = spawn(program ?? '', [...words, url], { stdio: 'ignore', detached: true })
  child.on('error', () => io.say('No browser could be opened. Open the address yourself.'))
  child.unref()
}
