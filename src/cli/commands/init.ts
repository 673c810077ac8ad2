import { constants, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import type { MountConfig } from '../../config/schema.ts'
import { createSearchMount, plainName, plainWord, type SetUpMount, standardMounts } from '../../config/set-up.ts'
import { defaultConfigName } from '../../config/state-folder.ts'
import type { FolderSurvey } from '../../config/survey.ts'
import { errorCodeOf } from '../../core/errors.ts'
import { fileAddress, formatUri, parseAddress } from '../../core/uri.ts'
import { sourceNamed, sources } from '../../providers/index.ts'
import { lockFiles } from '../../providers/packages/lock-file.ts'
import { joinCommand } from '../operations/command-line.ts'
import { type InitSurvey, surveyForInit } from '../operations/survey.ts'
import { saveTrust, trustNotSavedNote } from '../operations/withheld.ts'
import { commandFailure, helpExamples, usageError } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'

interface InitOptions {
  readonly force?: true
  readonly stdout?: true
  readonly json?: true
  readonly sql?: string
}

export function define(command: Command, io: Io): void {
  command
    .description(`Writes a ${defaultConfigName} for a folder, with comments that explain its keys.`)
    .argument('[dir]', 'the folder', '.')
    .option('--force', 'replace an existing file')
    .option('--stdout', 'print the configuration instead')
    .option('--json', 'print the outcome as JSON')
    .option(
      '--sql <database>',
      'print statements for a database instead (postgres, mysql): a role that can only read, and for postgres a trigger that reports changes',
    )
    .addHelpText(
      ...helpExamples(`
  hikidashi init
  hikidashi init ~/notes --stdout
  hikidashi init --sql postgres | psql`),
    )
    .action((folder: string, options: InitOptions) =>
      options.sql === undefined ? init(folder, options, io) : printSql(options.sql, io),
    )
}

async function printSql(database: string, io: Io): Promise<void> {
  const load = sourceNamed(database)?.sql
  if (load === undefined) {
    const sourceNames = Object.keys(sources).filter((name) => sourceNamed(name)?.sql !== undefined)
    throw usageError(
      `Statements exist only for these databases: ${sourceNames.map((name) => `--sql ${name}`).join(', ')}.`,
    )
  }
  await io.out.write((await load()).setupSql)
}

/** Symbolic links are not followed: a cloned repository may contain one. */
const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
const overwrite = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW

async function init(dir: string, options: InitOptions, io: Io): Promise<void> {
  const folder = resolve(dir)
  const survey = await surveyForInit(folder).catch((error: unknown) => {
    const code = errorCodeOf(error)
    if (code === 'ENOTDIR') throw commandFailure(`${folder} is not a folder. Name the folder that contains it.`)
    throw commandFailure(`The folder ${folder} does not exist, or cannot be read. Create it, or name another folder.`)
  })
  if (survey.bare)
    throw commandFailure(
      `${folder} is a git directory. Name a working tree; or serve the history: hikidashi serve ${joinCommand([folder])}`,
    )
  const address = addressFor(folder)
  const text = configText(folder, address, survey)
  if (options.stdout) return io.out.write(text)
  const file = join(folder, defaultConfigName)
  try {
    await writeFile(file, text, { flag: options.force ? overwrite : 'wx' })
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (code === 'EEXIST') throw commandFailure(`${file} exists already. To replace it, add --force.`)
    if (code === 'ELOOP')
      throw commandFailure(
        `${file} is a symbolic link, which is not overwritten. Remove it, or write the file that it leads to.`,
      )
    throw commandFailure(`${file} cannot be written (${code}).`)
  }
  if (!(await saveTrust(file, Buffer.from(text)))) io.say(`Note: ${trustNotSavedNote}`)
  if (options.json)
    await writeJson(io.out, { file, mounts: mountsOfFolder(folder, address, survey).map((mount) => mount.address) })
  const command = joinCommand([file])
  io.say(`Wrote ${file}.
List its resources:      hikidashi ls --recursive --config ${command}
Check it:                hikidashi check --config ${command}
Serve it:                hikidashi serve --config ${command} --http 8787`)
}

/** The address has no path of this machine, so that the file can be shared. */
function addressFor(folder: string): string {
  return formatUri(parseAddress('file:///'), basename(folder) || 'root')
}

export function mountsOfFolder(folder: string, address: string, survey: FolderSurvey): readonly SetUpMount[] {
  const name = plainName(folder)
  const mounts = standardMounts(survey, { address, name, sqlite: survey.sqlite, documents: survey })
  return [...mounts, createSearchMount(name, mounts)]
}

const comments: Partial<Record<MountConfig['provider'], string>> = {
  git: `The git history: files at any branch, tag or commit, the log, commits, diffs, and the author of each line.
A history may contain secrets that were committed by mistake: "redact" shows them as [redacted].`,
  settings: `The configuration files, each as a whole or by single values (?pointer=/db/host). Secrets are shown as
[redacted]; of .env files only the names are shown, and the values that "allow" names.`,
  env: 'The variables in .env: their names, and the values of those that "allow" names.',
  prompts: 'The prompts, which hosts show as commands: {{name}} in the text is an argument.',
  sqlite: `An SQLite database: its tables, and with "rows": true their rows. The mount of the files serves the whole database
file as bytes: to hide the rows, name it in "exclude" there.`,
  search: 'A search over these mounts: hikidashi search WORDS. The index is in the store.',
}

function writtenMount({ address, config }: SetUpMount): string {
  const comment = comments[config.provider]?.split('\n').map((line) => `\n    // ${line}`) ?? []
  return `,${comment.join('')}\n    ${JSON.stringify(address)}: ${inLine(forFile(config))}`
}

function forFile(config: MountConfig): object {
  return config.poll === undefined ? config : { ...config, poll: `${config.poll / 1000}s` }
}

function inLine(value: object): string {
  return JSON.stringify(value, undefined, 1).replace(/\n\s*/g, ' ').replaceAll('[ ', '[').replaceAll(' ]', ']')
}

export function configText(folder: string, address: string, survey: InitSurvey): string {
  const text = (value: unknown) => JSON.stringify(value)
  const name = plainName(folder)
  const [files, ...others] = mountsOfFolder(folder, address, survey)
  const { title, rules = [] }: { readonly title?: string; readonly rules?: readonly object[] } = files?.config ?? {}
  const postgresMount =
    survey.postgres === undefined
      ? ''
      : `
    // The database of ${survey.postgres} in .env: its tables, and with "rows" their rows. Set the variable for the server.
    // Use a role that can only read; to make one: hikidashi init --sql postgres.
    // ${text(`postgres://${name}`)}: { "provider": "postgres", "url": { "env": ${text(survey.postgres)} }, "schemas": ["public"] },`
  const hasLock = Object.keys(lockFiles).some((file) => survey.names.includes(file))
  const packagesMount = hasLock
    ? `
    // The dependencies, at the installed versions: documentation, changelogs and types. These may be tens of thousands of files.
    // ${text('pkg://npm')}: { "provider": "packages", "root": ".", "packages": ["*", "@*/*"] },`
    : ''
  const apiMount =
    survey.api === undefined
      ? ''
      : `
    // The API of ${survey.api.file}, only with GET requests. For a token, add "bearer": { "env": "NAME" }.
    // ${text(`api://${name}`)}: { "provider": "api", "url": ${text(survey.api.url)}, "routes": [${survey.api.templates
      .map((template) => `{ "template": ${text(template)} }`)
      .join(', ')}] },`
  const serverMounts = (survey.servers ?? []).map(
    ({ name: server, file, mount }) => `
    // The MCP server ${text(server)} of ${file}. Remove the comment marks to start it, or to connect to it.
    // ${text(`mcp://${plainWord(server)}`)}: ${text(mount)},`,
  )
  return `{
  // The configuration of hikidashi. To check it: hikidashi check. All keys: docs/configuration.md of hikidashi.
  "$schema": ${text(schemaFor(folder))},
  // The paths below were found in the folder: none is followed through a symbolic link. Remove the key to follow links.
  "linkedRoots": false,
  "mounts": {
    // The key is the address: the prefix of the URIs of all files in the mount. This name is the same on every machine.
    // If hosts on this machine should open the files that they read, use ${fileAddress(folder)} instead.
    ${text(address)}: {
      "provider": "files",
      "title": ${text(title)},
      "root": ".",
      // Files that .gitignore ignores, .git, dependency folders, keys and .env files are left out by default.
      // "exclude": ["drafts/**"],
      // How important files are (0 to 1), and their titles: "title": "heading" takes the first heading of a document.
${rulesOf(rules)}${documentOptions(survey)}      // Contents are served unchanged. With this key, secrets in them are shown as [redacted], and lists have no sizes.
      // "redact": "mask",
      // Access: roles, or rules. Without this key, everybody who reaches the server may see the mount.
      // "access": ["reader", { "deny": ["*"], "match": "private/**" }],
      // How long clients may cache answers.
      // "cache": { "ttl": "60s", "scope": "private" }
    }${others.map(writtenMount).join('')},${postgresMount}${apiMount}${packagesMount}${serverMounts.join('')}
    // The environment of the server: the names of all variables, and the values of those that "allow" names.
    // "env://process": { "provider": "env", "allow": ["LANG", "TZ"] },
    // Small contents without a file, and web pages: docs/providers/inline.md, docs/providers/web.md.
    // "memo://rules": { "provider": "inline", "text": "Write plain English." },
    // "https://www.example.org": { "provider": "web", "pages": ["docs/intro"] },
    // Buckets, with the default credentials of AWS and Google: docs/providers/s3.md, docs/providers/gcs.md.
    // "s3://reports": { "provider": "s3", "bucket": "reports", "poll": "1m" },
    // "gcp://reports": { "provider": "gcs", "bucket": "reports", "poll": "1m" }
  },
  // The database of the server itself, such as the search index. By default a file in the state folder of the user.
  // "store": { "sqlite": "/var/lib/hikidashi/store.sqlite" },
  // The address at which "hikidashi serve" listens. Without it, a host starts the server (stdio).
  // "http": { "listen": "127.0.0.1:8787" }
}
`
}

