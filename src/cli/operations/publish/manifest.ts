import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defined } from '../../../core/kit/object.ts'
import type { JsonObject } from '../../../core/tool.ts'
import { usageError } from '../../terminal/exit.ts'
import type { BundledConfig } from './curated.ts'

/** From github.com/modelcontextprotocol/mcpb, MANIFEST.md. */
const manifestVersion = '0.4'

/** Path in a bundle, as are {@link localePath} and {@link iconPath}. */
export const bundledConfigPath = 'hikidashi.json'

export const localePath = (locale: string) => `mcpb-resources/${locale}.json`

/** A PNG of 512 × 512 pixels. */
export const iconPath = 'icon.png'

/** The operating systems that a manifest can contain, by their names in Node. */
export const allPlatformNames: readonly NodeJS.Platform[] = ['darwin', 'win32', 'linux']

export interface BundleOptions {
  readonly author: string
  /** A manifest cannot restrict the processor. */
  readonly platforms: readonly NodeJS.Platform[]
  /** Without a configuration, the bundle serves folders that the host asks its user for. */
  readonly curated?: BundledConfig
  readonly folders?: boolean
}

/** Returns the manifest.json of a bundle. The host asks its user for the folders and secrets. */
export function bundleManifest(own: OwnPackage, options: BundleOptions): JsonObject {
  const { author, platforms, curated, folders = curated === undefined } = options
  const main = `node_modules/${own.name}/dist/cli/main.js`
  const variables = [...(curated?.variables ?? [])]
  return {
    manifest_version: manifestVersion,
    name: curated === undefined ? own.name : slugOf(curated.name),
    display_name: curated?.name ?? 'hikidashi',
    version: own.version,
    ...(curated === undefined ? describedFolders : describeBundle(curated)),
    author: { name: author },
    ...defined({ homepage: own.homepage }),
    license: own.license,
    icon: iconPath,
    keywords: [...own.keywords],
    server: {
      type: 'node',
      entry_point: main,
      mcp_config: {
        command: 'node',
        args: [
          `\${__dirname}/${main}`,
          'serve',
          ...(folders ? [`\${user_config.folders}`] : []),
          ...(curated === undefined ? [] : ['--config', `\${__dirname}/${bundledConfigPath}`]),
          '--stdio',
        ],
        env: Object.fromEntries(variables.map(([name]) => [name, `\${user_config.${name}}`])),
      },
    },
    // The tools depend on the served mounts, and on the host.
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: [...platforms], runtimes: { node: own.engines.node } },
    user_config: {
      ...(folders ? { folders: askedFolders } : {}),
      ...Object.fromEntries(
        variables.map(([name, uses]) => [
          name,
          {
            ...{ type: 'string', title: name, description: `The secret for ${uses.join(', ')}.` },
            ...{ sensitive: true, required: true },
          },
        ]),
      ),
    },
  } satisfies JsonObject
}

const askedFolders = {
  type: 'directory',
  title: 'Folders',
  description: 'The folders whose files may be read. Files that .gitignore names, keys and .env files are left out.',
  multiple: true,
  required: true,
}

/** Returns a name in lower-case letters, digits and hyphens; `hikidashi` if nothing of the name is left. */
export function slugOf(name: string): string {
  return (
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '') || 'hikidashi'
  )
}

function describeBundle({ name, mounts }: BundledConfig): JsonObject {
  const lines = mounts.map(({ address, title }) => `- \`${address}\`${title === undefined ? '' : `: ${title}`}`)
  return {
    description: `Serves ${mounts.length === 1 ? 'one source' : `${mounts.length} sources`} of ${name} as MCP resources, to read only.`,
    long_description: `Made with hikidashi. It only reads, from:\n\n${lines.join('\n')}`,
  }
}

/** The registry allows 100 characters. */
const shortDescription = 'Serves folders, databases and other data as MCP resources: listed, searched, read.'

const longDescription = `Serves the folders that you choose, to be attached to a conversation as resources, or found and read by tools.

It only reads. Files that a \`.gitignore\` names, keys, \`.env\` files and folders of dependencies are left out. Text in Shift_JIS and other encodings is decoded.`

const describedFolders = {
  description: shortDescription,
  long_description: longDescription,
  localization: { resources: localePath(`\${locale}`), default_locale: 'en-US' },
}

