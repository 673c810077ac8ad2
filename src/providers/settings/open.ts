import { defined } from '../../core/kit/object.ts'
import { decoded } from '../../wrap/decoded.ts'
import { sliced } from '../../wrap/sliced.ts'
import { type FolderContext, locateRoot, type OpenSource, type OptionsOf } from '../source.ts'
import type { source } from './config.ts'

/** Opens the files of settings in a folder. */
export const open: OpenSource<typeof source> = async (given, context) => {
  const { log, redaction } = context
  const [{ files }, { settings }] = await Promise.all([import('../files/index.ts'), import('./index.ts')])
  const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = given
  const { language, encodings } = given
  const { key, scrubber } = await redaction()
  const opened = await files({ ...options, ...locateRoot(given, context), dotenv, log })
  return sliced(
    settings({
      source: decoded(opened, defined({ language, rules: encodings })),
      ...defined({ key, scrubber, formats, show, allow, maxBytes, maxDepth, maxNodes, timeoutMs: timeout }),
    }),
  )
}

/** Opens the explanation why files of the folder are left out. @throws ResourceError `invalid` for a folder that cannot be opened. */
export async function leftOut(given: OptionsOf<(typeof source)['shape']>, context: FolderContext) {
  const { openLeftOut } = await import('../files/index.ts')
  const { maxBytes: _, dotenv = true, ...options } = given
  return openLeftOut({ ...options, ...locateRoot(given, context), dotenv })
}
