import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { codeOf } from '../files/pool.ts'
import type { ObjectFormat } from './objects.ts'
import { lookAt } from './small-file.ts'

/**
 * The folder in which git runs, and that it takes for its repository. Nothing in it comes from the repository that is
 * served, but for what is linked to: its objects and its refs. So git never sees a configuration, hook, attribute, graft,
 * alternate or index that is not ours.
 */
export interface Shadow {
  readonly folder: string
  /** An empty bare repository, whose objects are lent by {@link Shadow.objects}. */
  readonly gitDir: string
  /** A second one, whose refs are those of a git directory. */
  readonly refsDir: string
  /** Makes the bare repositories. Refs are linked where a git directory is named. */
  create(options: ShadowOptions): Promise<void>
  /** Whether everything is still there: what is in a folder for temporary files can be cleared away. */
  isWhole(): Promise<boolean>
  /** Lends the objects of these object directories from now on. */
  linkObjects(stores: readonly string[]): Promise<void>
  /** What is lent, as `GIT_ALTERNATE_OBJECT_DIRECTORIES` has it. */
  objects(): string
  remove(): Promise<void>
}

export interface ShadowOptions {
  readonly format: ObjectFormat
  /** Files of more bytes are not held in memory by git, nor compared line by line. */
  readonly largeBytes: number
  readonly commonDir?: string
}

/** The directories that loose objects are in: `00` to `ff`. */
const fans = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

const leastLarge = 1024 * 1024

/** Folders that are removed when this process exits, though nobody closed what they are for. */
const leftovers = new Set<string>()
let watchesExit = false

function watchExit(): void {
  if (watchesExit) return
  watchesExit = true
  process.on('exit', () => {
    for (const folder of leftovers) rmSync(folder, { recursive: true, force: true })
  })
}

/** Makes an empty folder below the one for temporary files, for this user alone. */
export async function createShadow(): Promise<Shadow> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-git-'))
  const gitDir = join(folder, 'shadow.git')
  const refsDir = join(folder, 'refs.git')
  leftovers.add(folder)
  watchExit()
  let lent: readonly string[] = []
  let generation = 0
  let removed = false

  return {
    folder,
    gitDir,
    refsDir,
    create: async ({ format, largeBytes, commonDir }) => {
      // What still runs after the end makes no folder that nobody removes.
      if (removed) throw new ResourceError('unavailable', 'The git provider is closed.')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const config = configOf(format, [`bigFileThreshold = ${Math.max(largeBytes, leastLarge)}`])
      for (const directory of [gitDir, refsDir]) {
        await rm(directory, { recursive: true, force: true })
        await createBare(directory, config)
      }
      if (commonDir === undefined) return
      await rm(join(refsDir, 'refs'), { recursive: true })
      for (const name of ['refs', 'packed-refs']) await symlink(join(commonDir, name), join(refsDir, name))
    },
    isWhole: async () => {
      const files = [gitDir, refsDir].flatMap((path) =>
        ['HEAD', 'config', 'objects', 'refs'].map((name) => join(path, name)),
      )
      const found = await Promise.all([...files, ...lent.map((path) => join(path, 'pack'))].map(lookAt))
      return found.every((stats) => stats !== undefined)
    },
    linkObjects: async (stores) => {
      // What runs may still look at those of the last time.
      for (const [index] of stores.entries())
        await rm(join(folder, `objects-${generation - 1}-${index}`), { recursive: true, force: true })
      generation++
      const made: string[] = []
      for (const [index, store] of stores.entries()) {
        const place = join(folder, `objects-${generation}-${index}`)
        await lend(store, place)
        made.push(place)
      }
      lent = made
    },
    objects: () => lent.map((path) => (path.includes(delimiter) ? JSON.stringify(path) : path)).join(delimiter),
    remove: async () => {
      removed = true
      leftovers.delete(folder)
      // What still runs may put something into it meanwhile.
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
    },
  }
}

/** The configuration of a bare repository of our own. `more`: lines of its section `core`. */
export function configOf(format: ObjectFormat, more: readonly string[] = []): string {
  const core = [
    'repositoryformatversion = 1',
    'bare = true',
    // Names are given as they are, and not as octal escapes; control characters are escaped all the same.
    'quotePath = false',
    'hooksPath = /dev/null',
    'fsmonitor = false',
    ...more,
  ]
  return `[core]\n${core.map((line) => `\t${line}\n`).join('')}[extensions]\n\tobjectFormat = ${format}\n`
}

/** Makes a directory, if it is not there; never those above it, which may have been removed for good. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

/** Makes an empty bare repository whose `HEAD` is on a branch that is not there. */
export async function createBare(directory: string, config: string): Promise<void> {
  for (const path of [directory, ...['objects', 'refs', 'info'].map((name) => join(directory, name))])
    await makeDirectory(path)
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/none\n')
  await writeFile(join(directory, 'config'), config)
}

/**
 * Makes an object directory that holds links to the objects of another. Its `info/alternates` is not among them: which
 * repositories it borrows from is decided by us, and stays so whatever is written there later.
 */
async function lend(store: string, place: string): Promise<void> {
  for (const path of [place, join(place, 'info')]) await makeDirectory(path)
  const names = [...fans, 'pack', 'info/commit-graph', 'info/commit-graphs']
  await Promise.all(names.map((name) => symlink(join(store, name), join(place, name))))
}
