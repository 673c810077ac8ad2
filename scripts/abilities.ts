/** The table of providers and what they can do in docs/providers/README.md, made by opening each and looking. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMount } from '../src/config/build.ts'
import { configSchema } from '../src/config/schema.ts'
import type { Entry, Provider, Template } from '../src/core/provider.ts'
import { type ProviderName, providers } from '../src/providers/index.ts'

/** The smallest mount of each provider. */
const samples: Readonly<Record<ProviderName, Readonly<Record<string, unknown>>>> = {
  env: {},
  files: { root: '.' },
  git: { repository: '.' },
  settings: { root: '.' },
}

/** What was found out about one provider. */
interface Found {
  readonly name: string
  readonly provider: Provider
  readonly entries: readonly Entry[]
  readonly templates: readonly Template[]
}

/** An ability: what it is called in the table, and whether a provider has it. */
type Ability = readonly [label: string, has: (found: Found) => boolean]

const methods: readonly Ability[] = [
  ['one entry without a listing (`stat`)', ({ provider }) => provider.stat !== undefined],
  ['completion of its own, beside that of paths (`complete`)', completesMore],
  ['tells of changes by itself (`watch`)', ({ provider }) => provider.watch !== undefined],
  ['lists `size`', ({ entries }) => entries.some(({ size }) => size !== undefined)],
  ['lists `lastModified`', ({ entries }) => entries.some(({ modified }) => modified !== undefined)],
  ['lists versions', ({ entries }) => entries.some(({ version }) => version !== undefined)],
]

const parameters: readonly (readonly [parameter: string, meaning: string])[] = [
  ['lines', 'lines of a text'],
  ['bytes', 'bytes'],
  ['tail', 'the last lines of a text'],
  ['as', 'another form'],
  ['pointer', 'one value'],
]

/** The tables, as Markdown. */
export async function abilityTables(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-abilities-'))
  const opened: Found[] = []
  try {
    writeSample(folder)
    for (const name of Object.keys(providers) as ProviderName[]) opened.push(await openSample(name, folder))
    return tablesOf(opened)
  } finally {
    for (const { provider } of opened) await provider.close?.()
    rmSync(folder, { recursive: true })
  }
}

/** Puts the tables into their place: between `<!-- abilities -->` and `<!-- /abilities -->`. */
export async function withAbilities(page: string): Promise<string> {
  const place = /(<!-- abilities -->\n).*?(<!-- \/abilities -->)/s
  if (!place.test(page)) throw new Error('docs/providers/README.md has no place for the abilities: <!-- abilities -->')
  const tables = await abilityTables()
  return page.replace(place, (_, start: string, end: string) => `${start}\n${tables}\n${end}`)
}

/** A repository with a document and a file of settings in it. */
function writeSample(folder: string): void {
  mkdirSync(join(folder, 'docs'))
  writeFileSync(join(folder, 'docs', 'README.md'), '# Sample\n')
  writeFileSync(join(folder, 'app.yaml'), 'host: db\n')
  const git = (...args: readonly string[]) =>
    execFileSync(
      'git',
      ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgSign=false', ...args],
      {
        cwd: folder,
        env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      },
    )
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '--message', 'sample')
}

async function openSample(name: ProviderName, folder: string): Promise<Found> {
  const address = `${name}://sample`
  const { mounts } = configSchema.parse({ mounts: { [address]: { provider: name, ...samples[name] } } })
  const config = mounts[address]
  if (config === undefined) throw new Error(`There is no sample of ${name}.`)
  const { provider } = await openMount({ address, config, folder }, { log: () => {} })
  const context = { principal: { id: 'abilities', roles: [] }, signal: new AbortController().signal }
  const entries: Entry[] = []
  for await (const entry of provider.list({}, context)) if (entries.push(entry) === 100) break
  return { name, provider, entries, templates: (await provider.templates?.(context)) ?? [] }
}

/** Whether it takes part in completing its templates: one that only adds a query to paths says of those that it does not know. */
function completesMore({ provider, templates }: Found): boolean {
  return (
    provider.complete !== undefined &&
    templates.some(({ template }) => !/^\{\+path\}(?:\{\?(?:as|lines|bytes|tail|,)+\})?$/.test(template))
  )
}

function takes(parameter: string): Ability[1] {
  const pattern = new RegExp(`^\\{\\+path\\}\\{\\?(?:\\w+,)*${parameter}[,}]`)
  return ({ templates }) => templates.some(({ template }) => pattern.test(template))
}

function tablesOf(opened: readonly Found[]): string {
  const abilities: readonly Ability[] = [
    ...methods,
    ...parameters.map(([parameter, meaning]): Ability => [`\`?${parameter}=\`: ${meaning}`, takes(parameter)]),
  ]
  const head = opened.map(({ name }) => `[${name}](${name}.md)`)
  const rows = abilities.map(([label, has]) => row([label, ...opened.map((found) => (has(found) ? 'yes' : '–'))]))
  const templates = opened.map(({ name, templates }) =>
    row([`[${name}](${name}.md)`, templates.map(({ template }) => `\`${template}\``).join(', ')]),
  )
  return [
    row(['', ...head]),
    row(['---', ...head.map(() => '---')]),
    ...rows,
    '',
    row(['', 'templates, relative to the address']),
    row(['---', '---']),
    ...templates,
    '',
  ].join('\n')
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}