function rulesOf(rules: readonly object[]): string {
  if (rules.length === 0) return '      // "rules": [{ "match": "docs/**", "priority": 0.7 }],\n'
  return `      "rules": [\n${rules.map((rule) => `        ${inLine(rule)}`).join(',\n')}\n      ],\n`
}

function documentOptions({ language, translations, frontMatter }: FolderSurvey): string {
  const lines = [
    ...(language === undefined
      ? []
      : [
          '// Texts in older encodings are served as UTF-8. This language decides if the bytes fit several encodings.',
          `"language": ${JSON.stringify(language)},`,
          '// "encodings": [{ "match": "old/**/*.txt", "encoding": "shift_jis" }],',
        ]),
    ...(frontMatter
      ? [
          '// Documents whose front matter gives title, description, priority and audience.',
          '"frontMatter": "**/*.md",',
        ]
      : []),
    ...(translations
      ? [
          '// A read names the same document in other languages: README.ja.md beside README.md, docs/ja/ beside docs/en/.',
          '// The key "languages" lists these languages; the default is Japanese and English.',
        ]
      : []),
  ]
  return lines.map((line) => `      ${line}\n`).join('')
}

/** Returns the path or URL of the JSON schema: of the package that is installed in the folder, else of this program. */
function schemaFor(folder: string): string {
  const installed = 'node_modules/hikidashi/config.schema.json'
  if (existsSync(join(folder, installed))) return `./${installed}`
  const own = fileURLToPath(new URL('../../../config.schema.json', import.meta.url))
  return own === join(folder, 'config.schema.json') ? './config.schema.json' : pathToFileURL(own).href
}
