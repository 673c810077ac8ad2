import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { defaultConfig } from '../../config/folder.ts'
import type { MountConfig } from '../../config/schema.ts'
import { plainName, plainWord, type SetUpMount, searchMount, setUpMounts } from '../../config/set-up.ts'
import type { Survey } from '../../config/survey.ts'
import { fileAddress, formatUri, parseAddress } from '../../core/uri.ts'
import { lockFiles } from '../../providers/packages/lock-file.ts'
import { joinCommand } from '../operations/command-line.ts'
import { type Found, surveyAll } from '../operations/survey.ts'
import { keepTrust, untrustedNote } from '../operations/withheld.ts'
import { exitCodeHelp, failed, misused } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { writeJson } from '../terminal/output.ts'

interface InitOptions {
  readonly force?: true
  readonly stdout?: true
  readonly json?: true
  readonly sql?: string
}

export function define(command: Command, io: Io): void {
  command
    .description(`Writes a ${defaultConfig} for a folder, with comments that say what can be changed.`)
    .argument('[dir]', 'the folder', '.')
    .option('--force', 'replace the one that is there')
    .option('--stdout', 'print it instead')
    .option('--json', 'print what was written, as JSON')
    .option(
      '--sql <database>',
      'print statements for a database instead (postgres, mysql): a role that only reads, and for postgres a trigger that tells of changes',
    )
    .addHelpText(
      'after',
      `
Examples:
  hikidashi init
  hikidashi init ~/notes --stdout
  hikidashi init --sql postgres | psql
${exitCodeHelp}`,
    )
    .action((folder: string, options: InitOptions) =>
      options.sql === undefined ? init(folder, options, io) : printSql(options.sql, io),
    )
}

/** Statements that an operator runs in a database, once. */
async function printSql(database: string, io: Io): Promise<void> {
  if (database !== 'postgres' && database !== 'mysql')
    throw misused('There are statements for two databases: --sql postgres, --sql mysql.')
  const { setupSql } = await (database === 'postgres'
    ? import('../../providers/postgres/role.ts')
    : import('../../providers/mysql/account.ts'))
  await io.out.write(setupSql)
}

