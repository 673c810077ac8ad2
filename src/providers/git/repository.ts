import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { invalid, type ResourceError } from '../../core/errors.ts'
import { findProgram, isProgram } from '../program.ts'
import { type Anchored, anchor } from './anchors.ts'
import { openFolder } from './folder.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { configFault, type Location, locateRepository, type RepositoryConfig, readConfig } from './locate.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { createObjects, type Objects } from './objects.ts'
import type { Settings } from './options.ts'
import { createRefs, type Refs } from './refs.ts'
import { createTrees, type Trees } from './trees.ts'

/** An open repository, with the objects that read it. */
export interface Repository {
  readonly settings: Settings
  readonly location: Location
  /** The directories of the repository, held open. */
  readonly anchors: Anchored
  readonly config: RepositoryConfig
  readonly mirror: Mirror
  readonly launcher: Launcher
  readonly objects: Objects
  readonly trees: Trees
  readonly refs: Refs
  /** Commits whose parents are missing. */
  readonly shallow: () => ReadonlySet<string>
  close(): Promise<void>
}

/**
 * Finds git and the repository, and creates the folder in which git runs.
 *
 * @throws ResourceError `invalid` when there is no git, or no repository that can be served; `unavailable` when git does not run, or the
 * repository borrows objects from a folder that is not allowed.
 *
 * @param maxAgeMs Maximum age of the cached refs.
 */
