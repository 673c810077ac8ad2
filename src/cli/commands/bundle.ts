import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { exitCodeHelp, failed } from '../terminal/exit.ts'
import { formatSize, type Io, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'

interface McpbOptions {
  readonly output?: string
  readonly author?: string
  readonly allPlatforms?: true
  readonly force?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command.description('Makes files from which hosts install hikidashi.').addHelpText(
    'after',
    `
Examples:
  hikidashi bundle mcpb
  hikidashi bundle mcpb --output hikidashi.mcpb --force
  hikidashi bundle mcpb --all-platforms
${exitCodeHelp}`,
  )
  command
    .command('mcpb')
    .description(
      'Writes an MCP bundle (.mcpb): this installation with all its run-time files. Claude Desktop and other hosts install it with a double click, and ask which folders to serve.',
    )
    .option('-o, --output <file>', 'the file to write; by default hikidashi-VERSION.mcpb here')
    .option('--author <name>', 'the publisher; by default the author in package.json')
    .option('--all-platforms', 'make a bundle for macOS, Windows and Linux; by default only for this system')
    .option('--force', 'replace an existing file')
    .option('--json', 'print the outcome as JSON')
    .action((options: McpbOptions) => mcpb(options, io))
}

async function mcpb({ output, author, allPlatforms, force, json }: McpbOptions, io: Io): Promise<void> {
  const [{ ownFolder, ownPackage }, { allPlatformNames, bundleManifest }, { writeBundle }] = await Promise.all([
    import('../operations/publish/manifest.ts'),
    import('../operations/publish/manifest.ts'),
    import('../operations/publish/mcpb.ts'),
  ])
  const own = ownPackage()
  const file = resolve(output ?? `hikidashi-${own.version}.mcpb`)
  if (existsSync(file) && !force) throw failed(`${file} exists already. To replace it: --force.`)
  const publisher = author ?? own.author
  if (publisher === undefined || publisher === '')
    throw failed('A bundle needs the name of its publisher. Give --author NAME.')
  const progress = createProgress(io, { what: 'files' })
  const told = (done: number, total: number) => progress.set({ done, total })
  const platforms = allPlatforms ? allPlatformNames : [process.platform]
  const manifest = bundleManifest(own, publisher, platforms)
  const writing = writeBundle(ownFolder(), manifest, platforms, file, told).finally(progress.end)
  const bundle = await writing.catch((error: unknown) => {
    if (!(error instanceof Error) || !('code' in error)) throw error
    const path = 'path' in error ? String(error.path) : file
    throw failed(`${path} cannot be ${path.startsWith(file) ? 'written' : 'read'} (${String(error.code)}).`)
  })
  if (json) return writeJson(io.out, bundle)
  const { bytes, files, packages, sha256 } = bundle
  const count = packages === 1 ? '1 package' : `${packages} packages`
  io.say(
    `Wrote ${file}: ${formatSize(bytes)}, ${files} files of ${count}, for ${platforms.join(', ')}.\nSHA-256 ${sha256}\nOpen it with Claude Desktop to install it.`,
  )
}
