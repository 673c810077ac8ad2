import { existsSync, readdirSync } from 'node:fs'
import { join, posix, relative, resolve } from 'node:path'
import { build, type Plugin } from 'rolldown'
import { chunksOfStarts } from './chunks.ts'
import { commanderAsModules } from './commander-modules.ts'
import { fewerModules } from './fewer-modules.ts'
import { copyVendored, vendored } from './vendored.ts'

const source = resolve(import.meta.dirname, '../src')

const command = 'cli/main'

/**
 * Programs of threads and child processes. They share chunks only with each other, because a thread that loads the chunks of the server
 * takes more memory.
 */
const threads = [
  'providers/files/watch-worker',
  'providers/settings/worker',
  'providers/sqlite/child',
  'store/sqlite/worker',
  'readings/worker',
  'secrets/worker',
]

/** The modules that `package.json` exports, and the store, which tests import in processes that they kill. */
const libraries = [
  '',
  'server/',
  'sdk/',
  'search/',
  'client/',
  'context/',
  'skills/',
  'testing/',
  'source/',
  'store/',
].map((folder) => `${folder}index`)

const folders = readdirSync(join(source, 'providers'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
/** Returns the modules with this file name in the folders of all providers. */
const inSources = (file: string) =>
  folders
    .filter(({ name }) => existsSync(join(source, 'providers', name, `${file}.ts`)))
    .map(({ name }) => `providers/${name}/${file}`)

const providers = inSources('index')

/** The modules that each start of the command line loads by name: joining, `serve` over stdio, a configuration, and `ls`. */
const starts: Readonly<Record<string, readonly string[]>> = {
  // A process that joins another one, and a hook that asks one, load nothing else.
  join: ['cli/main', 'cli/operations/joining/index', 'cli/hosts/answer-hook'],
  serve: ['cli/main', 'cli/run', 'cli/commands/serve', 'config/set-up', 'server/stdio/serve-stdio'],
  // The schemas and openers of all sources share a chunk each: they are small, and opening a file takes longer than reading them.
  config: ['config/load', 'providers/inline/open', ...inSources('config')],
  ls: [
    'cli/main',
    'cli/run',
    'cli/commands/ls',
    'config/set-up',
    'config/build',
    'providers/files/index',
    ...inSources('open'),
  ],
}

/** Whether a start of the command line loads a chunk. The name of a chunk lists the starts that load it (`chunks.ts`). */
const isOfStart = (chunk: string) =>
  chunk === 'cli/main' ||
  chunk === 'rolldown-runtime' ||
  chunk.split('-').every((part) => part in starts || part === 'library')

const moduleOf = (name: string) => join(source, `${name}.ts`)

/** Imports that are not bundled: the loader of TypeScript, which the built code never uses, and an API that users may install. */
const external = [/^tsx\//, '@opentelemetry/api']

/**
 * Makes `import.meta.url`, `filename` and `dirname` of our modules refer to the paths in `dist/` that the modules would have without a
 * bundle, regardless of the chunk.
 */
function originalLocations(): Plugin {
  return {
    name: 'original-locations',
    transform: {
      order: 'post',
      handler(code, id) {
        if (!id.startsWith(source) || !code.includes('import.meta')) return null
        const path = JSON.stringify(relative(source, id).replace(/\.ts$/, '.js'))
        return {
          code: code
            .replaceAll('import.meta.url', `__locate(${path}).href`)
            .replaceAll('import.meta.filename', `__pathOf(__locate(${path}))`)
            .replaceAll('import.meta.dirname', `__pathOf(__locate(${path}), '..')`),
        }
      },
    },
    renderChunk(code, { fileName }) {
      if (!code.includes('__locate(')) return null
      const up = '../'.repeat(fileName.split('/').length - 1) || './'
      const locator = [
        `import { fileURLToPath as __toPath } from 'node:url';`,
        `import { join as __join } from 'node:path';`,
        `const __locate = (path) => new URL(${JSON.stringify(up)} + path, import.meta.url);`,
        `const __pathOf = (url, ...more) => __join(__toPath(url), ...more);`,
      ]
      const [, hashbang = '', rest = code] = /^(#!.*\n)?([\s\S]*)$/.exec(code) ?? []
      return { code: `${hashbang}${locator.join('\n')}\n${rest}` }
    },
  }
}

/**
 * Writes characters beyond Latin-1 as escapes. With such a character, V8 stores the source of a chunk with two bytes per character, else
 * with one. In a raw template, and after a backslash, the characters stay, because an escape would have another meaning.
 */
function narrowSources(): Plugin {
  const wide = /(String\.raw\s*`[^`]*`|\\[\s\S])|[^\0-\xff]/g
  const narrow = (asIs: string, kept?: string) => kept ?? `\\u${asIs.charCodeAt(0).toString(16).padStart(4, '0')}`
  return {
    name: 'narrow-sources',
    generateBundle(_options, files) {
      for (const file of Object.values(files)) if (file.type === 'chunk') file.code = file.code.replace(wide, narrow)
    },
  }
}

/** Modules that the bundle replaces, because the built code never uses their contents, which are large. */
const unusedModules: readonly (readonly [id: RegExp, code: string])[] = [
  // The messages of zod in other languages than English.
  [/[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/, 'export {}'],
  // node-fetch uses it only in versions of Node without a URL of their own.
  [/[\\/]whatwg-url[\\/]lib[\\/]public-api\.js$/, 'export default { URL: globalThis.URL }'],
]

function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    load: (id) => unusedModules.find(([pattern]) => pattern.test(id))?.[1] ?? null,
  }
}

/**
 * Makes dynamic imports load the chunk of the module directly. If a chunk contains several modules, rolldown writes a file for each module
 * that is imported dynamically, which only re-exports a part of the chunk. Opening such a file delays a start by 3 ms.
 */
function directImports(): Plugin {
  return {
    name: 'direct-imports',
    generateBundle(_options, files) {
      const chunks = Object.values(files).filter((file) => file.type === 'chunk')
      const parts = chunks.flatMap((chunk) => {
        const [, names, target] = /^export \{ ([^{}]+) \} from "([^"]+)";\s*$/.exec(chunk.code) ?? []
        if (chunk.isEntry || names === undefined || target === undefined) return []
        // `a as b` becomes `b: m.a`, and `a` becomes `a: m.a`.
        const members = names
          .split(', ')
          .map((name) => name.split(' as '))
          .map(([own, given = own]) => `${given}: m.${own}`)
        const whole = posix.join(posix.dirname(chunk.fileName), target)
        return [[chunk.fileName, { target: whole, members: members.join(', ') }] as const]
      })
      const partOf = new Map(parts)
      const mentioned = new Set<string>()
      for (const chunk of chunks) {
        const { code, fileName } = chunk
        const folder = posix.dirname(fileName)
        const led = code.replace(/\bimport\("([^"]+)"\)/g, (asIs, path: string) => {
          const part = partOf.get(posix.join(folder, path))
          return part === undefined
            ? asIs
            : `import("${relativePath(fileName, part.target)}").then((m) => ({ ${part.members} }))`
        })
        if (led !== code) chunk.code = led
        for (const [name] of led.matchAll(/[\w.-]+\.js\b/g)) mentioned.add(name)
      }
      for (const [fileName] of parts) if (!mentioned.has(posix.basename(fileName))) delete files[fileName]
    },
  }
}

/** Returns the relative path by which a file imports another one. Both paths are relative to the target. */
function relativePath(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

export interface BundleOptions {
  /** The folder to write to, with any name. The built code takes the folder above it for the root of the project. */
  readonly target: string
  /** Further entries: the path of each in the target, without its extension, and its source file. */
  readonly more?: Readonly<Record<string, string>>
}

/**
 * Bundles `src/`: one file for each entry, and chunks that several entries share or that are loaded on demand. An entry keeps the
 * path that its module has below `src/`, so that `package.json`, and the code that starts threads and child processes, use the same
 * paths as without a bundle (docs/decisions/0019-one-bundle.md).
 *
 * @returns the ids of the modules that the bundle is made of.
 */
export async function bundle({ target, more = {} }: BundleOptions): Promise<readonly string[]> {
  const inputOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, moduleOf(name)]))
  const input: Readonly<Record<string, string>> = { ...inputOf([command, ...libraries, ...providers]), ...more }
  const chunks = chunksOfStarts({
    starts: Object.fromEntries(Object.entries(starts).map(([start, names]) => [start, names.map(moduleOf)])),
    command: moduleOf(command),
    others: Object.values(input).filter((id) => id !== moduleOf(command)),
  })
  const ids = [...(await buildInto(target, input, chunks)), ...(await buildInto(target, inputOf(threads), []))]
  copyVendored(target)
  return [...new Set(ids)]
}

type Groups = ReturnType<typeof chunksOfStarts>

/** @returns the ids of the modules of all files. */
async function buildInto(target: string, input: Readonly<Record<string, string>>, groups: Groups) {
  const { output } = await build({
    input: { ...input },
    platform: 'node',
    external,
    // Prefer `module`, because the file that `jsonc-parser` names under `main` cannot be bundled.
    resolve: { mainFields: ['module', 'main'] },
    plugins: [
      vendored(),
      withoutUnused(),
      originalLocations(),
      commanderAsModules(),
      directImports(),
      fewerModules(isOfStart),
      narrowSources(),
    ],
    // A module may be imported both statically and dynamically: test/start.test.ts checks which modules each start loads.
    checks: { bundlerTimings: false, ineffectiveDynamicImport: false },
    output: {
      dir: target,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name]-[hash].js',
      codeSplitting: { groups },
      // Not minified further, because a stack trace of minified code prints whole files. THIRD_PARTY_NOTICES has the licences.
      minify: 'dce-only',
      comments: false,
    },
  })
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}
