import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { defaultConfigName } from '../../config/state-folder.ts'
import type { WithheldPart } from '../../config/untrusted.ts'
import { errorCodeOf } from '../../core/errors.ts'
import { formatEffects, trustCommand, withheldJson } from '../operations/withheld.ts'
import { CommandError, commandFailure, exitCodes, helpExamples } from '../terminal/exit.ts'
import { type Io, pluralize, writeJson } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface TrustOptions {
  readonly revoke?: true
  readonly list?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Trusts a configuration in the current folder, so that it can do more than read that folder: start programs, read outside it,
connect to services, write files, serve others. Until then hikidashi leaves these parts out. The trust applies to the current content of the
file; after a change, trust it again. A configuration that you name with --config, or that init wrote for you, needs no trust.`,
    )
    .argument('[file]', 'the configuration, or its folder', defaultConfigName)
    .addOption(new Option('--revoke', 'end the trust, for any content of the file').conflicts('list'))
    .addOption(new Option('--list', 'list the configurations that you trust').conflicts('revoke'))
    .option('--json', 'print JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi trust                        the ${defaultConfigName} in the current folder
  hikidashi trust ~/work/docs --revoke
  hikidashi trust --list`),
    )
    .action(async (folderOrFile: string, options: TrustOptions) => {
      if (options.list) return list(options, io)
      const file = await resolveConfigFile(folderOrFile)
      return options.revoke ? revoke(file, options, io) : trust(file, options, io)
    })
}

async function resolveConfigFile(file: string): Promise<string> {
  const path = resolve(file)
  const isFolder = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
  return isFolder ? join(path, defaultConfigName) : path
}

async function trust(file: string, { json }: TrustOptions, io: Io): Promise<void> {
  const [{ loadConfig }, { formatConfigProblem }, { recordTrust }] = await Promise.all([
    import('../../config/load.ts'),
    import('../../config/problem.ts'),
    import('../../config/untrusted.ts'),
  ])
  // The bytes that were judged are trusted, even if the file changes meanwhile.
  let content: Uint8Array = new Uint8Array()
  const loadResult = await loadConfig(file, {
    admitsAbsent: true,
    isTrusted: async (bytes) => {
      content = bytes
      return false
    },
  })
  if ('problems' in loadResult) throw commandFailure(loadResult.problems.map(formatConfigProblem).join('\n'))
  const { withheld } = loadResult.config
  const record = await recordTrust(file, content).catch((error: unknown) => {
    throw commandFailure(
      `The trust cannot be stored in the state folder (${errorCodeOf(error) ?? 'unknown'}). Let this user write there.`,
    )
  })
  if (json) return writeJson(io.out, { ...record, allowed: withheld.map(withheldJson) })
  await io.out.write(formatAllowed(withheld))
  io.say(
    withheld.length === 0
      ? `Trusted ${record.file}, although it does nothing that needs trust.`
      : `Trusted ${record.file} as it is now. When its content changes, trust it again. To undo: ${trustCommand(record.file)} --revoke`,
  )
}

function formatAllowed(withheld: readonly WithheldPart[]): string {
  const layOut = createColumns()
  return layOut(withheld.map((part) => [escapeText(part.name), formatEffects(part, Number.POSITIVE_INFINITY)]))
}

async function revoke(file: string, { json }: TrustOptions, io: Io): Promise<void> {
  const { revokeTrust } = await import('../../config/untrusted.ts')
  const revoked = await revokeTrust(file).catch((error: unknown) => {
    throw commandFailure(
      `The trust cannot be removed from the state folder (${errorCodeOf(error) ?? 'unknown'}). Let this user write there.`,
    )
  })
  if (revoked === 0) throw new CommandError(exitCodes.notFound, `You do not trust ${file}: there is nothing to revoke.`)
  if (json) await writeJson(io.out, { file, revoked })
  io.say(`${file} is not trusted any more.`)
}

async function list({ json }: TrustOptions, io: Io): Promise<void> {
  const { listTrust, trustState } = await import('../../config/untrusted.ts')
  const records = await Promise.all(
    (await listTrust()).map(async (record) => ({ ...record, state: await trustState(record) })),
  )
  if (json) return writeJson(io.out, records)
  const layOut = createColumns()
  await io.out.write(layOut(records.map(({ file, at, state }) => [words[state], at, escapeText(file)])))
  io.say(`${pluralize(records.length, 'configuration')} trusted.`)
}

const words = {
  trusted: 'trusted',
  changed: 'changed since it was trusted',
  gone: 'the file cannot be read any more',
} as const
