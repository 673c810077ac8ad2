import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defined } from '../../../core/kit/defined.ts'
import type { Json, JsonObject } from '../../hosts/values.ts'

/** The version of the manifest's specification: github.com/modelcontextprotocol/mcpb, MANIFEST.md. */
const manifestVersion = '0.3'

/** Path of the texts of another language in a bundle. */
export const localePath = (locale: string) => `mcpb-resources/${locale}.json`

/** The operating systems that the manifest can name, as Node names them. */
export const allPlatformNames: readonly NodeJS.Platform[] = ['darwin', 'win32', 'linux']

/**
 * Returns the manifest.json of a bundle. The host asks its user for the folders.
 *
 * @param platforms The operating systems that the bundle runs on. The manifest cannot name a processor.
 */
export function bundleManifest(own: OwnPackage, author: string, platforms: readonly NodeJS.Platform[]): JsonObject {
  const main = `node_modules/${own.name}/dist/cli/main.js`
  return {
    manifest_version: manifestVersion,
    name: own.name,
    display_name: 'hikidashi',
    version: own.version,
    description: shortDescription,
    long_description: longDescription,
    author: { name: author },
    ...defined({ homepage: own.homepage }),
    license: own.license,
    keywords: [...own.keywords],
    localization: { resources: localePath(`\${locale}`), default_locale: 'en-US' },
    server: {
      type: 'node',
      entry_point: main,
      mcp_config: {
        command: 'node',
        args: [`\${__dirname}/${main}`, 'serve', `\${user_config.folders}`, '--stdio'],
        env: {},
      },
    },
    // Which there are depends on what is served, and on the host.
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: [...platforms], runtimes: { node: own.engines.node } },
    user_config: {
      folders: {
        type: 'directory',
        title: 'Folders',
        description: 'The folders whose files may be read. What .gitignore names, keys and .env files are left out.',
        multiple: true,
        required: true,
      },
    },
  } satisfies Record<string, Json>
}

const longDescription = `Serves the folders that you choose, to be attached to a conversation as resources, or found and read by tools.

It only reads. What a \`.gitignore\` names is left out, and so are keys, \`.env\` files and folders of dependencies. Text in Shift_JIS and other encodings is read as what it is.`

/** The same for people who read Japanese. */
export const localized: Readonly<Record<string, JsonObject>> = {
  ja: {
    display_name: 'hikidashi（引き出し）',
    description: '選んだフォルダーを MCP のリソースとして一覧・検索・閲覧できるようにします。',
    long_description: `選んだフォルダーの中のファイルを、会話にリソースとして添付したり、ツールで探して読んだりできるようにします。

読み取り専用です。\`.gitignore\` の対象、鍵、\`.env\` ファイル、依存関係のフォルダーは公開しません。Shift_JIS などの文字コードのテキストも正しく読めます。`,
    keywords: ['MCP', 'リソース', 'コンテキスト', 'ファイル'],
  },
}

/** Facts of this package from its package.json. */
export interface OwnPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly keywords: readonly string[]
  readonly engines: { readonly node: string }
  readonly author?: string
  readonly homepage?: string
  readonly repository?: string | { readonly url: string; readonly directory?: string }
  /** The name in the registry of MCP servers that this package belongs to. */
  readonly mcpName?: string
}

/** The folder of this package. */
export function ownFolder(): string {
  return realpathSync(fileURLToPath(new URL('../../../../', import.meta.url)))
}

export function ownPackage(): OwnPackage {
  return JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')) as OwnPackage
}

/** Description of this package in one sentence. The registry allows 100 characters. */
export const shortDescription = 'Serves folders, databases and other data as MCP resources: listed, searched, read.'
