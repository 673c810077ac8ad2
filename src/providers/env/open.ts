import { defined } from '../../core/kit/object.ts'
import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens the environment of the process, or the variables of a dotenv file. */
export const open: OpenSource<typeof source> = async ({ allow = [], file }, { folder, redaction }) => {
  const { env } = await import('./index.ts')
  const { key, scrubber } = await redaction()
  const path = file === undefined ? undefined : resolveFolder(file, folder)
  return env({ allow, ...defined({ key, scrubber, file: path }) })
}
