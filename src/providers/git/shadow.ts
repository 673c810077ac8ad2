import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { ObjectFormat } from './objects.ts'

/**
 * The folder in which git runs, and that it takes for its repository. Nothing in it comes from the repository that is
 * served, but for what is linked to: its objects and its refs. So git never sees a configuration, hook, attribute, graft,
 * alternate or index that is not ours.
 */
export interface Shadow {
  readonly folder: string
  /** An empty bare repository, whose objects are lent by {@link Shadow.objects}. */
  readonly gitDir: string
  /** Makes the bare repositories, once the format of the object ids is known. */
  create(format: ObjectFormat, largeBytes: number): Promise<void>
  /** A second one, whose refs are those of a git directory. */
  readonly refsDir: string
  linkRefs(commonDir: string): Promise<void>
  /** Lends the objects of these object directories from now on. */
  linkObjects(stores: readonly string[]): Promise<void>
  /** What is lent, as `GIT_ALTERNATE_OBJECT_DIRECTORIES` has it. */
  objects(): string
  remove(): Promise<void>
}

/** The directories that loose objects are in: `00` to `ff`. */
const fans = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

/** Makes an empty folder below the one for temporary files, for this user alone. */
export async function createShadow(): Promise<Shadow> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-git-'))
  const gitDir = join(folder, 'shadow.git')
  const refsDir = join(folder, 'refs.git')
  let lent: readonly string[] = []
  let generation = 0

  return {
    folder,
    gitDir,
    refsDir,
    create: async (format, largeBytes) => {
      const config = configOf(format, [`bigFileThreshold = ${largeBytes}`])
      await createBare(gitDir, config)
      await createBare(refsDir, config)
    },
    linkRefs: async (commonDir) => {
      await rm(join(refsDir, 'refs'), { recursive: true })
      for (const name of ['refs', 'packed-refs']) await symlink(join(commonDir, name), join(refsDir, name))
    },
    linkObjects: async (stores) => {
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
    remove: () => rm(folder, { recursive: true, force: true }),
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

/** Makes an empty bare repository whose `HEAD` is on a branch that is not there. */
export async function createBare(directory: string, config: string): Promise<void> {
  for (const name of ['objects', 'refs', 'info']) await mkdir(join(directory, name), { recursive: true })
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/none\n')
  await writeFile(join(directory, 'config'), config)
}

/**
 * Makes an object directory that holds links to the objects of another. Its `info/alternates` is not among them: which
 * repositories it borrows from is decided by us, and stays so whatever is written there later.
 */
async function lend(store: string, place: string): Promise<void> {
  await mkdir(join(place, 'info'), { recursive: true })
  const names = [...fans, 'pack', 'info/commit-graph', 'info/commit-graphs']
  await Promise.all(names.map((name) => symlink(join(store, name), join(place, name))))
}
