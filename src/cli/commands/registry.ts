import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { defined } from '../../core/kit/defined.ts'
import { addWord } from '../hosts/known.ts'
import { exitCodeHelp, failed } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

interface ServerJsonCommand {
  readonly output?: string
  readonly force?: true
  readonly name?: string
  readonly repository?: string
  readonly description?: string
  readonly title?: string
  readonly website?: string
  readonly remote?: readonly string[]
}

export function define(command: Command, io: Io): void {
  command.description('Describes hikidashi for registries of MCP servers.').addHelpText(
    'after',
    `
Examples:
  hikidashi registry server-json --name io.github.USER/hikidashi
  hikidashi registry server-json --name io.github.USER/hikidashi --repository https://github.com/USER/hikidashi --output server.json
${exitCodeHelp}`,
  )
  command
    .command('server-json')
    .description(
      'Prints a server.json for the registry of MCP servers, from the package and the options. The registry compares the name with "mcpName" in the published package.json.',
    )
    .option(
      '--name <name>',
      'the name in the registry, such as io.github.USER/hikidashi; by default "mcpName" of package.json',
    )
    .option('--repository <url>', 'the URL of the source code; by default "repository" of package.json, else none')
    .option('--title <text>', 'a name for people, at most 100 characters')
    .option('--description <text>', 'a sentence, at most 100 characters')
    .option('--website <url>', 'a web page about the server')
    .option('--remote <url>', 'the URL of a public server (repeatable)', addWord)
    .option('-o, --output <file>', 'write it to a file')
    .option('--force', 'replace an existing file')
    .action((options: ServerJsonCommand) => printServerJson(options, io))
}

async function printServerJson({ output, force, remote, ...options }: ServerJsonCommand, io: Io): Promise<void> {
  const [{ ownPackage }, { serverJson }] = await Promise.all([
    import('../operations/publish/manifest.ts'),
    import('../operations/publish/manifest.ts'),
  ])
  const own = ownPackage()
  const described = serverJson(own, { ...options, ...defined({ remotes: remote }) })
  const text = `${JSON.stringify(described, undefined, 2)}\n`
  if (output === undefined) await io.out.write(text)
  else {
    const file = resolve(output)
    if (existsSync(file) && !force) throw failed(`${file} exists already. To replace it: --force.`)
    await writeFile(file, text).catch((error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
      throw failed(`${file} cannot be written (${code}).`)
    })
    io.say(`Wrote ${file}.`)
  }
  if (own.mcpName === undefined)
    io.say(
      `Note: before you publish the package, put "mcpName": ${JSON.stringify(described.name)} into its package.json.`,
    )
  if (described.repository === undefined)
    io.say('Note: it names no repository. Give --repository URL, if there is one.')
}
