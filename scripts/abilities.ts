/** Makes the tables of abilities in docs/providers/README.md, by opening a sample of each provider. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMount } from '../src/config/open-mount.ts'
import { reportsChanges } from '../src/config/plan.ts'
import { loadConfigSchema, type MountConfig } from '../src/config/schema.ts'
import { createCatalog } from '../src/core/catalog.ts'
import type { Entry, Provider, Template } from '../src/core/provider.ts'
import { compileTemplate } from '../src/core/template.ts'
import { formatTemplate, parseAddress } from '../src/core/uri.ts'
import { type SourceName, sources } from '../src/providers/index.ts'
import type { NewAnalysis } from '../src/providers/results/index.ts'
import { createLazyStore } from '../src/providers/source.ts'

/** What a sample needs beside the options of its declaration: the module `test/support/samples/NAME.ts`, if there is one. */
interface SampleService {
  /** Starts a stand-in for the service behind the source. Returns the options of the mount that name it. */
  start?(folder: string): Promise<{ readonly mount: Readonly<Record<string, unknown>>; close?(): Promise<void> }>
  /** Whether the sample lists nothing, or completes nothing. */
  readonly isEmpty?: boolean
}

async function serviceOf(name: SourceName): Promise<SampleService> {
  const file = new URL(`../test/support/samples/${name}.ts`, import.meta.url)
  return existsSync(file) ? ((await import(file.href)) as SampleService) : {}
}

const sampleAnalysis: NewAnalysis = {
  prompt: 'A sample?',
  taskType: 'basic',
  rounds: 1,
  votes: [{ provider: 'model', model: 'model-1', content: 'Yes.', confidence: 1, agreement: 1 }],
  consensus: { content: 'Yes.', confidence: 1 },
  thresholds: { met: true },
  tags: ['sample'],
}

/** An opened sample, with the entries and templates that it lists. */
interface Found {
  readonly name: SourceName
  readonly config: MountConfig
  readonly provider: Provider
  readonly entries: readonly Entry[]
  readonly templates: readonly Template[]
  /** Whether it lists nothing, or completes nothing. */
  readonly isEmpty: boolean
}

/** An ability: its label in the table, and a function that tests whether a provider has it. */
type Ability = readonly [label: string, has: (found: Found) => boolean]

