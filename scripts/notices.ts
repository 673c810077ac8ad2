import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A package whose code is in the bundle. */
interface Bundled {
  readonly name: string
  readonly version: string
  readonly license: string
  /** The texts of its licence and notice files. */
  readonly texts: readonly string[]
  /** Third-party works that its compiled files contain. */
  readonly contains: readonly Contained[]
}

/** A third-party work that a package contains in compiled form. */
interface Contained {
  readonly name: string
  readonly version?: string
  /** SPDX identifier of the licence. */
  readonly license: string
  /** A sentence that says where its licence can be read. */
  readonly notice: string
}

/**
 * Writes the notices that the licences of bundled packages require (`THIRD_PARTY_NOTICES`), and a bill of materials
 * (`sbom.cdx.json`, CycloneDX 1.6).
 *
 * @param modules The files that are in the bundle.
 * @throws Error for a bundled package without a licence, or with one that is not in the lists below.
 */
export function writeNotices(modules: readonly string[], folder: string): void {
  const roots = new Set(modules.flatMap((file) => rootOf(file) ?? []))
  const found = [...roots].map(readBundled)
  const unique = new Map(found.map((one) => [`${one.name}@${one.version}`, one]))
  const bundled = [...unique].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
  writeFileSync(join(folder, 'THIRD_PARTY_NOTICES'), formatNotices(bundled))
  writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(billOfMaterials(bundled), undefined, 2)}\n`)
}

/** Returns the folder of the package of a file. `undefined`: the file is our own, or the bundler's. */
function rootOf(file: string): string | undefined {
  const match = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(file)
  return match?.[1]
}

/** Licences that allow redistribution in a bundle, together with the text of the licence. */
const permissive = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
])

/** Third-party works in the compiled files in `dist/vendor/`, by package, according to its README and sources. */
const contained: Readonly<Record<string, (root: string) => readonly Contained[]>> = {
  '@photostructure/sqlite': (root) => [
    {
      name: 'sqlite',
      version: versionOf(join(root, 'src/upstream/sqlite3.h'), /define SQLITE_VERSION\s+"([\d.]+)"/),
      license: 'blessing',
      notice: 'SQLite is in the public domain: https://www.sqlite.org/copyright.html',
    },
    {
      name: 'node',
      license: 'MIT',
      notice:
        'Contains code of node:sqlite. Copyright Node.js contributors. All rights reserved. It is under the MIT license, whose text stands above: https://github.com/nodejs/node/blob/main/LICENSE',
    },
  ],
  '@embedpdf/pdfium': () => [
    {
      name: 'pdfium',
      license: 'BSD-3-Clause',
      notice: 'Its licences, and those of the libraries in it, stand above (LICENSE.pdfium).',
    },
  ],
}

function versionOf(file: string, pattern: RegExp): string {
  const version = pattern.exec(readFileSync(file, 'utf8'))?.[1]
  if (version === undefined) throw new Error(`${file} names no version.`)
  return version
}

/** SPDX identifiers of packages whose package.json has none, taken from their licence files. */
const named: Readonly<Record<string, string>> = { 'url-template': 'BSD-3-Clause' }

function readBundled(root: string): Bundled {
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>
  const { name, version } = about
  const license = named[String(name)] ?? about.license
  if (typeof name !== 'string' || typeof version !== 'string') throw new Error(`${root} has no name or version.`)
  const licenses = String(license).replace(/[()]/g, '').split(/ OR /)
  if (typeof license !== 'string' || !licenses.some((one) => permissive.has(one)))
    throw new Error(`${name} has the licence ${String(license)}, which nobody has looked at. See scripts/notices.ts.`)
  const files = readdirSync(root).filter((file) => /^(?:licen[cs]e|notice|copying)\b/i.test(file))
  const texts = files.sort().map((file) => readFileSync(join(root, file), 'utf8').trim())
  return { name, version, license, texts, contains: contained[name]?.(root) ?? [] }
}

/** Formats the notices. Packages with the same texts are listed together. */
function formatNotices(bundled: readonly Bundled[]): string {
  const sharing = new Map<string, Bundled[]>()
  for (const one of bundled) {
    const texts = [...one.texts, ...one.contains.map(({ notice }) => notice)].join('\n\n')
    sharing.set(texts, [...(sharing.get(texts) ?? []), one])
  }
  const parts = [...sharing].map(([texts, packages]) => {
    const names = packages.map(({ name, version, license }) => `${name} ${version} (${license})`).join('\n')
    return texts === '' ? names : `${names}\n\n${texts}`
  })
  const head = 'The files in this folder contain code of the packages below, each under its own licence.'
  return `${[head, ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function billOfMaterials(bundled: readonly Bundled[]): unknown {
  const own = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as Record<string, string>
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: own.name, version: own.version } },
    components: bundled.map(({ name, version, license, contains }) => ({
      ...componentOf(name, version, license),
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ...(contains.length === 0
        ? {}
        : { components: contains.map((one) => componentOf(one.name, one.version, one.license)) }),
    })),
  }
}

function componentOf(name: string, version: string | undefined, license: string) {
  const licenses = [/ /.test(license) ? { expression: license } : { license: { id: license } }]
  return { type: 'library', name, ...(version === undefined ? {} : { version }), licenses }
}
