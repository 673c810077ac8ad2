import { sliced } from '../../wrap/sliced.ts'
import { rowOptions, serverOptions, urlIn } from '../relational/mount.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a database of MySQL or MariaDB. */
export const open: OpenSource<typeof source> = async (given, { folder, log }) => {
  const url = await urlIn(given.url, folder)
  const options = { ...(await serverOptions(given, folder)), ...rowOptions(given.rows) }
  const { mysql } = await import('./index.ts')
  return sliced(await mysql({ url, ...options, log }))
}
