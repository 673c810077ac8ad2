import { type ResourceError, unavailable } from '../../core/errors.ts'
import { isObject, objectOf } from '../../core/kit/object.ts'

export interface LockedPackage {
  /** The directory that its files are served in: `zod@4.6.7/`, `@types/node@20.1.0/`. */
  readonly path: string
  readonly name: string
  readonly version: string
  /** Folders below that of the lock file in which the package may be installed, the likeliest first. */
  readonly folders: readonly string[]
}

/** The package managers, by their lock files. The first existing file is used. */
export const lockFiles = { 'package-lock.json': 'npm', 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn' } as const
type PackageManager = (typeof lockFiles)[keyof typeof lockFiles]

const maxPackages = 50_000
const maxFolders = 8
const linesPerRest = 2000

/** Pattern of package names that are safe in a path: no `..`, no slash except after a scope, no `__proto__`. */
const namePattern = '(?:@[A-Za-z0-9~-][\\w.~-]*/)?[A-Za-z0-9~-][\\w.~-]*'
const name = new RegExp(`^${namePattern}$`)
const version = /^\d[\w.+-]*$/
const maxNameLength = 214
const maxVersionLength = 128

/**
 * Parses the packages of a lock file: by their paths, in path order. Workspaces, folders, and invalid names and versions are left out.
 *
 * @throws ResourceError `unavailable` for a malformed file, and for one of more than 50,000 packages.
 *
 * Sources: https://docs.npmjs.com/cli/v11/configuring-npm/package-lock-json,
 * https://github.com/pnpm/spec/blob/master/lockfile/9.0.md, https://classic.yarnpkg.com/lang/en/docs/yarn-lock/
 */
export async function parseLockFile(
  manager: PackageManager,
  text: string,
  rest: () => Promise<void>,
): Promise<ReadonlyMap<string, LockedPackage>> {
  const packages = new Map<string, LockedPackage & { readonly folders: string[] }>()
  const add = (packageName: string, packageVersion: string, folders: readonly string[]) => {
    if (!isName(packageName) || packageVersion.length > maxVersionLength || !version.test(packageVersion)) return
    const path = `${packageName}@${packageVersion}/`
    const one = packages.get(path) ?? { path, name: packageName, version: packageVersion, folders: [] }
    one.folders.push(...folders.slice(0, maxFolders - one.folders.length))
    if (packages.set(path, one).size > maxPackages) throw faulty(`names more than ${maxPackages} packages`)
  }
  if (manager === 'npm') await addNpm(text, add, rest)
  else await (manager === 'pnpm' ? addPnpm : addYarn)(lockFileLines(text, rest), add)
  // Names are ASCII, so the order of UTF-16 code units is path order.
  return new Map([...packages].sort(([a], [b]) => (a < b ? -1 : 1)))
}

type Add = (name: string, version: string, folders: readonly string[]) => void

function isName(text: string): boolean {
  return text.length <= maxNameLength && name.test(text) && !text.split('/').includes('node_modules')
}

async function addNpm(text: string, add: Add, rest: () => Promise<void>): Promise<void> {
  let packages: unknown
  try {
    packages = objectOf(JSON.parse(text)).packages
  } catch {
    throw faulty('is not JSON')
  }
  if (!isObject(packages)) throw faulty('has no object "packages"; npm 7 or later writes one')
  const folder = new RegExp(`^(?:node_modules/${namePattern}/)*node_modules/(${namePattern})$`)
  for (const [index, [key, value]] of Object.entries(packages).entries()) {
    const packageName = key.length <= 4096 ? folder.exec(key)?.[1] : undefined
    const { version, link } = objectOf(value)
    if (packageName !== undefined && typeof version === 'string' && link !== true) add(packageName, version, [key])
    if (index % linesPerRest === 0) await rest()
  }
}

/** Adds the packages of keys: `zod@4.6.7:`, `'@types/node@20.1.0(p@1)':`, before version 9 `/zod@4.6.7:`, `/zod/4.6.7_p@1:`. */
async function addPnpm(lines: AsyncIterable<string>, add: Add): Promise<void> {
  const entry = new RegExp(`^ {2}'?/?(${namePattern})[@/]([^\\s():'/_]+)[^\\s]*:`)
  let inPackages = false
  for await (const line of lines) {
    if (/^\S/.test(line)) inPackages = line.startsWith('packages:')
    const [, packageName, packageVersion] = inPackages ? (entry.exec(line) ?? []) : []
    if (packageName === undefined || packageVersion === undefined) continue
    const folder = `${packageName.replace('/', '+')}@${packageVersion}`
    add(packageName, packageVersion, [`node_modules/.pnpm/${folder}/node_modules/${packageName}`])
  }
}

/** Adds the packages of blocks such as `zod@^4.0.0, zod@~4.6.0:`. A package is at the top, or below one that needs it. */
async function addYarn(lines: AsyncIterable<string>, add: Add): Promise<void> {
  const header = new RegExp(`^"?(${namePattern})@.*:$`)
  const needLine = new RegExp(`^ {4}"?(${namePattern})"?:? `)
  const versions: (readonly [name: string, version: string])[] = []
  const needs = new Map<string, string[]>()
  let [current, section] = ['', '']
  for await (const line of lines) {
    if (/^[^\s#]/.test(line)) current = header.exec(line)?.[1] ?? ''
    section = /^ {0,2}(\w*)/.exec(line.startsWith('    ') ? `  ${section}` : line)?.[1] ?? ''
    const version = /^ {2}version:? "?([^\s"]+)"?$/.exec(line)?.[1]
    if (current !== '' && version !== undefined && versions.push([current, version]) > maxPackages)
      throw faulty(`names more than ${maxPackages} packages`)
    const dependency = /^(?:optionalD|d)ependencies$/.test(section) ? needLine.exec(line)?.[1] : undefined
    if (dependency === undefined || current === '') continue
    const above = needs.get(dependency) ?? []
    if (above.length < maxFolders - 1) needs.set(dependency, [...above, current])
  }
  for (const [one, itsVersion] of versions) {
    const above = (needs.get(one) ?? []).map((by) => `node_modules/${by}/node_modules/${one}`)
    add(one, itsVersion, [`node_modules/${one}`, ...above])
  }
}

async function* lockFileLines(text: string, rest: () => Promise<void>): AsyncGenerator<string> {
  for (let at = 0, count = 1; at < text.length; count++) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    if (end - at <= 4096) yield text.slice(at, end).trimEnd()
    at = end + 1
    if (count % linesPerRest === 0) await rest()
  }
}

function faulty(what: string): ResourceError {
  return unavailable(`The lock file ${what}.`)
}
