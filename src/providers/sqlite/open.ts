import { resolveFolder } from '../../schema/values.ts'
import { sliced } from '../../wrap/sliced.ts'
import { databaseOptions, rowOptions } from '../relational/mount.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a database in a file. */
export const open: OpenSource<typeof source> = async (given, { folder, log }) => {
  const options = { ...databaseOptions(given), ...rowOptions(given.rows) }
  const { sqlite } = await import('./index.ts')
  return sliced(await sqlite({ file: resolveFolder(given.file, folder), ...options, log }))
}