async function init(dir: string, options: InitOptions, io: Io): Promise<void> {
  const folder = resolve(dir)
  const survey = await surveyAll(folder).catch(() => {
    throw failed(`There is no folder ${folder}, or it cannot be read. Create it, or name another one.`)
  })
  const address = addressFor(folder)
  const text = configFor({ folder, address, survey })
  if (options.stdout) return io.out.write(text)
  const file = join(folder, defaultConfig)
  try {
    await writeFile(file, text, { flag: options.force ? 'w' : 'wx' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    if (code === 'EEXIST') throw failed(`${file} is there already. To replace it: hikidashi init --force.`)
    throw failed(`${file} cannot be written (${code}).`)
  }
  if (!(await keepTrust(file, Buffer.from(text)))) io.say(`Note: ${untrustedNote}`)
  if (options.json)
    await writeJson(io.out, { file, mounts: mountsFor(folder, address, survey).map((mount) => mount.address) })
  const named = joinCommand([file])
  io.say(`Wrote ${file}.
Look at what it serves:  hikidashi ls --recursive --config ${named}
Check it:                hikidashi check --config ${named}
Serve it:                hikidashi serve --config ${named} --http 8787`)
}

/** An address that means the same on every machine: the file can be shared, the folder is somewhere else on each. */
function addressFor(folder: string): string {
  return formatUri(parseAddress('file:///'), basename(folder) || 'root')
}

/** The standard mounts of a folder, the search last. `serve` uses the same. */
export function mountsFor(folder: string, address: string, survey: Survey): readonly SetUpMount[] {
  const name = plainName(folder)
  const mounts = setUpMounts(survey, { address, name, sqlite: survey.sqlite, documents: survey })
  return [...mounts, searchMount(name, mounts)]
}

/** The comment above a mount. */
const comments: Partial<Record<MountConfig['provider'], string>> = {
  git: `Its history: files at any branch, tag or commit, the log, commits, differences, who wrote a line.
A history remembers what was committed by mistake: what looks secret in it is shown as [redacted].`,
  settings: `Its configuration files, each as a whole or one value of it (?pointer=/db/host). What looks secret is shown as
[redacted]; of .env files only the names are shown, and the values that "allow" names.`,
  env: 'The variables in .env, each by its name; the values of those that "allow" names.',
  prompts: 'Its prompts, which hosts show as commands: {{name}} in the text is an argument.',
  sqlite: 'A database of SQLite: its tables, and with "rows": true their rows.',
  search: 'Search over them: hikidashi search WORDS. The index is in the store.',
}

/** A mount as a line of the configuration, below its comment. */
function writtenMount({ address, config }: SetUpMount): string {
  const comment = (comments[config.provider] ?? '').split('\n').map((line) => `\n    // ${line}`)
  return `,${comment.join('')}\n    ${JSON.stringify(address)}: ${inLine(forFile(config))}`
}

/** Times are written with their unit in a configuration. */
function forFile(config: MountConfig): object {
  return config.poll === undefined ? config : { ...config, poll: `${config.poll / 1000}s` }
}

/** An object of JSON on one line, with spaces between its members. */
function inLine(value: object): string {
  return JSON.stringify(value, undefined, 1).replace(/\n\s*/g, ' ').replaceAll('[ ', '[').replaceAll(' ]', ']')
}

/** A configuration for a folder, made from what is in it. */
export function configFor({
  folder,
  address,
  survey,
}: {
  readonly folder: string
  readonly address: string
  readonly survey: Found
}): string {
  const text = (value: unknown) => JSON.stringify(value)
  const name = plainName(folder)
  const [files, ...others] = mountsFor(folder, address, survey)
  const { title, rules = [] } = files?.config.provider === 'files' ? files.config : {}
  const postgresMount =
    survey.postgres === undefined
      ? ''
      : `
    // The database that ${survey.postgres} in .env names: its tables, and with "rows" their rows. The variable has to be set for the server,
    // and its role should only read: hikidashi init --sql postgres.
    // ${text(`postgres://${name}`)}: { "provider": "postgres", "url": { "env": ${text(survey.postgres)} }, "schemas": ["public"] },`
  const hasLock = Object.keys(lockFiles).some((file) => survey.names.includes(file))
  const packagesMount = hasLock
    ? `
    // Its dependencies, at the versions that are installed: documentation, changelogs and types. They can be tens of thousands of files.
    // ${text('pkg://npm')}: { "provider": "packages", "root": ".", "packages": ["*", "@*/*"] },`
    : ''
  const apiMount =
    survey.api === undefined
      ? ''
      : `
    // The API that ${survey.api.file} describes, asked by GET alone; with a token: "bearer": { "env": "NAME" }.
    // ${text(`api://${name}`)}: { "provider": "api", "url": ${text(survey.api.url)}, "routes": [${survey.api.templates
      .map((template) => `{ "template": ${text(template)} }`)
      .join(', ')}] },`
  const serverMounts = (survey.servers ?? []).map(
    ({ name: server, file, mount }) => `
    // The MCP server that ${file} calls ${text(server)}: it is started, or connected to, only once this is no comment.
    // ${text(`mcp://${plainWord(server)}`)}: ${text(mount)},`,
  )
  return `{
  // What hikidashi serves, and how. Check it: hikidashi check. All keys: docs/configuration.md.
  "$schema": ${text(schemaFor(folder))},
  "mounts": {
    // The key is the address: what the URIs of everything in it begin with. It is a name, the same on every machine.
    // If hosts on this machine are to open the files that they read, use ${fileAddress(folder)} instead.
    ${text(address)}: {
      "provider": "files",
      "title": ${text(title)},
      "root": ".",
      // Files that .gitignore names, .git, dependency folders, keys and .env files are left out as it is.
      // "exclude": ["drafts/**"],
      // How important files are (0 to 1), and their titles: "title": "heading" takes the first heading of a document.
${rulesOf(rules)}${documentOptions(survey)}      // Contents are served as they are. This shows what looks like a secret in them as [redacted]; sizes are then not told.
      // "redact": "mask",
      // Who may see it: roles, or rules. Without this, everybody who reaches the server.
      // "access": ["reader", { "deny": ["*"], "match": "private/**" }],
      // For how long clients may keep what they got.
      // "cache": { "ttl": "60s", "scope": "private" }
    }${others.map(writtenMount).join('')},${postgresMount}${apiMount}${packagesMount}${serverMounts.join('')}
    // The environment of the server: the names of all variables, the values of those that "allow" names.
    // "env://process": { "provider": "env", "allow": ["LANG", "TZ"] },
    // Small things that have no file, and pages of the web: docs/providers/inline.md, docs/providers/web.md.
    // "memo://rules": { "provider": "inline", "text": "Write plain English." },
    // "https://www.example.org": { "provider": "web", "pages": ["docs/intro"] },
    // Buckets, with the credentials that the clients of AWS and Google find: docs/providers/s3.md, docs/providers/gcs.md.
    // "s3://reports": { "provider": "s3", "bucket": "reports", "poll": "1m" },
    // "gcp://reports": { "provider": "gcs", "bucket": "reports", "poll": "1m" }
  },
  // Where the server keeps what it remembers, such as that index: by default in a file in the state folder of the user.
  // "store": { "sqlite": "/var/lib/hikidashi/store.sqlite" },
  // Where "hikidashi serve" listens, if it is not to be started by a host (stdio).
  // "http": { "listen": "127.0.0.1:8787" }
}
`
}

/** The rules for files, as lines; without any, an example. */
function rulesOf(rules: readonly object[]): string {
  if (rules.length === 0) return '      // "rules": [{ "match": "docs/**", "priority": 0.7 }],\n'
  return `      "rules": [\n${rules.map((rule) => `        ${inLine(rule)}`).join(',\n')}\n      ],\n`
}

/** Returns the options for the documents of the folder. Optional ones are comments. */
function documentOptions({ language, twins, frontMatter }: Survey): string {
  const lines = [
    ...(language === undefined
      ? []
      : [
          '// Texts in older encodings are served as UTF-8. Where their bytes leave it open, this decides.',
          `"language": ${JSON.stringify(language)},`,
          '// "encodings": [{ "match": "old/**/*.txt", "encoding": "shift_jis" }],',
        ]),
    ...(frontMatter
      ? [
          '// What the front matter of a document says of it (title, description, priority, audience).',
          '"frontMatter": "**/*.md",',
        ]
      : []),
    ...(twins
      ? [
          '// A document names itself in other languages, where they are there: README.ja.md beside README.md, docs/ja/ beside docs/en/.',
          '// Which languages these are says "languages"; without it, Japanese and English.',
        ]
      : []),
  ]
  return lines.map((line) => `      ${line}\n`).join('')
}

/** Returns the place of the schema for a folder: installed beside it, or that of this program. */
function schemaFor(folder: string): string {
  const installed = 'node_modules/hikidashi/config.schema.json'
  if (existsSync(join(folder, installed))) return `./${installed}`
  const own = fileURLToPath(new URL('../../../config.schema.json', import.meta.url))
  return own === join(folder, 'config.schema.json') ? './config.schema.json' : pathToFileURL(own).href
}
