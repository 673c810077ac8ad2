import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { fileAddress, formatUri, parseAddress } from '../core/uri.ts'
import { exitCodeHelp, failed } from './exit.ts'
import type { Io } from './io.ts'
import { writeJson } from './json.ts'
import { defaultConfig } from './local.ts'

interface InitOptions {
  readonly force?: true
  readonly stdout?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(`Writes a ${defaultConfig} for a folder, with comments that say what can be changed.`)
    .argument('[dir]', 'the folder', '.')
    .option('--force', 'replace the one that is there')
    .option('--stdout', 'print it instead')
    .option('--json', 'print what was written, as JSON')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi init
  hikidashi init ~/notes --stdout
${exitCodeHelp}`,
    )
    .action((folder: string, options: InitOptions) => init(folder, options, io))
}

async function init(dir: string, options: InitOptions, io: Io): Promise<void> {
  const folder = resolve(dir)
  const names = await readdir(folder).catch(() => {
    throw failed(`There is no folder ${folder}, or it cannot be read. Create it, or name another one.`)
  })
  const address = addressFor(folder)
  const text = configFor({ folder, address, names })
  if (options.stdout) return io.out.write(text)
  const file = join(folder, defaultConfig)
  try {
    await writeFile(file, text, { flag: options.force ? 'w' : 'wx' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    if (code === 'EEXIST') throw failed(`${file} is there already. To replace it: hikidashi init --force.`)
    throw failed(`${file} cannot be written (${code}).`)
  }
  if (options.json) await writeJson(io.out, { file, mounts: mountsIn(folder, address, names) })
  io.say(`Wrote ${file}.
Look at what it serves:  hikidashi ls --recursive --config ${file}
Check it:                hikidashi check --config ${file}
Serve it:                hikidashi serve --config ${file} --http 8787`)
}

function mountsIn(folder: string, address: string, names: readonly string[]): readonly string[] {
  return names.includes('.git') ? [address, gitAddressFor(folder)] : [address]
}

/** An address that means the same on every machine: the file can be shared, the folder is somewhere else on each. */
function addressFor(folder: string): string {
  return formatUri(parseAddress('file:///'), basename(folder) || 'root')
}

/** The address of the folder's history, where it is a repository. The name is one segment of plain letters. */
function gitAddressFor(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
  return `git://${name === '' ? 'repository' : name}`
}

/** A configuration for a folder, made from what is in it. */
export function configFor({
  folder,
  address,
  names,
}: {
  readonly folder: string
  readonly address: string
  readonly names: readonly string[]
}): string {
  const readme = names.find((name) => /^readme(\.[a-z]+)?$/i.test(name))
  const docs = names.find((name) => /^docs?$/i.test(name))
  const rules = [
    { match: '**/*.md', title: 'heading' },
    ...(readme === undefined ? [] : [{ match: `/${escapeGlob(readme)}`, priority: 0.9 }]),
    ...(docs === undefined ? [] : [{ match: `${escapeGlob(docs)}/**`, priority: 0.7 }]),
  ]
  const text = (value: unknown) => JSON.stringify(value)
  const repository = names.includes('.git')
  const gitMount = repository
    ? `,
    // Its history: files at any branch, tag or commit, the log, commits, differences, who wrote a line.
    ${text(gitAddressFor(folder))}: { "provider": "git", "repository": "." }`
    : ''
  const shown = rules.map((rule) =>
    text(rule)
      .replaceAll('":', '": ')
      .replaceAll(',"', ', "')
      .replace(/^\{(.*)\}$/, '{ $1 }'),
  )
  return `{
  // What hikidashi serves, and how. Check it: hikidashi check. All keys: docs/configuration.md.
  "$schema": ${text(schemaFor(folder))},
  "mounts": {
    // The key is the address: what the URIs of everything in it begin with. It is a name, the same on every machine.
    // If hosts on this machine are to open the files that they read, use ${fileAddress(folder)} instead.
    ${text(address)}: {
      "provider": "files",
      "root": ".",
      // Files that .gitignore names, .git, dependency folders, keys and .env files are left out as it is.
      // "exclude": ["drafts/**"],
      // What clients are told of files: how important they are (0 to 1), where their titles come from.
      "rules": [
${shown.map((rule) => `        ${rule}`).join(',\n')}
      ],
      // Who may see it: roles, or rules. Without this, everybody who reaches the server.
      // "access": ["reader", { "deny": ["*"], "match": "private/**" }],
      // For how long clients may keep what they got.
      // "cache": { "ttl": "60s", "scope": "private" }
    }${gitMount}
  },
  // Where "hikidashi serve" listens, if it is not to be started by a host (stdio).
  // "http": { "listen": "127.0.0.1:8787" }
}
`
}

/** Where the schema is, as seen from a folder: installed beside it, or wherever this program is. */
function schemaFor(folder: string): string {
  const installed = 'node_modules/hikidashi/config.schema.json'
  if (existsSync(join(folder, installed))) return `./${installed}`
  const own = fileURLToPath(new URL('../../config.schema.json', import.meta.url))
  return own === join(folder, 'config.schema.json') ? './config.schema.json' : pathToFileURL(own).href
}

function escapeGlob(name: string): string {
  return name.replace(/[*?[\]{}\\]/g, '\\$&')
}
