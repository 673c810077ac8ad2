import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorCodeOf, unavailable } from '../../core/errors.ts'
import { lookAt } from './folder.ts'
import { createLentObjects } from './lent-objects.ts'
import type { ObjectFormat } from './objects.ts'

/**
 * The shadow repository: the folder in which git runs, and which it uses as its repository. Nothing in it comes from the served repository
 * except its objects. So git never sees a configuration, hook, attribute, graft, alternate or index that this provider did not write.
 */
export type Shadow = Awaited<ReturnType<typeof createShadow>>

const leastLargeBytes = 1024 * 1024

/** Folders to remove when this process exits without closing their provider. */
const leftovers = new Set<string>()
let watchesExit = false

function watchExit(): void {
  if (watchesExit) return
  watchesExit = true
  process.on('exit', () => {
    for (const folder of leftovers) rmSync(folder, { recursive: true, force: true })
  })
}

/** Creates an empty folder in the temporary folder of the system, with access only for this user. */
export async function createShadow() {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-git-'))
  const gitDir = join(folder, 'shadow.git')
  const refsDir = join(folder, 'refs.git')
  leftovers.add(folder)
  watchExit()
  const lent = createLentObjects(folder)
  let removed = false

  return {
    folder,
    /** An empty bare repository, whose objects come from `lent`. */
    gitDir,
    /** A second bare repository for the refs of one request. */
    refsDir,
    lent,
    /**
     * Creates the bare repositories again.
     *
     * @param largeBytes Maximum size of a file that git holds in memory or compares line by line, in bytes.
     */
    create: async (format: ObjectFormat, largeBytes: number): Promise<void> => {
      // Work that still runs after the close must not create a folder that nothing removes.
      if (removed) throw unavailable('The git provider is closed.')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      lent.reset()
      const config = configOf(format, [`bigFileThreshold = ${Math.max(largeBytes, leastLargeBytes)}`])
      for (const directory of [gitDir, refsDir]) {
        await rm(directory, { recursive: true, force: true })
        await createBare(directory, config)
      }
    },
    /** Whether everything still exists. The system may have cleared its temporary folder. */
    isWhole: async (): Promise<boolean> => {
      const files = [gitDir, refsDir].flatMap((path) =>
        ['HEAD', 'config', 'objects', 'refs'].map((name) => join(path, name)),
      )
      const found = await Promise.all(files.map(lookAt))
      return lent.isWhole() && found.every((stats) => stats !== undefined)
    },
    remove: async (): Promise<void> => {
      removed = true
      lent.reset()
      leftovers.delete(folder)
      // Work that still runs may create files in it meanwhile.
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
    },
  }
}

/** Returns the configuration of the provider's own bare repository. `more`: further lines of its section `core`. */
export function configOf(format: ObjectFormat, more: readonly string[] = []): string {
  const core = [
    'repositoryformatversion = 1',
    'bare = true',
    // Print names as UTF-8 instead of octal escapes; control characters are still escaped.
    'quotePath = false',
    'hooksPath = /dev/null',
    'fsmonitor = false',
    ...more,
  ]
  return `[core]\n${core.map((line) => `\t${line}\n`).join('')}[extensions]\n\tobjectFormat = ${format}\n`
}

/** Creates a directory if it does not exist; never its parents, which may have been removed for good. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error
  }
}

/** Creates an empty bare repository whose `HEAD` is on a branch that does not exist. */
export async function createBare(directory: string, config: string): Promise<void> {
  for (const path of [directory, ...['objects', 'refs', 'info'].map((name) => join(directory, name))])
    await makeDirectory(path)
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/none\n')
  await writeFile(join(directory, 'config'), config)
}
