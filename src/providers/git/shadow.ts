import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { codeOf } from '../files/pool.ts'
import { createLentObjects, type LentObjects } from './lent-objects.ts'
import type { ObjectFormat } from './objects.ts'
import { lookAt } from './small-file.ts'

/**
 * The folder in which git runs, and that it takes for its repository. Nothing in it comes from the repository that is
 * served, but for its objects. So git never sees a configuration, hook, attribute, graft,
 * alternate or index that is not ours.
 */
export interface Shadow {
  readonly folder: string
  /** An empty bare repository, whose objects are lent by {@link Shadow.objects}. */
  readonly gitDir: string
  /** A second one, into which refs are written that git is asked about. */
  readonly refsDir: string
  /** Makes the bare repositories anew. */
  create(options: ShadowOptions): Promise<void>
  /** Whether everything is still there: what is in a folder for temporary files can be cleared away. */
  isWhole(): Promise<boolean>
  readonly lent: LentObjects
  remove(): Promise<void>
}

export interface ShadowOptions {
  readonly format: ObjectFormat
  /** Files of more bytes are not held in memory by git, nor compared line by line. */
  readonly largeBytes: number
}

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
  const lent = createLentObjects(folder)
  let removed = false

  return {
    folder,
    gitDir,
    refsDir,
    lent,
    create: async ({ format, largeBytes }) => {
      // What still runs after the end makes no folder that nobody removes.
      if (removed) throw new ResourceError('unavailable', 'The git provider is closed.')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      lent.reset()
      const config = configOf(format, [`bigFileThreshold = ${Math.max(largeBytes, leastLarge)}`])
      for (const directory of [gitDir, refsDir]) {
        await rm(directory, { recursive: true, force: true })
        await createBare(directory, config)
      }
    },
    isWhole: async () => {
      const files = [gitDir, refsDir].flatMap((path) =>
        ['HEAD', 'config', 'objects', 'refs'].map((name) => join(path, name)),
      )
      const found = await Promise.all(files.map(lookAt))
      return lent.isWhole() && found.every((stats) => stats !== undefined)
    },
    remove: async () => {
      removed = true
      lent.reset()
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
