import { defined } from '../../core/kit/object.ts'
import { resolveFolder } from '../../schema/values.ts'
import { decoded } from '../../wrap/decoded.ts'
import { sliced } from '../../wrap/sliced.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens the files of settings in a folder. */
export const open: OpenSource<typeof source> = async (given, { folder, log, redaction }) => {
  const [{ files }, { settings }] = await Promise.all([import('../files/index.ts'), import('./index.ts')])
  const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = given
  const { language, encodings } = given
  const { key, scrubber } = await redaction()
  const opened = await files({ ...options, root: resolveFolder(given.root, folder), dotenv, log })
  return sliced(
    settings({
      source: decoded(opened, defined({ language, rules: encodings })),
      ...defined({ key, scrubber, formats, show, allow, maxBytes, maxDepth, maxNodes, deadlineMs: timeout }),
    }),
  )
}
