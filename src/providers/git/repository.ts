import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { invalid, ResourceError } from '../../core/errors.ts'
import { checkVersion, findGit } from './binary.ts'
import { type RepositoryConfig, readConfig } from './config.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { type Location, locateRepository } from './locate.ts'
import { createObjects, type Objects } from './objects.ts'
import type { Settings } from './options.ts'
import { createRefs, type Refs } from './refs.ts'
import { createShadow, type Shadow } from './shadow.ts'
import { lookAt, readSmallFile } from './small-file.ts'
import { findStores } from './stores.ts'
import { createTrees, type Trees } from './trees.ts'

/** A repository that is open: how it is read, and by what. */
export interface Repository {
  readonly settings: Settings
  readonly location: Location
  readonly config: RepositoryConfig
  readonly shadow: Shadow
  readonly launcher: Launcher
  readonly objects: Objects
  readonly trees: Trees
  readonly refs: Refs
  /** Commits whose parents are not there. */
  readonly shallow: () => ReadonlySet<string>
  close(): Promise<void>
}

const maxShallow = 16 * 1024 * 1024

/**
 * Finds git and the repository, and makes the folder in which git runs.
 *
 * @throws ResourceError `invalid` where there is no git, or no repository that can be served; `unavailable` where git does
 * not run, or the repository borrows objects from where it may not.
 *
 * @param maxAgeMs How old what is known of the refs may become.
 */
export async function openRepository(settings: Settings, maxAgeMs: number): Promise<Repository> {
  if (process.platform === 'win32')
    throw invalid('Git repositories are not served on Windows yet: run the server in WSL.', 'platform')
  const git = await findGit(settings.git)
  const shadow = await createShadow()
  const { folder, gitDir, objects } = shadow
  const launcher = createLauncher({ git, folder, gitDir, objects, timeoutMs: settings.timeoutMs, log: settings.log })
  const close = async () => {
    launcher.close()
    await shadow.remove()
  }
  try {
    await requireVersion(git, launcher)
    return { ...(await connect(settings, maxAgeMs, shadow, launcher)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function requireVersion(git: string, launcher: Launcher): Promise<void> {
  const { bytes } = await launcher.run({ args: ['--version'], limit: 1000, signal: new AbortController().signal })
  checkVersion(git, bytes.toString('utf8'))
}

async function connect(
  settings: Settings,
  maxAgeMs: number,
  shadow: Shadow,
  launcher: Launcher,
): Promise<Omit<Repository, 'close'>> {
  const largeBytes = settings.maxBytes
  await shadow.create({ format: 'sha1', largeBytes })
  const location = await locateRepository(
    settings.repository,
    async (gitDir) => (await readConfig(gitDir, launcher)).workTree,
  )
  const config = await readConfig(location.commonDir, launcher)
  const idBytes = config.format === 'sha1' ? 20 : 32
  const own = { format: config.format, largeBytes, commonDir: location.commonDir }
  await shadow.create(own)
  await warnOfOwner(location, settings)

  const objects = createObjects(launcher, config.format, settings.timeoutMs)
  const roots = [...location.roots, ...settings.alternates]
  let stores = ''
  let shallow: ReadonlySet<string> = new Set()

  /** Looks whether the repository is still what it was, and follows it where its objects moved. */
  const prepare = async (): Promise<void> => {
    await requirePlain(location)
    if (!(await shadow.isWhole())) {
      await shadow.create(own)
      stores = ''
      shallow = new Set()
    }
    const found = await findStores(join(location.commonDir, 'objects'), roots)
    if (found.join('\0') !== stores) {
      await shadow.linkObjects(found)
      stores = found.join('\0')
      objects.restart()
    }
    shallow = await copyShallow(location.commonDir, shadow.gitDir, idBytes * 2, shallow)
  }

  const { serves, patterns } = settings
  const refs = createRefs({
    launcher,
    refsDir: shadow.refsDir,
    gitDir: location.gitDir,
    serves,
    patterns,
    prepare,
    shallow: () => shallow,
    maxAgeMs,
    idLength: idBytes * 2,
  })
  // What is wrong shows now, and not at the first request.
  await refs.table()
  const trees = createTrees(objects, idBytes)
  return { settings, location, config, shadow, launcher, objects, trees, refs, shallow: () => shallow }
}

async function requirePlain({ commonDir }: Location): Promise<void> {
  const [objects, refs, packed] = await Promise.all(
    ['objects', 'refs', 'packed-refs'].map((name) => lookAt(join(commonDir, name))),
  )
  if (objects?.isDirectory() !== true || refs?.isDirectory() !== true)
    throw new ResourceError('unavailable', 'The repository is gone: it has no objects or no refs.')
  for (const name of ['heads', 'tags'])
    if ((await lookAt(join(commonDir, 'refs', name)))?.isSymbolicLink() === true) throw linked(`refs/${name}`)
  if (packed !== undefined && !packed.isFile()) throw linked('packed-refs')
}

function linked(name: string): ResourceError {
  return new ResourceError(
    'unavailable',
    `The repository has a symbolic link, or no regular file, in place of its ${name}.`,
  )
}

/**
 * Tells git which commits have no parents here, as far as the file is a list of ids. Returns those ids; the same set while
 * nothing changes.
 */
async function copyShallow(
  commonDir: string,
  gitDir: string,
  idLength: number,
  known: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const bytes = await readSmallFile(join(commonDir, 'shallow'), maxShallow).catch(() => undefined)
  const ids = (bytes?.toString('latin1') ?? '').split('\n').filter((line) => line.length === idLength)
  const valid = ids.filter((line) => /^[0-9a-f]+$/.test(line))
  if (valid.length === known.size && valid.every((id) => known.has(id))) return known
  const copy = join(gitDir, 'shallow')
  if (valid.length === 0) await rm(copy, { force: true })
  else await writeFile(copy, valid.map((id) => `${id}\n`).join(''))
  return new Set(valid)
}

/** git itself would refuse: it would run what the owner's configuration says. Here nothing of it runs. */
async function warnOfOwner({ commonDir }: Location, { log }: Settings): Promise<void> {
  const { uid } = await stat(commonDir)
  const own = process.geteuid?.()
  if (own !== undefined && uid !== own)
    log('warn', 'a git repository belongs to another user: what that user writes into it is what is served', { uid })
}
