import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens the packages of a lock file, whose files are documents. */
export const open: OpenSource<typeof source> = async (options, { folder, documents }) => {
  const { packages } = await import('./index.ts')
  return documents(await packages({ ...options, root: resolveFolder(options.root, folder) }))
}