export async function openRepository(settings: Settings, maxAgeMs: number): Promise<Repository> {
  const git = await findGit(settings.git)
  const mirror = await createMirror()
  const launcher = createLauncher({
    ...{ git, folder: mirror.folder, gitDir: mirror.gitDir, objects: mirror.objects },
    ...{ timeoutMs: settings.timeoutMs, maxBytes: settings.maxBytes, log: settings.log },
  })
  const close = async () => {
    launcher.close()
    await mirror.remove()
  }
  try {
    const version = await requireVersion(git, launcher)
    const repository = await connect(settings, maxAgeMs, mirror, launcher, version)
    return {
      ...repository,
      close: async () => {
        await close()
        repository.anchors.close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function connect(
  settings: Settings,
  maxAgeMs: number,
  mirror: Mirror,
  launcher: Launcher,
  version: Version,
): Promise<Omit<Repository, 'close'>> {
  await mirror.create(configOf({ format: 'sha1', refStorage: 'files', checkout: [] }, settings), false)
  const location = await locateRepository(settings, async (gitDir) => {
    const folder = await openFolder(gitDir)
    try {
      return (await readConfig(folder, launcher)).workTree
    } finally {
      folder.close()
    }
  })
  const anchors = await anchor(location)
  try {
    const { commonDir } = await anchors.current()
    const config = await readConfig(commonDir, launcher)
    requireReader(config, version)
    await warnOfOwner(location, settings)
    return await read(settings, maxAgeMs, { mirror, launcher, location, anchors, config })
  } catch (error) {
    anchors.close()
    throw error
  }
}

type Connected = Pick<Repository, 'mirror' | 'launcher' | 'location' | 'anchors' | 'config'>

async function read(settings: Settings, maxAgeMs: number, connected: Connected): Promise<Omit<Repository, 'close'>> {
  const { mirror, launcher, location, anchors, config } = connected
  const create = () => mirror.create(configOf(config, settings), location.gitDir !== location.commonDir)
  await create()
  const idBytes = config.format === 'sha1' ? 20 : 32
  const objects = createObjects(launcher, config.format, settings.timeoutMs)
  let shallow: ReadonlySet<string> = new Set()
  const wanted = {
    roots: [...location.roots, ...settings.alternates],
    wants: (name: string) =>
      [...settings.patterns, 'refs/heads'].some((one) => isAbove(one, name) || isAbove(name, one)),
    idLength: idBytes * 2,
  }
  const refresh = async () => {
    const current = await anchors.current()
    if (!mirror.isWhole()) await create()
    const seen = await mirror.update(current, wanted)
    // A long-lived process holds deleted packs open, or searches objects in other directories.
    if (seen.hasOtherPacks) objects.restart()
    // The same set as long as nothing changes.
    if (seen.shallow.length !== shallow.size || seen.shallow.some((id) => !shallow.has(id)))
      shallow = new Set(seen.shallow)
    return { leftOut: seen.leftOut, shallow }
  }
  const refs = createRefs({ ...settings, launcher, refresh, maxAgeMs, idLength: idBytes * 2 })
  // Errors show at the start instead of at the first request.
  await refs.table()
  const trees = createTrees(objects, idBytes, settings.heard)
  return { ...connected, settings, objects, trees, refs, shallow: () => shallow }
}

/** Whether a ref name equals another one or is its parent. */
export function isAbove(name: string, other: string): boolean {
  return other === name || other.startsWith(`${name}/`)
}

/** Minimum size of a file that git does not hold in memory or compare line by line, in bytes. */
const leastLargeBytes = 1024 * 1024

/** Returns the configuration with which git runs: nothing of it comes from the repository but its formats, and how its files were checked out. */
function configOf(
  { format, refStorage, checkout }: Pick<RepositoryConfig, 'format' | 'refStorage' | 'checkout'>,
  { maxBytes }: Settings,
): string {
  const core = [
    'repositoryformatversion = 1',
    'bare = true',
    // Print names as UTF-8 instead of octal escapes; control characters are still escaped.
    'quotePath = false',
    'hooksPath = /dev/null',
    'fsmonitor = false',
    `bigFileThreshold = ${Math.max(maxBytes, leastLargeBytes)}`,
    ...checkout,
  ]
  const extensions = [`objectFormat = ${format}`, ...(refStorage === 'files' ? [] : [`refStorage = ${refStorage}`])]
  const section = (name: string, lines: readonly string[]) =>
    `[${name}]\n${lines.map((line) => `\t${line}\n`).join('')}`
  return section('core', core) + section('extensions', extensions)
}

/** Warns if another user owns the repository. git would refuse it, because it runs commands of the configuration; this provider runs none. */
async function warnOfOwner({ commonDir }: Location, { log }: Settings): Promise<void> {
  const { uid } = await stat(commonDir)
  const own = process.geteuid?.()
  if (own !== undefined && uid !== own)
    log('warn', 'a git repository belongs to another user, who decides what is served', { uid })
}

type Version = readonly [major: number, minor: number]

/** The oldest git with all features used here: `GIT_CONFIG_GLOBAL` (2.32), `--diff-merges`, `--end-of-options`. */
const oldest: Version = [2, 32]

/** The oldest git that reads each format of refs. */
const storages: ReadonlyMap<string, Version> = new Map([
  ['files', oldest],
  ['reftable', [2, 45]],
])

const wanted = `git ${oldest.join('.')} or newer is needed: install it (https://git-scm.com), or name its path in the option "git".`

function isOlder([major, minor]: Version, than: Version): boolean {
  return major < than[0] || (major === than[0] && minor < than[1])
}

/** @throws ResourceError `invalid` (reason `repository`) for a repository that needs a newer git, with the version. */
function requireReader({ refStorage }: RepositoryConfig, version: Version): void {
  const needed = storages.get(refStorage)
  if (needed === undefined)
    throw configFault(`keeps its refs in a format that is not known: ${JSON.stringify(refStorage)}.`)
  if (!isOlder(version, needed)) return
  throw configFault(
    `keeps its refs as ${refStorage}, which git ${needed.join('.')} or newer reads, and this is git ${version.join('.')}. Install a newer one, or name its path in the option "git".`,
  )
}

/**
 * Returns the absolute path of the git to run. A name is searched on the PATH of this process without its relative members, so that no program
 * in the working directory runs.
 *
 * @throws ResourceError `invalid` (reason `git`) when there is none.
 */
async function findGit(name: string): Promise<string> {
  if (isAbsolute(name)) {
    if (await isProgram(name)) return name
    throw fault(`There is no program ${JSON.stringify(name)}.`)
  }
  if (/[\\/]/.test(name))
    throw fault(`The option "git" is neither a name nor an absolute path: ${JSON.stringify(name)}.`)
  const found = await findProgram(name)
  if (found !== undefined) return found
  throw fault(`There is no ${JSON.stringify(name)} on the PATH.`)
}

/** Returns the version of git. @throws ResourceError `invalid` (reason `git`) for one that is too old, or a program that is not git. */
async function requireVersion(path: string, launcher: Launcher): Promise<Version> {
  const { bytes } = await launcher.run({ args: ['--version'], limit: 1000, signal: new AbortController().signal })
  const found = /^git version (\d+)\.(\d+)/.exec(bytes.toString('utf8'))
  if (found === null) throw fault(`${JSON.stringify(path)} is not git: it does not say its version.`)
  const version: Version = [Number(found[1]), Number(found[2])]
  if (!isOlder(version, oldest)) return version
  throw fault(`${JSON.stringify(path)} is git ${version.join('.')}, which is too old.`)
}

function fault(what: string): ResourceError {
  return invalid(`${what} ${wanted}`, 'git')
}
