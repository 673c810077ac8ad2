import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, realpathSync } from 'node:fs'
import { readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'
import type { JsonObject } from '../../../core/tool.ts'
import { commandFailure } from '../../terminal/exit.ts'
import { bundledConfigPath, iconPath, localePath, localizedTexts } from './manifest.ts'

/** A fixed time, so that the same installation makes the same bundle. */
const mtime = new Date('2000-01-01T00:00:00Z')
const mode = 0o100644

const ownParts = ['package.json', 'LICENSE', 'dist']

/** Path of a build of SQLite (scripts/vendored.ts). The group is its platform. */
const nativeBuild = /^dist\/vendor\/sqlite-([a-z\d]+)-.*\.node$/

/**
 * Writes a bundle for hosts that install MCP servers from a file (.mcpb). The file is replaced atomically.
 * @param root The folder of the package.
 * @param platforms The operating systems of the bundle, with builds of SQLite for any processor.
 * @returns The path, size and SHA-256 of the bundle, and the number of its files and packages.
 */
export async function writeBundle(
  root: string,
  manifest: JsonObject,
  platforms: readonly string[],
  file: string,
  { curated, onFile = () => {} }: BundleContents = {},
) {
  const packages = await placePackages(root)
  const zip = new ZipFile()
  // The event `error` reports a file that cannot be read. Without the abort, the stream would not end.
  const unreadable = new AbortController()
  zip.on('error', (error: unknown) => unreadable.abort(error))
  const addText = (path: string, value: JsonObject) =>
    zip.addBuffer(Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`), path, { mtime, mode })
  addText('manifest.json', manifest)
  if (curated === undefined)
    for (const [locale, texts] of Object.entries(localizedTexts)) addText(localePath(locale), texts)
  else zip.addBuffer(Buffer.from(curated), bundledConfigPath, { mtime, mode })
  zip.addFile(join(root, 'dist', iconPath), iconPath, { mtime, mode })
  const files = await listBundleFiles(packages, platforms)
  for (const [i, [from, to]] of files.entries())
    zip.addReadStreamLazy(to, { mtime, mode }, (ready) => {
      onFile(i, files.length)
      ready(null, createReadStream(from))
    })
  zip.end()
  const fresh = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await pipeline(zip.outputStream, createWriteStream(fresh, { flags: 'wx' }), { signal: unreadable.signal })
    const { size: bytes } = await stat(fresh)
    const sha256 = await hashFile(fresh)
    await rename(fresh, file)
    return { file, bytes, files: files.length, packages: packages.length, sha256 }
  } catch (error) {
    await unlink(fresh).catch(() => {})
    throw unreadable.signal.aborted ? unreadable.signal.reason : error
  }
}

interface BundleContents {
  readonly curated?: string
  readonly onFile?: (done: number, total: number) => void
}

async function listBundleFiles(
  packages: readonly PlacedPackage[],
  platforms: readonly string[],
): Promise<readonly (readonly [string, string])[]> {
  const files: (readonly [string, string])[] = []
  for (const [i, placed] of packages.entries())
    for (const file of await runtimeFilesOf(placed, i === 0 ? ownParts : undefined)) {
      const platform = i === 0 ? nativeBuild.exec(file)?.[1] : undefined
      if (platform !== undefined && !platforms.includes(platform)) continue
      files.push([join(placed.folder, file), `${placed.at}/${file}`])
    }
  return files
}

async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

interface PlacedPackage {
  readonly name: string
  readonly folder: string
  /** The path in the bundle: `node_modules/a`, or `node_modules/b/node_modules/a` beside another version. */
  readonly at: string
}

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/**
 * Returns a package and its dependencies at run time, placed as npm places them: flat, and a second version below its
 * dependent. Packages are found as Node finds them, so the layout of the installation does not matter.
 * @throws CommandError for a dependency that is not installed and not optional
 */
export async function placePackages(root: string): Promise<readonly PlacedPackage[]> {
  const { name } = await manifestOf(root)
  const first = { name, folder: realpathSync(root), at: `node_modules/${name}` }
  const placed = new Map([[first.at, first]])
  // Breadth first: the dependencies of a package are placed before their own dependencies, which cannot hide them.
  for (const holder of placed.values()) {
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = await manifestOf(holder.folder)
    for (const needed of Object.keys({ ...peerDependencies, ...optionalDependencies, ...dependencies }).sort()) {
      // Packages of types are not needed at run time.
      if (needed.startsWith('@types/')) continue
      const folder = findPackage(needed, holder.folder)
      if (folder === undefined) {
        if (needed in dependencies && !(needed in optionalDependencies))
          throw commandFailure(`${holder.name} needs ${needed}, which is not installed. Install hikidashi again.`)
        continue
      }
      const visiblePackage = visibleFrom(holder.at, needed, placed)
      if (visiblePackage?.folder === folder) continue
      const at = `${visiblePackage === undefined ? '' : `${holder.at}/`}node_modules/${needed}`
      placed.set(at, { name: needed, folder, at })
    }
  }
  return [...placed.values()]
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
}

function findPackage(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const packagePath = join(folder, 'node_modules', name)
    if (existsSync(join(packagePath, 'package.json'))) return realpathSync(packagePath)
    if (dirname(folder) === folder) return undefined
  }
}

function visibleFrom(at: string, name: string, placed: ReadonlyMap<string, PlacedPackage>): PlacedPackage | undefined {
  for (let holder = at; ; holder = holder.slice(0, Math.max(0, holder.lastIndexOf('/node_modules/')))) {
    const placedPackage = placed.get(holder === '' ? `node_modules/${name}` : `${holder}/node_modules/${name}`)
    if (placedPackage !== undefined || holder === '') return placedPackage
  }
}

/** Types, source maps, sources of compiled code and documentation are not needed at run time. Licences stay. */
const idle = /\.(?:map|[cm]?ts|tsx|md|markdown|c|cc|cpp|h|hpp|gyp|gypi|tsbuildinfo)$/i
const licence = /^(?:licen[cs]e|notice|copying|third[-_]?party)/i

/** Returns the files that are needed at run time, sorted, without the packages in `node_modules`. */
export async function runtimeFilesOf(
  { folder }: PlacedPackage,
  only: readonly string[] = [''],
): Promise<readonly string[]> {
  const files: string[] = []
  const look = async (path: string) => {
    for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
      const name = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isDirectory() && entry.name !== 'node_modules' && entry.name !== '.git') await look(name)
      if (entry.isFile() && (licence.test(entry.name) || !idle.test(entry.name))) files.push(name)
    }
  }
  await look('')
  return files.filter((file) => only.some((part) => part === '' || file === part || file.startsWith(`${part}/`))).sort()
}
