import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'
import type { JsonObject } from '../../hosts/values.ts'
import { localePath, localized } from './manifest.ts'
import { filesOf, type PlacedPackage, placePackages } from './packages.ts'

/** The written bundle. */
export interface Bundle {
  readonly file: string
  readonly bytes: number
  readonly files: number
  readonly packages: number
  /** Of the file, as a registry asks for it. */
  readonly sha256: string
}

/** All files say the same time, so that the same installation makes the same bundle. */
const mtime = new Date('2000-01-01T00:00:00Z')
const mode = 0o100644

/** Of this package, what runs. */
const ownParts = ['package.json', 'LICENSE', 'dist']

/** A build of SQLite for one platform; see scripts/vendored.ts. */
const nativeBuild = /^dist\/vendor\/sqlite-([a-z\d]+)-.*\.node$/

/**
 * Writes a bundle for hosts that install MCP servers from a file (.mcpb): a package with all that it needs, and a manifest. The
 * file is there whole or not at all.
 *
 * @param root The folder of the package.
 * @param platforms Builds of SQLite for other operating systems stay out, those for other processors do not: the manifest names no
 *   processor, so the bundle runs on each.
 * @param told Is called for each file that is put into it.
 */
export async function writeBundle(
  root: string,
  manifest: JsonObject,
  platforms: readonly string[],
  file: string,
  told: (done: number, total: number) => void = () => {},
): Promise<Bundle> {
  const packages = await placePackages(root)
  const zip = new ZipFile()
  // A file that cannot be read is told of here alone, and the stream would never end.
  const unreadable = new AbortController()
  zip.on('error', (error: unknown) => unreadable.abort(error))
  const addText = (path: string, value: JsonObject) =>
    zip.addBuffer(Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`), path, { mtime, mode })
  addText('manifest.json', manifest)
  for (const [locale, texts] of Object.entries(localized)) addText(localePath(locale), texts)
  const files = await filesIn(packages, platforms)
  for (const [i, [from, to]] of files.entries())
    zip.addReadStreamLazy(to, { mtime, mode }, (ready) => {
      told(i, files.length)
      ready(null, createReadStream(from))
    })
  zip.end()
  const fresh = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await pipeline(zip.outputStream, createWriteStream(fresh, { flags: 'wx' }), { signal: unreadable.signal })
    const { size: bytes } = await stat(fresh)
    const sha256 = await digestOf(fresh)
    await rename(fresh, file)
    return { file, bytes, files: files.length, packages: packages.length, sha256 }
  } catch (error) {
    await unlink(fresh).catch(() => {})
    throw unreadable.signal.aborted ? unreadable.signal.reason : error
  }
}

/** Each file of the packages, and where it goes. */
async function filesIn(
  packages: readonly PlacedPackage[],
  platforms: readonly string[],
): Promise<readonly (readonly [string, string])[]> {
  const files: (readonly [string, string])[] = []
  for (const [i, placed] of packages.entries())
    for (const file of await filesOf(placed, i === 0 ? ownParts : undefined)) {
      const platform = i === 0 ? nativeBuild.exec(file)?.[1] : undefined
      if (platform !== undefined && !platforms.includes(platform)) continue
      files.push([join(placed.folder, file), `${placed.at}/${file}`])
    }
  return files
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
