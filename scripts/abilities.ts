/** The table of providers and what they can do in docs/providers/README.md, made by opening each and looking. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMount } from '../src/config/build.ts'
import { lazyStore } from '../src/config/lazy-store.ts'
import { configSchema } from '../src/config/schema.ts'
import type { Entry, Provider, Template } from '../src/core/provider.ts'
import { type ProviderName, providers } from '../src/providers/index.ts'
import type { NewAnalysis, Results } from '../src/providers/results/index.ts'
import { startBucket } from '../test/support/buckets.ts'

/** The smallest mount of each provider. */
const samples: Readonly<Record<ProviderName, Readonly<Record<string, unknown>>>> = {
  env: {},
  files: { root: '.' },
  gcs: {},
  git: { repository: '.' },
  metrics: { source: 'self' },
  postgres: { url: { file: '.git/postgres' }, rows: true },
  results: {},
  s3: {},
  settings: { root: '.' },
}

const sampleAnalysis: NewAnalysis = {
  prompt: 'A sample?',
  taskType: 'basic',
  rounds: 1,
  votes: [{ provider: 'model', model: 'model-1', content: 'Yes.', confidence: 1, agreement: 1 }],
  consensus: { content: 'Yes.', confidence: 1 },
  thresholds: { met: true },
}

/** Databases that nobody started: their URLs lead nowhere. */
const away: ReadonlySet<ProviderName> = new Set(['postgres'] as const)

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
  writeFileSync(join(folder, '.git', 'postgres'), 'postgres://reader@127.0.0.1:1/sample')
  git('add', '.')
  git('commit', '--quiet', '--message', 'sample')
}

async function openSample(name: ProviderName, folder: string): Promise<Found> {
  const address = `${name}://sample`
  // What is not on this machine is stood in for.
  const bucket = name === 's3' || name === 'gcs' ? await startBucket(name) : undefined
  bucket?.store.table.put('docs/README.md', '# Sample\n')
  const sample = { provider: name, ...samples[name], ...bucket?.mount }
  const { mounts } = configSchema.parse({ mounts: { [address]: sample } })
  const config = mounts[address]
  if (config === undefined) throw new Error(`There is no sample of ${name}.`)
  const store = lazyStore({ sqlite: { file: join(folder, '.git', 'hikidashi', 'store.sqlite') } }, () => {})
  const { provider } = await openMount({ address, config, folder }, { log: () => {}, store })
  if ('put' in provider) await (provider as Results).put(sampleAnalysis)
  const context = { principal: { id: 'abilities', roles: [] }, signal: new AbortController().signal }
  const entries: Entry[] = []
  try {
    for await (const entry of provider.list({}, context)) if (entries.push(entry) === 100) break
  } catch (error) {
    // A database that is away lists nothing, and can do all that it can do.
    if (!away.has(name)) throw error
  }
  const templates = (await provider.templates?.(context)) ?? []
  const close = async () => {
    await provider.close?.()
    await store.close()
    await bucket?.close()
  }
  return { name, provider: { ...provider, close }, entries, templates }
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
