import { defined } from '../../core/kit/object.ts'
import { locatePath, type OpenSource } from '../source.ts'
import type { source } from './config.ts'

export const open: OpenSource<typeof source> = async ({ allow = [], file: name }, context) => {
  const { env } = await import('./index.ts')
  const { key, scrubber } = await context.redaction()
  const { path: file, within } = name === undefined ? {} : locatePath(name, context)
  return env({ allow, ...defined({ key, scrubber, file, within }) })
}
