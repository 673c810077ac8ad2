import { readdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { isInside } from './locate.ts'
import { lookAt, readSmallFile } from './small-file.ts'

/** As many object directories as git itself would follow, at most. */
const maxStores = 32
const maxDepth = 5
const maxAlternates = 64 * 1024

/**
 * The object directories of a repository: its own, and those that it borrows from. All of them lie inside `roots`, and
 * hold no symbolic links, as far as a look at the directories tells: the loose objects are not looked at one by one.
 *
 * @throws ResourceError `unavailable` for one that lies elsewhere.
 */
export async function findStores(objects: string, roots: readonly string[]): Promise<readonly string[]> {
  const found: string[] = []
  const visit = async (directory: string, depth: number): Promise<void> => {
    if (found.includes(directory)) return
    if (depth > maxDepth || found.length >= maxStores) throw fault('borrows objects over too many repositories.')
    await requirePlain(directory)
    found.push(directory)
    for (const line of await alternatesOf(directory)) {
      const real = await realPath(resolve(directory, line))
      // What is not there lends nothing, which is how git takes it.
      if (real === undefined) continue
      if (!isInside(real, roots))
        throw fault(
          'borrows objects from another one (objects/info/alternates), outside of it. Name that folder in "alternates", or run git repack -a -d and delete the file.',
        )
      await visit(real, depth + 1)
    }
  }
  await visit(objects, 0)
  return found
}

async function alternatesOf(directory: string): Promise<readonly string[]> {
  try {
    const text = (await readSmallFile(join(directory, 'info', 'alternates'), maxAlternates))?.toString('utf8') ?? ''
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    if (lines.some((line) => line.startsWith('"'))) throw new Error('a path in it is quoted')
    return lines
  } catch (error) {
    throw fault(`has an objects/info/alternates that cannot be used: ${sentence(error)}.`)
  }
}

/** Symbolic links in place of packs or directories of objects would lead to objects elsewhere. */
async function requirePlain(directory: string): Promise<void> {
  for (const path of [directory, join(directory, 'pack'), join(directory, 'info')]) {
    const stats = await lookAt(path)
    if (stats?.isSymbolicLink() === true) throw linked()
    if (stats?.isDirectory() !== true) continue
    for (const entry of await readdir(path, { withFileTypes: true })) if (entry.isSymbolicLink()) throw linked()
  }
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined
  }
}

function linked(): ResourceError {
  return fault('has symbolic links among its objects. Name the repository that they lead to.')
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown'
}

function fault(what: string): ResourceError {
  return new ResourceError('unavailable', `The repository ${what}`, { reason: 'repository' })
}
