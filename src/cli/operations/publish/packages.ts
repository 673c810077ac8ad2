import { existsSync, realpathSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failed } from '../../terminal/exit.ts'

/** A package, and where it is to be put so that what needs it finds it. */
export interface PlacedPackage {
  readonly name: string
  /** Its folder on this machine. */
  readonly folder: string
  /** Its path in the bundle: `node_modules/a`, or `node_modules/b/node_modules/a` beside another version. */
  readonly at: string
}

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/**
 * A package and all that it needs at run time, placed as npm would: flat, and a second version where it is needed. It looks for
 * packages as Node does, so any layout of an installation will do.
 *
 * @throws CommandError for an installation from which something is missing.
 */
export async function placePackages(root: string): Promise<readonly PlacedPackage[]> {
  const { name } = await manifestOf(root)
  const first = { name, folder: realpathSync(root), at: `node_modules/${name}` }
  const placed = new Map([[first.at, first]])
  // Breadth first: the dependencies of a package are placed before theirs, so nothing placed later hides them.
  for (const holder of placed.values()) {
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = await manifestOf(holder.folder)
    for (const needed of Object.keys({ ...peerDependencies, ...optionalDependencies, ...dependencies }).sort()) {
      // Types run nowhere.
      if (needed.startsWith('@types/')) continue
      const folder = findPackage(needed, holder.folder)
      if (folder === undefined) {
        if (needed in dependencies && !(needed in optionalDependencies))
          throw failed(`${holder.name} needs ${needed}, which is not installed. Install hikidashi again.`)
        continue
      }
      const seen = visibleFrom(holder.at, needed, placed)
      if (seen?.folder === folder) continue
      const at = `${seen === undefined ? '' : `${holder.at}/`}node_modules/${needed}`
      placed.set(at, { name: needed, folder, at })
    }
  }
  return [...placed.values()]
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
}

/** Returns the folder where Node finds a package. */
function findPackage(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(join(found, 'package.json'))) return realpathSync(found)
    if (dirname(folder) === folder) return undefined
  }
}

function visibleFrom(at: string, name: string, placed: ReadonlyMap<string, PlacedPackage>): PlacedPackage | undefined {
  for (let holder = at; ; holder = holder.slice(0, Math.max(0, holder.lastIndexOf('/node_modules/')))) {
    const found = placed.get(holder === '' ? `node_modules/${name}` : `${holder}/node_modules/${name}`)
    if (found !== undefined || holder === '') return found
  }
}

/** Files that are not needed at run time: types, maps, sources of compiled code, documentation. Licences stay. */
const idle = /\.(?:map|[cm]?ts|tsx|md|markdown|c|cc|cpp|h|hpp|gyp|gypi|tsbuildinfo)$/i
const licence = /^(?:licen[cs]e|notice|copying|third[-_]?party)/i

/** The files of a package that are needed at run time, sorted. Packages inside it are not its own. */
export async function filesOf({ folder }: PlacedPackage, only: readonly string[] = ['']): Promise<readonly string[]> {
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