export const localizedTexts: Readonly<Record<string, JsonObject>> = {
  ja: {
    display_name: 'hikidashi（引き出し）',
    description: '選んだフォルダーを MCP のリソースとして一覧・検索・閲覧できるようにします。',
    long_description: `選んだフォルダーの中のファイルを、会話にリソースとして添付したり、ツールで探して読んだりできるようにします。

読み取り専用です。\`.gitignore\` の対象、鍵、\`.env\` ファイル、依存関係のフォルダーは公開しません。Shift_JIS などの文字コードのテキストも正しく読めます。`,
    keywords: ['MCP', 'リソース', 'コンテキスト', 'ファイル'],
  },
}

export interface OwnPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly keywords: readonly string[]
  readonly engines: { readonly node: string }
  readonly author?: string
  readonly homepage?: string
  readonly repository?: string | { readonly url: string; readonly directory?: string }
  readonly mcpName?: string
}

export function packageFolder(): string {
  return realpathSync(fileURLToPath(new URL('../../../../', import.meta.url)))
}

export function ownPackage(): OwnPackage {
  return JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')) as OwnPackage
}

/** From github.com/modelcontextprotocol/static. */
const schema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

/** Facts that package.json lacks, or that replace its facts. */
export interface ServerJsonOptions {
  readonly name?: string
  readonly repository?: string
  readonly description?: string
  readonly title?: string
  readonly website?: string
  readonly remotes?: readonly string[]
}

/**
 * Returns the server.json for the registry of MCP servers. @throws CommandError for values that the registry refuses
 */
export function serverJson(own: OwnPackage, options: ServerJsonOptions): JsonObject {
  const name = nameFor(own, options.name)
  const { description = shortDescription, title = 'hikidashi', website = own.homepage, remotes = [] } = options
  const repository = repositoryFor(own, options.repository)
  return {
    $schema: schema,
    name,
    title: checkLength(title, 'title'),
    description: checkLength(description, 'description'),
    version: own.version,
    ...defined({ repository }),
    ...(website === undefined ? {} : { websiteUrl: address(website, '--website') }),
    packages: [
      {
        registryType: 'npm',
        identifier: own.name,
        version: own.version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [
          { type: 'positional', value: 'serve' },
          {
            type: 'positional',
            valueHint: 'folder',
            description: 'A folder to serve, by its absolute path',
            format: 'filepath',
            isRequired: true,
            isRepeated: true,
          },
          { type: 'positional', value: '--stdio' },
        ],
      },
    ],
    ...(remotes.length === 0
      ? {}
      : { remotes: remotes.map((url) => ({ type: 'streamable-http', url: address(url, '--remote') })) }),
  }
}

const namePattern = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/

function nameFor({ mcpName }: OwnPackage, optionName: string | undefined): string {
  const name = optionName ?? mcpName
  if (name === undefined)
    throw usageError(
      'The registry needs a name that shows its owner: --name io.github.USER/hikidashi, or a name in your own domain such as com.example/hikidashi.',
    )
  if (!namePattern.test(name) || name.length > 200)
    throw usageError(
      `${JSON.stringify(name)} is not a name for the registry. Write one such as io.github.USER/hikidashi.`,
    )
  if (mcpName !== undefined && mcpName !== name)
    throw usageError(
      `package.json has "mcpName": ${JSON.stringify(mcpName)}, and the registry compares both. Give that name, or change package.json.`,
    )
  return name
}

const sources: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' }

function repositoryFor({ repository }: OwnPackage, option: string | undefined): JsonObject | undefined {
  const own = typeof repository === 'string' ? repository : repository?.url
  const url = option ?? own?.replace(/^git\+/, '').replace(/\.git$/, '')
  if (url === undefined) return undefined
  const { hostname } = new URL(address(url, '--repository'))
  const source = sources[hostname]
  if (source === undefined)
    throw usageError(
      `The registry accepts repositories at ${Object.keys(sources).join(' and ')}, not at ${hostname}. Leave it out, or give --website.`,
    )
  return { url, source }
}

function address(url: string, option: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && new URL(url).username === '') return url
  throw usageError(`${option} must be a URL that begins with https:// or http://, and has no user name.`)
}

function checkLength(text: string, what: string): string {
  if (text.length >= 1 && text.length <= 100) return text
  throw usageError(`The ${what} has ${text.length} characters. The registry takes 1 to 100.`)
}
