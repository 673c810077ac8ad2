import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { type Folder, LinkError, openFolder, openIn, readIn } from './folder.ts'
import { isInside } from './locate.ts'

/** Maximum number and depth of object directories, the same depth as git's. */
const maxStores = 32
const maxDepth = 5
const maxAlternates = 64 * 1024

/**
 * Opens the object directories of a repository: its own, and those that it borrows from, all of which must lie inside `roots`. The caller
 * closes them.
 *
 * @throws ResourceError `unavailable` for one that lies elsewhere, or is a symbolic link.
 */
export async function openStores(commonDir: Folder, roots: readonly string[]): Promise<readonly Folder[]> {
  const found: Folder[] = []
  const visit = async (directory: Folder, depth: number): Promise<void> => {
    if (found.some(({ identity }) => identity === directory.identity)) return directory.close()
    found.push(directory)
    if (depth > maxDepth || found.length > maxStores) throw fault('borrows objects over too many repositories.')
    for (const line of await alternatesOf(directory)) {
      const real = await realPath(resolve(directory.path, line))
      // A missing alternate is ignored, as git does.
      if (real === undefined) continue
      if (!isInside(real, roots))
        throw fault(
          'borrows objects from another one (objects/info/alternates), outside of it. Name that folder in "alternates", or run git repack -a -d and delete the file.',
        )
      await visit(await openFolder(real), depth + 1)
    }
  }
  try {
    const objects = await openIn(commonDir, 'objects')
    if (objects === undefined) throw fault('is gone: it has no objects.')
    await visit(objects, 0)
    return found
  } catch (error) {
    for (const folder of found) folder.close()
    throw error instanceof LinkError ? linkedObjects() : error
  }
}

async function alternatesOf(directory: Folder): Promise<readonly string[]> {
  const info = await openIn(directory, 'info')
  if (info === undefined) return []
  try {
    const text = (await readIn(info, 'alternates', maxAlternates))?.toString('utf8') ?? ''
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    if (lines.some((line) => line.startsWith('"'))) throw new Error('a path in it is quoted')
    return lines
  } catch (error) {
    throw fault(`has an objects/info/alternates that cannot be used: ${sentence(error)}.`)
  } finally {
    info.close()
  }
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined
  }
}

/** Returns the error for symbolic links in place of packs or object directories, which would lead to objects elsewhere. */
export function linkedObjects(): ResourceError {
  return fault('has symbolic links among its objects. Name the repository that they lead to.')
}

/** Returns the error for invalid objects of the repository. `what` continues "The repository". */
export function fault(what: string): ResourceError {
  return new ResourceError('unavailable', `The repository ${what}`, { reason: 'repository' })
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown'
}
