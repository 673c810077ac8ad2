import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { errorCodeOf } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { ServerJsonOptions } from '../operations/publish/manifest.ts'
import { collectValues, commandFailure, helpExamples, usageError } from '../terminal/exit.ts'
import { formatSize, type Io, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'

interface McpbOptions {
  readonly output?: string
  readonly author?: string
  readonly config?: string
  readonly folders?: true
  readonly allPlatforms?: true
  readonly force?: true
  readonly json?: true
}

export function defineBundle(command: Command, io: Io): void {
  command.description('Makes files from which hosts install hikidashi.').addHelpText(
    ...helpExamples(`
  hikidashi bundle mcpb
  hikidashi bundle mcpb --output hikidashi.mcpb --force
  hikidashi bundle mcpb --all-platforms
  hikidashi bundle mcpb --config shop.json         # a bundle for colleagues, who are asked for its secrets`),
  )
  command
    .command('mcpb')
    .description(
      'Writes an MCP bundle (.mcpb): this installation with all its run-time files. Claude Desktop and other hosts install it with a double click. Without --config they ask which folders to serve.',
    )
    .option('-o, --output <file>', 'the file to write; by default NAME-VERSION.mcpb here')
    .option(
      '--config <file>',
      'serve the mounts of this configuration; the host asks its user for each secret { "env": "NAME" } in it',
    )
    .option('--folders', 'with --config: let the host ask for folders, too')
    .option('--author <name>', 'the publisher; by default the author in package.json')
    .option('--all-platforms', 'make a bundle for macOS, Windows and Linux; by default only for this system')
    .option('--force', 'replace an existing file')
    .option('--json', 'print the outcome as JSON')
    .action((options: McpbOptions) => mcpb(options, io))
}

async function mcpb(options: McpbOptions, io: Io): Promise<void> {
  const { output, author, config, folders, allPlatforms, force, json } = options
  const [{ allPlatformNames, bundleManifest, packageFolder, ownPackage, slugOf }, { writeBundle }] = await Promise.all([
    import('../operations/publish/manifest.ts'),
    import('../operations/publish/mcpb.ts'),
  ])
  if (folders && config === undefined)
    throw usageError('--folders needs --config. Without it, a bundle always asks for folders.')
  const own = ownPackage()
  const curated = config === undefined ? undefined : await readConfiguration(config)
  const file = resolve(output ?? `${slugOf(curated?.name ?? own.name)}-${own.version}.mcpb`)
  if (existsSync(file) && !force) throw commandFailure(`${file} exists already. To replace it: --force.`)
  const publisher = author ?? own.author
  if (publisher === undefined || publisher === '')
    throw commandFailure('A bundle needs the name of its publisher. Give --author NAME.')
  const progress = createProgress(io, { what: 'files' })
  const onProgress = (count: number, total: number) => progress.set({ done: count, total })
  const platforms = allPlatforms ? allPlatformNames : [process.platform]
  const manifest = bundleManifest(own, { author: publisher, platforms, ...defined({ curated, folders }) })
  const contents = { onFile: onProgress, ...defined({ curated: curated?.text }) }
  const writing = writeBundle(packageFolder(), manifest, platforms, file, contents).finally(progress.end)
  const bundle = await writing.catch((error: unknown) => {
    if (!(error instanceof Error) || !('code' in error)) throw error
    const path = 'path' in error ? String(error.path) : file
    throw commandFailure(`${path} cannot be ${path.startsWith(file) ? 'written' : 'read'} (${String(error.code)}).`)
  })
  if (json) return writeJson(io.out, bundle)
  const { bytes, files, packages, sha256 } = bundle
  const count = packages === 1 ? '1 package' : `${packages} packages`
  io.say(
    `Wrote ${file}: ${formatSize(bytes)}, ${files} files of ${count}, for ${platforms.join(', ')}.\nSHA-256 ${sha256}\nOpen it with Claude Desktop to install it.`,
  )
}

async function readConfiguration(file: string) {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw commandFailure(`${file} cannot be read (${errorCodeOf(error) ?? 'unknown'}).`)
  })
  const { readBundledConfig } = await import('../operations/publish/curated.ts')
  return readBundledConfig(file, text)
}

interface ServerJsonCommand extends Omit<ServerJsonOptions, 'remotes'> {
  readonly output?: string
  readonly force?: true
  readonly remote?: readonly string[]
}

export function defineRegistry(command: Command, io: Io): void {
  command.description('Describes hikidashi for registries of MCP servers.').addHelpText(
    ...helpExamples(`
  hikidashi registry server-json --name io.github.USER/hikidashi
  hikidashi registry server-json --name io.github.USER/hikidashi --repository https://github.com/USER/hikidashi --output server.json`),
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
    .option('--title <text>', 'the title of the server for people, at most 100 characters')
    .option('--description <text>', 'a sentence that describes the server, at most 100 characters')
    .option('--website <url>', 'a web page about the server')
    .option('--remote <url>', 'the URL of a public server (repeatable)', collectValues)
    .option('-o, --output <file>', 'write the server.json to a file')
    .option('--force', 'replace an existing file')
    .action((options: ServerJsonCommand) => printServerJson(options, io))
}

async function printServerJson({ output, force, remote, ...options }: ServerJsonCommand, io: Io): Promise<void> {
  const { ownPackage, serverJson } = await import('../operations/publish/manifest.ts')
  const own = ownPackage()
  const described = serverJson(own, { ...options, ...defined({ remotes: remote }) })
  const text = `${JSON.stringify(described, undefined, 2)}\n`
  if (output === undefined) await io.out.write(text)
  else {
    const file = resolve(output)
    if (existsSync(file) && !force) throw commandFailure(`${file} exists already. To replace it: --force.`)
    await writeFile(file, text).catch((error: unknown) => {
      throw commandFailure(`${file} cannot be written (${errorCodeOf(error) ?? 'unknown'}).`)
    })
    io.say(`Wrote ${file}.`)
  }
  if (own.mcpName === undefined)
    io.say(
      `Note: before you publish the package, put "mcpName": ${JSON.stringify(described.name)} into its package.json.`,
    )
  if (described.repository === undefined)
    io.say('Note: the server.json has no repository. Give --repository URL, if there is one.')
}
