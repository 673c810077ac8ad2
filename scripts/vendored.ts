import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import type { Plugin } from 'rolldown'
import { tokenFileOf } from './token-file.ts'

/**
 * Parts of packages that cannot be bundled, and so are copied to `dist/vendor/`: the builds of SQLite (one file for each platform),
 * PDFium (WebAssembly), the tables of a detector of encodings, and the tokens of encodings, which would stay in memory as modules. An installation then has one package,
 * compiles nothing and runs no script (docs/decisions/0019-one-bundle.md).
 */
const sqlite = folderOf('@photostructure/sqlite')
const pdfium = folderOf('@embedpdf/pdfium')
const jschardet = folderOf('jschardet')

/** A build of SQLite: `linux-x64/@photostructure+sqlite.musl.node` names the platform, the architecture and the C library. */
const prebuilt = /^(darwin|linux|win32)-(arm64|x64)[\\/].*\.(glibc|musl)\.node$/

/** Expressions in our sources for files of packages, which the bundle replaces by paths in `vendor/`. */
const filesOfPackages = [
  {
    module: /[\\/]src[\\/]readings[\\/]pdf\.ts$/,
    source: "await readFile(createRequire(import.meta.url).resolve('@embedpdf/pdfium/pdfium.wasm'))",
    built: "(await import('node:zlib')).gunzipSync(await readFile(__pathOf(__locate('vendor/pdfium.wasm.gz'))))",
  },
  {
    module: /[\\/]src[\\/]text[\\/]encoding[\\/]single-byte\.ts$/,
    source: "createRequire(import.meta.url)('jschardet')",
    built: "createRequire(import.meta.url)(__pathOf(__locate('vendor/jschardet.cjs')))",
  },
]

/** Files of packages that are copied as they are, so that the licences of the packages belong to the notices. */
export const copiedModules: readonly string[] = [join(jschardet, 'build/index.cjs')]

/** Modules with the tokens of encodings. The bundle replaces each by code that reads the token file in `vendor/`. */
const tokenModule = /[\\/]gpt-tokenizer[\\/].*[\\/]bpeRanks[\\/](\w+)\.js$/
const builtTokens = (encoding: string): string => `
  import { readFile } from 'node:fs/promises'
  import { gunzipSync } from 'node:zlib'
  export default gunzipSync(await readFile(__pathOf(__locate('vendor/${encoding}.tokens.gz'))))
`

/** Makes the bundled code load these parts from `dist/vendor/`. `__pathOf` and `__locate` are those of scripts/bundle.ts. */
export function vendored(): Plugin {
  const loader = JSON.stringify(join(import.meta.dirname, '../src/store/sqlite/prebuilt.ts'))
  return {
    name: 'vendored',
    // The SQLite package loads its native part with the package `node-gyp-build`, which our loader replaces.
    resolveId: (id) => (id === 'node-gyp-build' ? '\0node-gyp-build' : null),
    load: (id) => {
      const encoding = tokenModule.exec(id)?.[1]
      if (encoding !== undefined) return builtTokens(encoding)
      return id === '\0node-gyp-build' ? `export { loadPrebuilt as default } from ${loader}` : null
    },
    transform(code, id) {
      const file = filesOfPackages.find(({ module }) => module.test(id))
      if (file === undefined) return null
      if (!code.includes(file.source))
        throw new Error(`${id} names a file of a package in another way than scripts/vendored.ts expects.`)
      return { code: code.replace(file.source, file.built) }
    },
  }
}

/** Copies the files to `vendor/` of a folder. @throws Error if a supported platform has no build of SQLite. */
export function copyVendored(folder: string): void {
  const target = join(folder, 'vendor')
  mkdirSync(target)
  const builds = readdirSync(join(sqlite, 'prebuilds'), { recursive: true, encoding: 'utf8' }).flatMap((file) => {
    const [, platform, arch, libc] = prebuilt.exec(file) ?? []
    return platform === undefined
      ? []
      : [{ file, name: `sqlite-${platform}-${arch}${libc === 'musl' ? '-musl' : ''}.node` }]
  })
  const missing = supported.filter((name) => !builds.some((build) => build.name === `sqlite-${name}.node`))
  if (missing.length > 0) throw new Error(`@photostructure/sqlite has no build for ${missing.join(', ')}.`)
  for (const { file, name } of builds) copyFileSync(join(sqlite, 'prebuilds', file), join(target, name))
  // Compressed, because most processes need neither of them.
  const compressed = (name: string, bytes: Uint8Array) =>
    writeFileSync(join(target, `${name}.gz`), gzipSync(bytes, { level: 9 }))
  compressed('pdfium.wasm', readFileSync(join(pdfium, 'dist/pdfium.wasm')))
  copyFileSync(join(jschardet, 'build/index.cjs'), join(target, 'jschardet.cjs'))
  for (const [name, tokens] of Object.entries({ o200k_base: o200k, cl100k_base: cl100k }))
    compressed(`${name}.tokens`, tokenFileOf(tokens))
}

const supported = ['darwin', 'linux', 'win32'].flatMap((platform) =>
  ['arm64', 'x64'].flatMap((arch) => [
    `${platform}-${arch}`,
    ...(platform === 'linux' ? [`${platform}-${arch}-musl`] : []),
  ]),
)

function folderOf(name: string): string {
  return dirname(dirname(createRequire(import.meta.url).resolve(name)))
}
