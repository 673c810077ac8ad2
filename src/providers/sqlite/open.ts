import { sliced } from '../../wrap/sliced.ts'
import { databaseOptions, rowOptions } from '../relational/config.ts'
import { locatePath, type OpenSource } from '../source.ts'
import type { source } from './config.ts'

export const open: OpenSource<typeof source> = async (mountOptions, context) => {
  const options = { ...databaseOptions(mountOptions), ...rowOptions(mountOptions.rows) }
  const { sqlite } = await import('./index.ts')
  const { path: file, ...found } = locatePath(mountOptions.file, context)
  return sliced(await sqlite({ ...options, file, ...found, log: context.log }))
}
