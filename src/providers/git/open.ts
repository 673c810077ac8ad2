import { defined } from '../../core/kit/object.ts'
import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens the history of a repository, whose files are documents. */
export const open: OpenSource<typeof source> = async (given, { folder, log, documents }) => {
  const { git } = await import('./index.ts')
  const { timeout, alternates = [], ...options } = given
  return documents(
    await git({
      ...options,
      repository: resolveFolder(given.repository, folder),
      alternates: alternates.map((name) => resolveFolder(name, folder)),
      ...defined({ timeoutMs: timeout }),
      log,
    }),
  )
}
