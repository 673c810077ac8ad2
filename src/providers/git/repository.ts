import { rm, stat, writeFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { invalid, type ResourceError } from '../../core/errors.ts'
import { findProgram, isProgram } from '../program.ts'
import { type Anchored, anchor } from './anchors.ts'
import { type Folder, openFolder, readIn } from './folder.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { type Location, locateRepository, openStores, type RepositoryConfig, readConfig } from './locate.ts'
import { createObjects, type Objects } from './objects.ts'
import type { Settings } from './options.ts'
import { createRefs, type Refs } from './refs.ts'
import { createShadow, type Shadow } from './shadow.ts'
import { createTrees, type Trees } from './trees.ts'

/** An open repository, with the objects that read it. */
export interface Repository {
  readonly settings: Settings
  readonly location: Location
  /** The directories of the repository, held open. */
  readonly anchors: Anchored
  readonly config: RepositoryConfig
  readonly shadow: Shadow
  readonly launcher: Launcher
  readonly objects: Objects
  readonly trees: Trees
  readonly refs: Refs
  /** Makes new objects of the repository available to git, and updates `shallow`. */
  lend(): Promise<void>
  /** Commits whose parents are missing. */
  readonly shallow: () => ReadonlySet<string>
  close(): Promise<void>
}

const maxShallowBytes = 16 * 1024 * 1024

/**
 * Finds git and the repository, and creates the folder in which git runs.
 *
 * @throws ResourceError `invalid` when there is no git, or no repository that can be served; `unavailable` when git does not run, or the
 * repository borrows objects from a folder that is not allowed.
 *
 * @param maxAgeMs Maximum age of the cached refs.
 */
export async function openRepository(settings: Settings, maxAgeMs: number): Promise<Repository> {
  if (process.platform === 'win32')
    throw invalid('Git repositories are not served on Windows yet: run the server in WSL.', 'platform')
  const git = await findGit(settings.git)
  const shadow = await createShadow()
  const { folder, gitDir, lent } = shadow
  const launcher = createLauncher({
    ...{ git, folder, gitDir, objects: lent.directories },
    ...{ timeoutMs: settings.timeoutMs, maxBytes: settings.maxBytes, log: settings.log },
  })
  const close = async () => {
    launcher.close()
    await shadow.remove()
  }
  try {
    await requireVersion(git, launcher)
    const repository = await connect(settings, maxAgeMs, shadow, launcher)
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
  shadow: Shadow,
  launcher: Launcher,
): Promise<Omit<Repository, 'close'>> {
  const largeBytes = settings.maxBytes
  await shadow.create('sha1', largeBytes)
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
    return { ...(await read(settings, maxAgeMs, shadow, launcher, location, anchors)), anchors }
  } catch (error) {
    anchors.close()
    throw error
  }
}

async function read(
  settings: Settings,
  maxAgeMs: number,
  shadow: Shadow,
  launcher: Launcher,
  location: Location,
  anchors: Anchored,
): Promise<Omit<Repository, 'close' | 'anchors'>> {
  const { commonDir } = await anchors.current()
  const config = await readConfig(commonDir, launcher)
  const idBytes = config.format === 'sha1' ? 20 : 32
  await shadow.create(config.format, settings.maxBytes)
  await warnOfOwner(location, settings)

  const objects = createObjects(launcher, config.format, settings.timeoutMs)
  const roots = [...location.roots, ...settings.alternates]
  let shallow: ReadonlySet<string> = new Set()
  let stores = ''
  let lending: Promise<void> = Promise.resolve()

  const takeOver = async (): Promise<void> => {
    const current = await anchors.current()
    if (!(await shadow.isWhole())) {
      await shadow.create(config.format, settings.maxBytes)
      stores = ''
      shallow = new Set()
    }
    const folders = await openStores(current.commonDir, roots)
    try {
      const release = await shadow.lent.sync(folders)
      const found = shadow.lent.directories()
      // Waits only for processes from before the restart: the new ones open no deleted file.
      if (release !== undefined) void launcher.settled().then(release)
      // A long-lived process holds deleted packs open, or searches objects in old directories.
      if (found !== stores || release !== undefined) objects.restart()
      stores = found
    } finally {
      for (const folder of folders) folder.close()
    }
    shallow = await copyShallow(current.commonDir, shadow.gitDir, idBytes * 2, shallow)
  }

  /** Runs one call at a time, because all calls write into one folder. */
  const lend = (): Promise<void> => {
    lending = lending.catch(() => {}).then(takeOver)
    return lending
  }

  const refs = createRefs({
    ...settings,
    ...{ prepare: anchors.current, lend, shallow: () => shallow, maxAgeMs, idLength: idBytes * 2 },
  })
  // Errors show at the start instead of at the first request.
  await refs.table()
  const trees = createTrees(objects, idBytes, settings.heard)
  return { settings, location, config, shadow, launcher, objects, trees, refs, lend, shallow: () => shallow }
}

/**
 * Tells git which commits have no parents here, if the `shallow` file is a list of ids. Returns those ids; the same set as long as nothing
 * changes.
 */
async function copyShallow(
  commonDir: Folder,
  gitDir: string,
  idLength: number,
  known: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const bytes = await readIn(commonDir, 'shallow', maxShallowBytes).catch(() => undefined)
  const ids = (bytes?.toString('latin1') ?? '').split('\n').filter((line) => line.length === idLength)
  const valid = ids.filter((line) => /^[0-9a-f]+$/.test(line))
  if (valid.length === known.size && valid.every((id) => known.has(id))) return known
  const copy = join(gitDir, 'shallow')
  if (valid.length === 0) await rm(copy, { force: true })
  else await writeFile(copy, valid.map((id) => `${id}\n`).join(''))
  return new Set(valid)
}

/** Warns if another user owns the repository. git would refuse it, because it runs commands of the configuration; this provider runs none. */
async function warnOfOwner({ commonDir }: Location, { log }: Settings): Promise<void> {
  const { uid } = await stat(commonDir)
  const own = process.geteuid?.()
  if (own !== undefined && uid !== own)
    log('warn', 'a git repository belongs to another user, who decides what is served', { uid })
}

/** The oldest git with all features used here: `GIT_CONFIG_GLOBAL` (2.32), `--diff-merges`, `--end-of-options`. */
const oldest = [2, 32] as const

const wanted = `git ${oldest.join('.')} or newer is needed: install it (https://git-scm.com), or name its path in the option "git".`

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

/** @throws ResourceError `invalid` (reason `git`) for a git that is too old, or a program that is not git. */
async function requireVersion(path: string, launcher: Launcher): Promise<void> {
  const { bytes } = await launcher.run({ args: ['--version'], limit: 1000, signal: new AbortController().signal })
  const found = /^git version (\d+)\.(\d+)/.exec(bytes.toString('utf8'))
  if (found === null) throw fault(`${JSON.stringify(path)} is not git: it does not say its version.`)
  const [major, minor] = [Number(found[1]), Number(found[2])]
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return
  throw fault(`${JSON.stringify(path)} is git ${major}.${minor}, which is too old.`)
}

function fault(what: string): ResourceError {
  return invalid(`${what} ${wanted}`, 'git')
}