const methods: readonly Ability[] = [
  ['one entry without a listing (`stat`)', ({ provider }) => provider.stat !== undefined],
  ['completion of its own, beside that of paths (`complete`)', completesMore],
  ['tells of changes by itself (`watch`)', ({ provider }) => provider.watch !== undefined],
  ['offers prompts (`prompts`)', ({ provider }) => provider.prompts !== undefined],
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

/** The facts about all providers. */
export interface Abilities {
  /** The tables, as Markdown. */
  readonly tables: string
  /**
   * Variables of templates that have no completions although they are not declared free. There should be none. Databases that do not
   * run, and providers that list no entries, are not tested.
   */
  readonly uncompleted: readonly string[]
  /** Providers whose configuration and open instance disagree on whether they have `watch`. */
  readonly misjudged: readonly string[]
}

/** Opens the sample of each provider once, and determines its abilities. */
export function findAbilities(): Promise<Abilities> {
  return withSamples(async (opened) => {
    const misjudged = opened
      .filter(({ config, provider }) => reportsChanges(config) !== (provider.watch !== undefined))
      .map(({ name }) => name)
    const uncompleted: string[] = []
    for (const sample of opened)
      if (!sample.isEmpty && sample.entries.length > 0) uncompleted.push(...(await uncompletedIn(sample)))
    return { tables: tablesOf(opened), uncompleted, misjudged }
  })
}

async function uncompletedIn({ name, provider, templates }: Found): Promise<readonly string[]> {
  const address = `${name}://sample`
  const catalog = createCatalog({ mounts: [{ address, provider: { ...provider, close: async () => {} } }] })
  const view = catalog.view({ id: 'abilities', roles: [] })
  const found: string[] = []
  for (const { template, free = [] } of templates) {
    const uriTemplate = formatTemplate(parseAddress(address), template)
    const complete = async (variable: string, value: string, filled: ReadonlyMap<string, string>) =>
      (await view.complete({ uriTemplate, argument: { name: variable, value }, arguments: filled })).values
    /** Combinations of values for the variables so far. Several are tried, because some tables have no rows, and some metrics no labels. */
    let ways: readonly ReadonlyMap<string, string>[] = [new Map()]
    for (const variable of compileTemplate(template).variables.filter((one) => !free.includes(one))) {
      const next: ReadonlyMap<string, string>[] = []
      for (const filled of ways) {
        let values = await complete(variable, '', filled)
        // Complete a value that ends in a slash further, as a client does.
        for (let depth = 0; depth < 8 && values[0]?.endsWith('/'); depth++)
          values = await complete(variable, values[0], filled)
        for (const value of values) if (next.length < maxWays) next.push(new Map([...filled, [variable, value]]))
      }
      if (next.length === 0) found.push(`${name}: ${template}: ${variable}`)
      else ways = next
    }
  }
  await catalog.close()
  return found
}

const maxWays = 100

async function withSamples<T>(work: (opened: readonly Found[]) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-abilities-'))
  const opened: Found[] = []
  try {
    writeSample(folder)
    for (const name of Object.keys(sources).sort() as SourceName[]) opened.push(await openSample(name, folder))
    return await work(opened)
  } finally {
    for (const { provider } of opened) await provider.close?.()
    rmSync(folder, { recursive: true })
  }
}

/** Replaces the text between `<!-- abilities -->` and `<!-- /abilities -->` in a page by the tables. */
export function withAbilities(page: string, { tables }: Pick<Abilities, 'tables'>): string {
  const place = /(<!-- abilities -->\n).*?(<!-- \/abilities -->)/s
  if (!place.test(page)) throw new Error('docs/providers/README.md has no place for the abilities: <!-- abilities -->')
  return page.replace(place, (_, start: string, end: string) => `${start}\n${tables}\n${end}`)
}

/** Makes the folder a git repository with the files that the samples serve: a document, settings, a package, a prompt. */
function writeSample(folder: string): void {
  mkdirSync(join(folder, 'docs'))
  writeFileSync(join(folder, 'docs', 'README.md'), '# Sample\n')
  writeFileSync(join(folder, 'app.yaml'), 'host: db\n')
  mkdirSync(join(folder, 'project', 'node_modules', 'sample'), { recursive: true })
  const lock = { packages: { 'node_modules/sample': { version: '1.0.0' } } }
  writeFileSync(join(folder, 'project', 'package-lock.json'), JSON.stringify(lock))
  writeFileSync(join(folder, 'project', 'node_modules', 'sample', 'package.json'), '{ "version": "1.0.0" }')
  mkdirSync(join(folder, 'prompts'))
  writeFileSync(join(folder, 'prompts', 'review.md'), 'Review {{path}}.\n')
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

async function openSample(name: SourceName, folder: string): Promise<Found> {
  const address = `${name}://sample`
  const { start, isEmpty = false } = await serviceOf(name)
  const service = await start?.(folder)
  const sample = { ...sources[name].sample, ...service?.mount, provider: name }
  const { mounts } = (await loadConfigSchema()).parse({ mounts: { [address]: sample } })
  const config = mounts[address]
  if (config === undefined) throw new Error(`There is no sample of ${name}.`)
  const store = createLazyStore({ sqlite: { file: join(folder, '.git', 'hikidashi', 'store.sqlite') } }, () => {})
  const { provider } = await openMount({ address, config, folder }, { log: () => {}, store })
  await provider.put?.(sampleAnalysis)
  const context = { principal: { id: 'abilities', roles: [] }, signal: new AbortController().signal }
  const entries: Entry[] = []
  try {
    for await (const entry of provider.list({}, context)) if (entries.push(entry) === 100) break
  } catch (error) {
    // The abilities of an empty sample are known all the same.
    if (!isEmpty) throw error
  }
  const templates = (await provider.templates?.(context)) ?? []
  const close = async () => {
    await provider.close?.()
    await store.close()
    await service?.close?.()
  }
  return { name, config, provider: { ...provider, close }, entries, templates, isEmpty }
}

/** Whether a provider completes more than paths: it has `complete`, and a template that is more than a path with a query for a part. */
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
  const linkOf = ({ name }: Found) => `[${name}](${name}.md)`
  const rows = abilities.map(([label, has]) => {
    const able = opened.filter(has)
    return row([label, able.length === opened.length ? 'all' : able.map(linkOf).join(', ')])
  })
  const templates = opened.map((found) =>
    row([linkOf(found), found.templates.map(({ template }) => `\`${template}\``).join(', ')]),
  )
  return [
    row(['', 'providers']),
    row(['---', '---']),
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
