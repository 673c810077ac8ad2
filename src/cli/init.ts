import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { fileAddress, formatUri, parseAddress } from '../core/uri.ts'
import { joinCommand } from './command-line.ts'
import { exitCodeHelp, failed, misused } from './exit.ts'
import type { Io } from './io.ts'
import { writeJson } from './json.ts'
import { defaultConfig } from './local.ts'
import { type Survey, surveyFolder } from './survey.ts'

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
    ? import('../providers/postgres/setup.ts')
    : import('../providers/mysql/setup.ts'))
  await io.out.write(setupSql)
}

async function init(dir: string, options: InitOptions, io: Io): Promise<void> {
  const folder = resolve(dir)
  const survey = await surveyFolder(folder).catch(() => {
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
  if (options.json) await writeJson(io.out, { file, mounts: mountsIn(folder, address, survey) })
  const named = joinCommand([file])
  io.say(`Wrote ${file}.
Look at what it serves:  hikidashi ls --recursive --config ${named}
Check it:                hikidashi check --config ${named}
Serve it:                hikidashi serve --config ${named} --http 8787`)
}

function mountsIn(
  folder: string,
  address: string,
  { names, settings, dotenv, prompts, sqlite }: Survey,
): readonly string[] {
  const name = plainName(folder)
  return [
    address,
    ...(names.includes('.git') ? [`git://${name}`] : []),
    ...(settings ? [`config://${name}`] : []),
    ...(dotenv ? [`env://${name}`] : []),
    ...promptAddresses(prompts).map(([library]) => library),
    ...sqliteAddresses(name, sqlite).map(([database]) => database),
    `search://${name}`,
  ]
}

/** The address of each folder of prompts: that which the specification keeps for them, or one below it for each of several. */
function promptAddresses(folders: readonly string[]): readonly (readonly [address: string, folder: string])[] {
  const library = 'zed://prompt-library'
  const only = folders.length === 1
  return folders.map((folder) => [only ? library : `${library}/${/\w+/.exec(folder)?.[0]}`, folder])
}

/** The address of each file of SQLite: the name of the folder, or below it the path of each of several. */
function sqliteAddresses(
  name: string,
  files: readonly string[],
): readonly (readonly [address: string, file: string])[] {
  const only = files.length === 1
  return files.map((file) => [only ? `sqlite://${name}` : formatUri(parseAddress(`sqlite://${name}`), file), file])
}

/** An address that means the same on every machine: the file can be shared, the folder is somewhere else on each. */
function addressFor(folder: string): string {
  return formatUri(parseAddress('file:///'), basename(folder) || 'root')
}

/** The name of the folder in plain letters. */
function plainName(folder: string): string {
  return plainWord(basename(folder))
}

/** A name in plain letters, as the authority of a URI has them. */
function plainWord(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
  return name === '' ? 'root' : name
}

/** A configuration for a folder, made from what is in it. */
export function configFor({
  folder,
  address,
  survey,
}: {
  readonly folder: string
  readonly address: string
  readonly survey: Survey
}): string {
  const { names } = survey
  const readme = names.find((name) => /^readme(\.[a-z]+)?$/i.test(name))
  const docs = names.find((name) => /^docs?$/i.test(name))
  const rules = [
    { match: '**/*.md', title: 'heading' },
    ...(readme === undefined ? [] : [{ match: `/${escapeGlob(readme)}`, priority: 0.9 }]),
    ...(docs === undefined ? [] : [{ match: `${escapeGlob(docs)}/**`, priority: 0.7 }]),
  ]
  const text = (value: unknown) => JSON.stringify(value)
  const name = plainName(folder)
  const gitMount = names.includes('.git')
    ? `,
    // Its history: files at any branch, tag or commit, the log, commits, differences, who wrote a line.
    // A history remembers what was committed by mistake: what looks secret in it is shown as [redacted].
    ${text(`git://${name}`)}: { "provider": "git", "repository": ".", "redact": "mask" }`
    : ''
  const settingsMount = survey.settings
    ? `,
    // Its configuration files, each as a whole or one value of it (?pointer=/db/host). What looks secret is shown as
    // [redacted]; of .env files only the names are shown, and the values that "allow" names.
    ${text(`config://${name}`)}: { "provider": "settings", "root": "." }`
    : ''
  const envMount = survey.dotenv
    ? `,
    // The variables in .env, each by its name; the values of those that "allow" names.
    ${text(`env://${name}`)}: { "provider": "env", "file": ".env", "poll": "5s" }`
    : ''
  const promptMounts = promptAddresses(survey.prompts).map(
    ([library, root]) => `,
    // Its prompts, which hosts show as commands: {{name}} in the text is an argument.
    ${text(library)}: { "provider": "prompts", "root": ${text(root)} }`,
  )
  const sqliteMounts = sqliteAddresses(name, survey.sqlite).map(
    ([database, file]) => `,
    // A database of SQLite: its tables, and with "rows": true their rows.
    ${text(database)}: { "provider": "sqlite", "file": ${text(file)} }`,
  )
  const searched = [address, ...promptAddresses(survey.prompts).map(([library]) => library)]
  const searchMount = `,
    // Search over them: hikidashi search WORDS. The index is in the store.
    ${text(`search://${name}`)}: { "provider": "search", "over": [${searched.map(text).join(', ')}] }`
  const postgresMount =
    survey.postgres === undefined
      ? ''
      : `
    // The database that ${survey.postgres} in .env names: its tables, and with "rows" their rows. The variable has to be set for the server,
    // and its role should only read: hikidashi init --sql postgres.
    // ${text(`postgres://${name}`)}: { "provider": "postgres", "url": { "env": ${text(survey.postgres)} }, "schemas": ["public"] },`
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
${documentOptions(survey)}      // Contents are served as they are. This shows what looks like a secret in them as [redacted]; sizes are then not told.
      // "redact": "mask",
      // Who may see it: roles, or rules. Without this, everybody who reaches the server.
      // "access": ["reader", { "deny": ["*"], "match": "private/**" }],
      // For how long clients may keep what they got.
      // "cache": { "ttl": "60s", "scope": "private" }
    }${gitMount}${settingsMount}${envMount}${promptMounts.join('')}${sqliteMounts.join('')}${searchMount},${postgresMount}${apiMount}${serverMounts.join('')}
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

/** What is said of the documents in the folder. What is only a matter of taste is a comment. */
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
