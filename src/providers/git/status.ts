import { copyFile, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'
import type { RefTable } from './refs.ts'
import { configOf, createBare } from './shadow.ts'
import { lookAt, readSmallFile } from './small-file.ts'
import { formatStatus, parseStatus } from './status-format.ts'
import type { Page } from './text.ts'

/** The state of the working tree against the index and `HEAD`. */
export interface Status {
  read(table: RefTable, signal: AbortSignal): Promise<Page>
}

export interface StatusOptions {
  readonly launcher: Launcher
  /** A folder of our own. */
  readonly folder: string
  readonly gitDir: string
  readonly commonDir: string
  readonly workTree: string
  readonly format: ObjectFormat
  /** Lines for the section `core`: how files are checked out. */
  readonly checkout: readonly string[]
}

const maxBytes = 4 * 1024 * 1024
const maxExclude = 512 * 1024
const maxIndex = 512 * 1024 * 1024

/**
 * Runs `git status` in a git directory of our own, over a copy of the index. So no filter, monitor or hook of the
 * repository runs, its index is not written, and submodules are not entered. What a filter would do to a file is not
 * known: a file that goes through one shows as modified when its time has changed.
 */
export function createStatus(options: StatusOptions): Status {
  const { launcher, folder, gitDir, commonDir, workTree, format, checkout } = options
  const own = join(folder, 'status.git')
  /** One at a time: they share a directory. */
  let turn: Promise<unknown> = Promise.resolve()

  const prepare = async ({ head }: RefTable): Promise<void> => {
    await createBare(own, configOf(format, checkout))
    if (head !== undefined) await writeFile(join(own, 'HEAD'), `${head.oid}\n`)
    const exclude = await readSmallFile(join(commonDir, 'info', 'exclude'), maxExclude).catch(() => undefined)
    await writeFile(join(own, 'info', 'exclude'), exclude ?? '')
    const shared = (await readdir(gitDir)).filter((name) => /^sharedindex\.[0-9a-f]{40,64}$/.test(name))
    for (const name of ['index', ...shared]) await copyIndex(join(gitDir, name), join(own, name))
  }

  const run = async (table: RefTable, signal: AbortSignal): Promise<Page> => {
    await prepare(table)
    const { bytes, cut } = await launcher.run({
      args: [
        'status',
        '--porcelain=v1',
        '-z',
        '--ignore-submodules=all',
        '--untracked-files=normal',
        '--no-ahead-behind',
      ],
      gitDir: own,
      env: { GIT_WORK_TREE: workTree, GIT_INDEX_FILE: join(own, 'index') },
      limit: maxBytes,
      signal,
    })
    return formatStatus(parseStatus(bytes.toString('utf8')), cut, table)
  }

  return {
    read: (table, signal) => {
      const mine = turn.then(() => run(table, signal))
      turn = mine.catch(() => {})
      return mine
    },
  }
}

/** Copies an index, with its time: git compares files that are as new as the index byte by byte. */
async function copyIndex(from: string, to: string): Promise<void> {
  const stats = await lookAt(from)
  if (stats === undefined) {
    // Nothing is staged; an older copy would say otherwise.
    await rm(to, { force: true })
    return
  }
  if (!stats.isFile() || stats.size > maxIndex)
    throw new ResourceError('unavailable', 'The index of the repository is not a file, or too large.')
  await copyFile(from, to)
  await utimes(to, Math.floor(stats.mtimeMs / 1000), Math.floor(stats.mtimeMs / 1000))
}
